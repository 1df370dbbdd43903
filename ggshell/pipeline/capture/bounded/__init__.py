"""Bounded Recovery: long-running open transactions are kept in files, so a restart reads at most two intervals of log.

At every interval a checkpoint is made. Each transaction that has been open for longer than an interval is written to
files of its own (``objects``). A manifest, written last, names all of them and the position at which a recovery would
begin to read (``manifest``). The ``store`` writes, finds and restores both; ``recovery`` selects what a start does and
when the next checkpoint is due. Nothing here depends on a database: positions are the source's own ordered numbers.
"""
