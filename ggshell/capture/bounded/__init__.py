"""Bounded Recovery: long-running open transactions kept in files, so that a restart reads at most two intervals of log.

At every interval a checkpoint is made: each transaction that has been open for longer than an interval gets a file of its
own (``objects``), and a manifest, written last, names them all and says where reading would have to begin (``manifest``).
``keeper`` makes the checkpoints, ``plan`` decides at a start which kind of recovery there is, ``disk`` is all that touches
files.  Nothing here knows a database: positions are the source's own ordered numbers.
"""
