"""What the command line shows: texts, tables, units, the pager and the progress line."""
