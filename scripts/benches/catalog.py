"""The benches by name: the title and the introduction of each one's section in docs/performance.md."""

from __future__ import annotations

from typing import Final

CATALOG: Final[dict[str, tuple[str, str]]] = {
    "extract": (
        "Extract",
        "From the replication slot to a durable trail. The peer, pg_recvlogical, receives the same stream and discards it.",
    ),
    "replicat": (
        "Replicat",
        "A finished trail is applied to PostgreSQL. The peer is PostgreSQL's own subscription, which applies the same rows.",
    ),
    "apply": (
        "Kinds of Replicat",
        "Parallel compared with classic, on targets where commits wait and where they do not; the cost of the"
        " checkpoint table; and the cost of COLMAP with two functions.",
    ),
    "latency": (
        "Latency",
        "From the return of COMMIT in the source to the moment at which the row is visible in the target. The bare loop copies"
        " rows with two small processes and a synced file; the subscription has no durable queue.",
    ),
    "startup": (
        "Statements from the command line",
        "Each common statement with `-c`, in a new process, compared with a small query of litecli. The slowest statement is"
        " judged.",
    ),
    "lake_growth": (
        "Growing lake",
        "Batches of 10,000 changed rows, spread over an Iceberg table of 1, 10 and 50 million rows (merge-on-read). The peer is"
        " the smallest table.",
    ),
    "memory": ("Memory", "The largest resident memory while one large transaction passes through."),
    "language": (
        "Offline check",
        "`ggshell check` of a long obey file, and its rate compared with that of a shorter one.",
    ),
    "heartbeat": (
        "Heartbeats",
        "Processor time of Manager, Extract, path and Replicat for a heartbeat every second, less that of the idle processes.",
    ),
    "ddl": (
        "DDL capture",
        "The time that capture adds to a statement in the source, compared with the same statement in a database without"
        " capture.",
    ),
    "trail": (
        "Trail",
        "One thread writes and scans a trail. The peer of the scan, DuckDB, reads the same rows from Parquet, a format that"
        " already stores columns.",
    ),
    "spark": (
        "Queries",
        "Large trails and lag archives, on Spark and on DuckDB, and small queries, which need no Spark.",
    ),
    "cluster": (
        "Executors",
        "Queries about a trail and a lag archive of 10 GB each on Spark with two executors of one core, compared with one"
        " executor; and the time in which the driver divides the trail into tasks.",
    ),
    "redo": ("Oracle redo", "Processor time of one process: SQL_REDO to columns, and a log to committed batches."),
    "interpreters": (
        "CPython versions",
        "The same work with another version of CPython, which is *ours* here. Above 1, it is faster than the version in the"
        " column *compared with*.",
    ),
    "recovery": (
        "Recovery",
        "Extract is killed after a day of redo with one transaction open since its begin. Bounded Recovery compared with"
        " reading the log from that begin.",
    ),
    "service": (
        "Service",
        "The REST API with 50 groups: response times, requests for each second of processor time, memory, and slow clients.",
    ),
    "path": (
        "Paths between homes",
        "Trails sent over TLS to another home, compared with a plain socket that copies the same files.",
    ),
    "values": (
        "Large values",
        "One row with a large value, from the commit in the source until it is visible in the target, compared with psql"
        " copying it.",
    ),
    "growth": (
        "How cost grows",
        "The same work with 1, 10 and 100 times as many objects. The peer of a size is n log n of the size before"
        " it, which is the dashed line of the chart. The start of a process is included where there is one.",
    ),
    "move": ("Moving a database", "The longest time in which no client could commit while a database was switched."),
    "compare": (
        "COMPARE",
        "Two equal tables, compared with the databases' own sums of row hashes, which one query in each computes at the"
        " same time.",
    ),
    "mysql": (
        "MariaDB",
        "MariaDB as source and as target: rows of eleven columns. The peers are mariadb-binlog, which reads the same log, and"
        " MariaDB's own replica with four threads, which applies it.",
    ),
    "lake": (
        "Lakes",
        "Changes delivered to Delta and Iceberg tables: in an object store (a moto server on this machine) compared with"
        " appends by the libraries, in a folder compared with a merge in Spark SQL that rewrites a Parquet table.",
    ),
    "load": (
        "LOAD",
        "A table compared with table synchronization and a pipe between two psql; many tables with indexes compared with"
        " pgcopydb.",
    ),
}
"""In the order in which they run and are shown."""
