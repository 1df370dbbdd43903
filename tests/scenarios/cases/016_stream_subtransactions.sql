--- case: savepoints in a streamed transaction
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
BEGIN;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SAVEPOINT s1;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1001, 2000) i;
SAVEPOINT s2;
UPDATE t SET b = md5(b) WHERE mod(a, 2) = 0;
DELETE FROM t WHERE mod(a, 3) = 0;
SAVEPOINT s3;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(3001, 4000) i;
COMMIT;
--- equal: t
