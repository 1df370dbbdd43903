--- case: materialized views are left to each side
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
INSERT INTO t VALUES (1, 'one');
CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
REFRESH MATERIALIZED VIEW v;
CREATE VIEW w AS SELECT * FROM t;
INSERT INTO w VALUES (2, 'two');
REFRESH MATERIALIZED VIEW v;
--- equal: t
