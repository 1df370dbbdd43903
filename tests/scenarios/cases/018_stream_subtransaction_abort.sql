--- case: savepoints that are rolled back in a streamed transaction
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
BEGIN;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SAVEPOINT s1;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1001, 2000) i;
SAVEPOINT s2;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(2001, 3000) i;
ROLLBACK TO s2;
INSERT INTO t SELECT i, 'second' FROM generate_series(2001, 2500) i;
ROLLBACK TO s1;
INSERT INTO t SELECT i, 'third' FROM generate_series(1001, 1500) i;
SAVEPOINT s3;
DELETE FROM t WHERE a < 500;
RELEASE s3;
COMMIT;
--- equal: t
