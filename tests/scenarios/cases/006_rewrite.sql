--- case: a table that is rewritten between its rows
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
INSERT INTO t VALUES (1, 'one'), (2, 'two');
--- equal: t
--- target
ALTER TABLE t ADD c timestamp;
--- source
ALTER TABLE t ADD c timestamp DEFAULT '2026-01-01';
INSERT INTO t VALUES (3, 'three', '2026-02-02'), (4, 'four', DEFAULT);
VACUUM FULL t;
UPDATE t SET b = 'vier' WHERE a = 4;
CLUSTER t USING t_pkey;
DELETE FROM t WHERE a = 3;
--- equal: t (a, b)
--- holds: SELECT c FROM t WHERE a = 4 = 2026-01-01 00:00:00
