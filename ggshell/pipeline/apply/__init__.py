"""Apply trail records to a target: mapping, grouping, error handling and the checkpoint table.

Nothing here depends on a particular database."""
