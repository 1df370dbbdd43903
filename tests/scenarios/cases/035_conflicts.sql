--- case: an update of a row that the target does not have
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- differs: (HELP SUBSCRIPTIONS) a subscription passes over an update or delete of a missing row and logs a conflict; Replicat abends with 1403, or does what REPERROR, HANDLECOLLISIONS or RESOLVECONFLICT say
--- source
INSERT INTO t VALUES (1, 'x');
--- equal: t
--- target
DELETE FROM t;
--- source
UPDATE t SET b = 'y';
--- abends: 1403
--- target
INSERT INTO t VALUES (1, 'x');
--- start
--- equal: t

--- case: a delete of a row that the target does not have
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- replicat: MAP {schema}.t, TARGET {schema}.t, REPERROR (1403, DISCARD);
--- source
INSERT INTO t VALUES (1, 'x'), (2, 'y');
--- equal: t
--- target
DELETE FROM t WHERE a = 1;
--- source
DELETE FROM t;
--- equal: t

--- case: a row that is refused by a second unique index
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b int);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE);
--- source
INSERT INTO t VALUES (1, 1);
--- equal: t
--- source
INSERT INTO t VALUES (2, 1);
--- abends: 23505
--- target
ALTER TABLE t DROP CONSTRAINT t_b_key;
--- start
--- equal: t
