"""From interleaved open transactions to committed ones in commit order.  What is here knows no database."""
