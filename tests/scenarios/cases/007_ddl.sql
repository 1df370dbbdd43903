--- case: a table that is dropped and comes back
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- trandata: ADD TRANDATA {schema}.t
--- source
INSERT INTO t VALUES (1);
DROP TABLE t;
--- source
CREATE TABLE u (a int PRIMARY KEY);
--- holds: SELECT count(*) FROM t = 1
