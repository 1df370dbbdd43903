--- case: a large transaction that is streamed
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
BEGIN;
INSERT INTO t SELECT i, sha256(i::text::bytea)::text FROM generate_series(1, 5000) i;
UPDATE t SET b = sha256(b::bytea)::text WHERE mod(a, 2) = 0;
DELETE FROM t WHERE mod(a, 3) = 0;
COMMIT;
--- equal: t

--- case: a streamed transaction beside small ones
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
CREATE TABLE u (a int PRIMARY KEY);
CREATE EXTENSION IF NOT EXISTS dblink SCHEMA public;
--- source
SELECT dblink_connect('other', format('dbname=%s port=%s host=%s user=%s', current_database(), current_setting('port'), split_part(current_setting('unix_socket_directories'), ',', 1), current_user));
SELECT dblink_exec('other', 'BEGIN');
SELECT dblink_exec('other', 'INSERT INTO ' || :'schema' || '.t SELECT i, repeat(i::text, 10) FROM generate_series(1, 3000) i');
INSERT INTO u SELECT generate_series(1, 10);
INSERT INTO u VALUES (11);
SELECT dblink_exec('other', 'UPDATE ' || :'schema' || '.t SET b = b || a');
UPDATE u SET a = a + 100;
SELECT dblink_exec('other', 'COMMIT');
--- equal: t, u

--- case: a streamed transaction that is rolled back
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
BEGIN;
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i;
ROLLBACK;
INSERT INTO t VALUES (1, 'kept');
--- equal: t
