--- case: several tables in one statement
--- tables
CREATE TABLE one (a int PRIMARY KEY);
CREATE TABLE two (a int PRIMARY KEY);
--- source
INSERT INTO one SELECT generate_series(1, 5);
INSERT INTO two SELECT generate_series(1, 5);
--- equal: one, two
--- source
TRUNCATE one, two;
INSERT INTO one VALUES (7);
--- equal: one, two

--- case: truncate between the changes of a transaction, and one that is rolled back
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
BEGIN;
INSERT INTO t VALUES (1);
TRUNCATE t;
INSERT INTO t VALUES (1), (2);
SAVEPOINT s;
TRUNCATE t;
ROLLBACK TO s;
INSERT INTO t VALUES (3);
COMMIT;
BEGIN; TRUNCATE t; ROLLBACK;
--- equal: t
--- holds: SELECT count(*) FROM t = 3

--- case: truncate with cascade over a foreign key
--- tables
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int PRIMARY KEY, a int REFERENCES parent);
--- source
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1);
TRUNCATE parent CASCADE;
INSERT INTO parent VALUES (5);
--- equal: parent, child

--- case: truncate of a parent whose target has more children
--- source tables
CREATE TABLE parent (a int PRIMARY KEY);
--- target tables
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int PRIMARY KEY, a int REFERENCES parent);
--- source
INSERT INTO parent VALUES (1);
TRUNCATE parent;
--- abends: 0A000
--- target
DROP TABLE child;
--- start
--- equal: parent

--- case: truncate that restarts a sequence
--- tables
CREATE TABLE t (a serial PRIMARY KEY, b text);
--- source
INSERT INTO t (b) VALUES ('x'), ('y');
TRUNCATE t RESTART IDENTITY;
INSERT INTO t (b) VALUES ('z');
--- equal: t

--- case: truncate is left out where the Extract says so
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- extract: IGNORETRUNCATES
--- extract: TABLE {schema}.*;
--- extract: GETTRUNCATES
--- source
INSERT INTO t VALUES (1);
--- equal: t
