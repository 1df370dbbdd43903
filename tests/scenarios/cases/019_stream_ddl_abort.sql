--- case: a column whose savepoint is rolled back
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text, c int);
--- source
BEGIN;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
ALTER TABLE t ADD c int;
SAVEPOINT s1;
INSERT INTO t SELECT i, md5(i::text), -i FROM generate_series(1001, 1500) i;
ALTER TABLE t ADD d int;
INSERT INTO t SELECT i, md5(i::text), -i, 2 * i FROM generate_series(1501, 2000) i;
ROLLBACK TO s1;
INSERT INTO t SELECT i, md5(i::text), -i FROM generate_series(2001, 2500) i;
COMMIT;
--- equal: t
