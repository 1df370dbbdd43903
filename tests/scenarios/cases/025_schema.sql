--- case: a table that leaves its schema is not replicated any longer
--- tables
CREATE TABLE t (a int PRIMARY KEY);
CREATE SCHEMA elsewhere;
--- source
INSERT INTO t VALUES (1);
--- equal: t
--- source
ALTER TABLE t SET SCHEMA elsewhere;
INSERT INTO elsewhere.t VALUES (2);
--- holds: SELECT count(*) FROM t = 1
