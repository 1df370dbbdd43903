"""Row by row comparison of two databases while changes flow; knows no database, only what one side of a table must answer."""
