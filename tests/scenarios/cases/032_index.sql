--- case: rows without a key that the target finds by an index
--- source tables
CREATE TABLE t (x int, y text);
--- target tables
CREATE TABLE t (x int, y text);
CREATE INDEX ON t (x, y);
CREATE INDEX ON t ((x || y)) WHERE x = 1;
--- source
INSERT INTO t SELECT i % 10, (i % 10)::text FROM generate_series(0, 10) i;
DELETE FROM t WHERE x IN (5, 6);
UPDATE t SET x = 100, y = '200' WHERE x IN (1, 2);
UPDATE t SET y = NULL WHERE x = 0;
DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t WHERE x = 0);
--- equal: t

--- case: whole old rows, and a key only at the target
--- source tables
CREATE TABLE t (a int NOT NULL, b text);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text, c int);
--- source
INSERT INTO t VALUES (1, 'x'), (2, NULL);
UPDATE t SET b = 'y';
UPDATE t SET a = a + 10;
DELETE FROM t WHERE a = 11;
--- equal: t (a, b)

--- case: a unique index stands in for the key
--- tables
CREATE TABLE t (a int NOT NULL, b int NOT NULL, c text);
CREATE UNIQUE INDEX t_b ON t (b);
--- trandata: ADD TRANDATA {schema}.t, COLS (b)
--- source
INSERT INTO t VALUES (1, 1, 'x'), (1, 2, 'y');
UPDATE t SET c = 'z' WHERE b = 2;
UPDATE t SET b = 3 WHERE b = 1;
DELETE FROM t WHERE b = 3;
--- equal: t
