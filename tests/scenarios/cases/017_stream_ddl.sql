--- case: columns that come during a streamed transaction
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text, c int, d int, e text);
--- source
BEGIN;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
ALTER TABLE t ADD c int;
SAVEPOINT s1;
INSERT INTO t SELECT i, md5(i::text), -i FROM generate_series(1001, 2000) i;
COMMIT;
BEGIN;
INSERT INTO t SELECT i, md5(i::text), -i FROM generate_series(2001, 3000) i;
ALTER TABLE t ADD d int;
INSERT INTO t SELECT i, md5(i::text), -i, 2 * i FROM generate_series(3001, 4000) i;
COMMIT;
--- equal: t (a, b, c, d)
