--- case: a prepared transaction that is committed
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
BEGIN;
INSERT INTO t VALUES (11);
PREPARE TRANSACTION 'scenario_commit';
INSERT INTO t VALUES (1);
--- holds: SELECT count(*) FROM t = 1
--- source
COMMIT PREPARED 'scenario_commit';
--- equal: t

--- case: a prepared transaction that is rolled back
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
BEGIN;
INSERT INTO t VALUES (11);
PREPARE TRANSACTION 'scenario_rollback';
INSERT INTO t VALUES (1);
ROLLBACK PREPARED 'scenario_rollback';
--- equal: t

--- case: savepoints and a truncate in a prepared transaction
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
INSERT INTO t VALUES (1);
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (21);
SAVEPOINT s;
INSERT INTO t VALUES (22);
ROLLBACK TO s;
PREPARE TRANSACTION 'scenario_savepoint';
COMMIT PREPARED 'scenario_savepoint';
--- equal: t

--- case: a large prepared transaction
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
BEGIN;
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
UPDATE t SET b = md5(b) WHERE mod(a, 2) = 0;
DELETE FROM t WHERE mod(a, 3) = 0;
PREPARE TRANSACTION 'scenario_large';
COMMIT PREPARED 'scenario_large';
--- equal: t
