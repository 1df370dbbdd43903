--- case: a key that takes capital letters for small ones
--- tables
CREATE EXTENSION IF NOT EXISTS citext SCHEMA public;
CREATE TABLE t (a citext PRIMARY KEY, b citext);
--- source
INSERT INTO t VALUES ('abc', 'foo'), ('xyz', 'Bar');
UPDATE t SET b = 'FOO' WHERE a = 'ABC';
UPDATE t SET a = 'ABC' WHERE a = 'abc';
DELETE FROM t WHERE a = 'XYZ';
--- equal: t

--- case: rows without a key that are equal but not the same
--- tables
CREATE TABLE t (a citext, b numeric);
--- source
INSERT INTO t VALUES ('resume', 1), ('RESUME', 1.0), ('Resume', 1.00);
UPDATE t SET b = 2 WHERE a::text = 'RESUME';
DELETE FROM t WHERE a::text = 'resume';
--- equal: t
