--- case: a duplicate row stops the Replicat and nothing of its transaction is applied
--- tables
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE u (a int PRIMARY KEY);
--- target
INSERT INTO t VALUES (3);
--- source
BEGIN;
INSERT INTO u VALUES (1);
INSERT INTO t VALUES (1), (2), (3);
COMMIT;
--- abends: 23505
--- holds stopped: SELECT count(*) FROM u = 0
--- target
DELETE FROM t;
--- start
--- equal: t, u

--- case: a duplicate row goes to the discard file where REPERROR says so
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- replicat: MAP {schema}.t, TARGET {schema}.t, REPERROR (23505, DISCARD);
--- target
INSERT INTO t VALUES (2, 'target');
--- source
INSERT INTO t VALUES (1, 'source'), (2, 'source'), (3, 'source');
--- holds: SELECT string_agg(a || b, ' ' ORDER BY a) FROM t = 1source 2target 3source
