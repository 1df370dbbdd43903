--- case: some columns only
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text, c int);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, c int, extra text DEFAULT 'x');
--- extract: TABLE {schema}.t, COLS (a, c);
--- source
INSERT INTO t VALUES (1, 'secret', 10), (2, 'secret', 20);
UPDATE t SET b = 'other';
UPDATE t SET c = 30 WHERE a = 2;
UPDATE t SET a = 5 WHERE a = 1;
--- equal: t (a, c)
