"""Row-by-row comparison of two databases while changes are replicated; independent of the type of database."""
