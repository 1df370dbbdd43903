--- case: parents and children in one transaction
--- tables
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int PRIMARY KEY, a int REFERENCES parent ON DELETE CASCADE);
--- source
BEGIN;
INSERT INTO parent SELECT generate_series(1, 10);
INSERT INTO child SELECT i, i FROM generate_series(1, 10) i;
COMMIT;
DELETE FROM parent WHERE a < 4;
UPDATE child SET a = 10 WHERE b = 5;
DELETE FROM parent WHERE a = 5;
--- equal: parent, child

--- case: a row that the target's foreign key refuses stops the Replicat until the target is right
--- source tables
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int PRIMARY KEY, a int);
--- target tables
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int PRIMARY KEY, a int REFERENCES parent);
--- differs: (HELP SUBSCRIPTIONS) a subscription does not check foreign keys (it applies as a replica); Replicat does, unless DBOPTIONS SUPPRESSTRIGGERS says otherwise
--- source
INSERT INTO child VALUES (1, 99);
--- abends: 23503
--- target
INSERT INTO parent VALUES (99);
--- source
INSERT INTO parent VALUES (1);
--- start
--- equal: child

--- case: triggers of the target fire
--- source tables
CREATE TABLE t (a int PRIMARY KEY);
--- target tables
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE seen (op text, a int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('INSERT INTO %I.seen VALUES ($1, $2)', TG_TABLE_SCHEMA) USING TG_OP, CASE TG_OP WHEN 'DELETE' THEN OLD.a ELSE NEW.a END; RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
--- differs: (HELP SUBSCRIPTIONS) a subscription fires only triggers that are enabled for replicas; Replicat is an ordinary session
--- source
INSERT INTO t VALUES (1), (2);
UPDATE t SET a = 3 WHERE a = 2;
DELETE FROM t WHERE a = 1;
--- equal: t
--- holds: SELECT string_agg(op || a, ' ' ORDER BY op, a) FROM seen = DELETE1 INSERT1 INSERT2 UPDATE3

--- case: a trigger that leaves a row out leaves it out
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text);
CREATE FUNCTION drop_odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.a % 2 = 1 THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER drop_odd BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION drop_odd();
--- source
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 6) i;
--- holds: SELECT string_agg(a::text, ' ' ORDER BY a) FROM t = 2 4 6

--- case: a deferred constraint holds at the commit
--- tables
CREATE TABLE t (a int PRIMARY KEY, next int REFERENCES t DEFERRABLE INITIALLY DEFERRED);
--- source
BEGIN;
INSERT INTO t VALUES (1, 2);
INSERT INTO t VALUES (2, 1);
COMMIT;
DELETE FROM t;
--- equal: t

--- case: a check and a not-null constraint of the target
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b int);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL CHECK (b > 0));
--- source
INSERT INTO t VALUES (1, 1);
--- equal: t
--- source
INSERT INTO t VALUES (2, NULL);
--- abends: 23502
--- target
ALTER TABLE t ALTER b DROP NOT NULL;
--- start
--- equal: t
