"""From trail to target: mapping, grouping, errors and the checkpoint table.  What is here knows no database."""
