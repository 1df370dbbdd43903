--- case: an index predicate that calls a function of the user's
--- tables
CREATE TABLE t (a int PRIMARY KEY, b int);
CREATE FUNCTION twice(x int) RETURNS int IMMUTABLE LANGUAGE SQL AS 'SELECT x * 2';
CREATE INDEX ON t (b) WHERE a > twice(1);
--- source
INSERT INTO t VALUES (1, 2), (5, 6);
UPDATE t SET b = 7 WHERE a = 5;
--- equal: t

--- case: temporary and unlogged tables are left alone
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
CREATE TEMP TABLE temporary (a int);
CREATE UNLOGGED TABLE unlogged (a int);
INSERT INTO temporary VALUES (1);
UPDATE temporary SET a = 2;
INSERT INTO unlogged VALUES (1);
UPDATE unlogged SET a = 2;
INSERT INTO t VALUES (1);
--- equal: t

--- case: whole old rows where columns were dropped on one side
--- source tables
CREATE TABLE t (dropped int, a int, b text);
ALTER TABLE t DROP dropped;
--- target tables
CREATE TABLE t (a int, dropped int, b text);
ALTER TABLE t DROP dropped;
--- source
INSERT INTO t VALUES (1, 'x'), (2, NULL);
UPDATE t SET a = a + 1;
DELETE FROM t WHERE b IS NULL;
--- equal: t

--- case: whole old rows with a column that is generated at the target
--- source tables
CREATE TABLE t (a int, b int);
--- target tables
CREATE TABLE t (a int, c int GENERATED ALWAYS AS (5 * a) STORED, b int);
--- source
INSERT INTO t VALUES (1, 1);
UPDATE t SET b = 2;
DELETE FROM t;
INSERT INTO t VALUES (3, 3);
--- equal: t (a, b)

--- case: rows that are copied and loaded at once
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
COPY t FROM stdin;
1	one
2	\N
3	three
\.
INSERT INTO t SELECT a + 10, b FROM t;
--- equal: t

--- case: a statement that changes rows again and again
--- tables
CREATE TABLE t (a int PRIMARY KEY, b int);
--- source
BEGIN;
INSERT INTO t VALUES (1, 0);
UPDATE t SET b = b + 1;
UPDATE t SET a = 2;
UPDATE t SET a = 1;
DELETE FROM t;
INSERT INTO t VALUES (1, 99);
COMMIT;
INSERT INTO t VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = excluded.b;
MERGE INTO t USING (VALUES (1), (2)) v (x) ON a = x WHEN MATCHED THEN UPDATE SET b = 77 WHEN NOT MATCHED THEN INSERT VALUES (x, 0);
--- equal: t
