--- case: inserts, updates and deletes with a key
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 50) i;
DELETE FROM t WHERE a > 20;
UPDATE t SET a = -a;
UPDATE t SET b = NULL WHERE a = -3;
--- equal: t
--- holds: SELECT count(*), min(a), max(a) FROM t = 20|-20|-1

--- case: a table without a key with rows that are the same
--- tables
CREATE TABLE t (a int);
--- source
INSERT INTO t SELECT i FROM generate_series(1, 10) i, generate_series(1, 2);
UPDATE t SET a = a * a;
DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t WHERE a = 49);
--- equal: t
--- holds: SELECT count(*), min(a), max(a) FROM t = 19|1|100

--- case: a table that is not named stays as it is
--- tables
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE other (a int PRIMARY KEY);
--- trandata: ADD TRANDATA {schema}.t
--- extract: TABLE {schema}.t;
--- source
INSERT INTO other VALUES (1);
INSERT INTO t VALUES (1);
--- equal: t
--- holds: SELECT count(*) FROM other = 0

--- case: only inserts
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- extract: IGNOREUPDATES
--- extract: IGNOREDELETES
--- extract: TABLE {schema}.*;
--- extract: GETUPDATES
--- extract: GETDELETES
--- source
INSERT INTO t SELECT generate_series(1, 5);
DELETE FROM t WHERE a > 2;
UPDATE t SET a = -a;
--- holds: SELECT count(*), min(a), max(a) FROM t = 5|1|5

--- case: a key made of several columns in another order than the table's
--- tables
CREATE TABLE t (c text, a int, b date, PRIMARY KEY (b, a));
--- source
INSERT INTO t SELECT 'x', i % 5, date '2026-01-01' + i FROM generate_series(1, 20) i;
UPDATE t SET c = 'y' WHERE a = 2;
UPDATE t SET b = b + 100, a = a + 7 WHERE a = 3;
DELETE FROM t WHERE a = 4;
--- equal: t

--- case: a key with included columns, and a deferrable key
--- tables
CREATE TABLE t (a int, b text, PRIMARY KEY (a) INCLUDE (b));
CREATE TABLE u (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, b text);
--- trandata: ADD TRANDATA {schema}.*, ALLCOLS
--- source
INSERT INTO t VALUES (1, 'one'), (2, 'two');
UPDATE t SET b = 'zwei' WHERE a = 2;
DELETE FROM t WHERE a = 1;
INSERT INTO u VALUES (1, 'one'), (2, 'two');
UPDATE u SET a = 3 - a;
--- equal: t, u

--- case: columns in another order, and one more at the target
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text, c numeric);
--- target tables
CREATE TABLE t (extra text DEFAULT 'here', c numeric, a int PRIMARY KEY, b text);
--- source
INSERT INTO t VALUES (1, 'one', 1.50), (2, 'two', NULL);
UPDATE t SET c = 7 WHERE a = 2;
--- equal: t (a, b, c)
--- holds: SELECT count(*) FROM t WHERE extra = 'here' = 2

--- case: values stored out of line that an update leaves as they are
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text, c int);
ALTER TABLE t ALTER b SET STORAGE EXTERNAL;
--- source
INSERT INTO t SELECT i, repeat(i::text, 20000), 0 FROM generate_series(1, 5) i;
UPDATE t SET c = c + 1;
UPDATE t SET a = a + 10 WHERE a < 3;
--- equal: t

--- case: a key that is stored out of line
--- tables
CREATE TABLE t (a text PRIMARY KEY, b int);
ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
--- source
INSERT INTO t SELECT repeat(i::text, 2500), i FROM generate_series(1, 3) i;
UPDATE t SET b = b + 100;
UPDATE t SET a = 'short' WHERE b = 102;
DELETE FROM t WHERE b = 103;
--- equal: t

--- case: a table renamed while it is replicated goes on under its new name
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
INSERT INTO t VALUES (1);
--- equal: t
--- target
ALTER TABLE t RENAME TO u;
--- source
ALTER TABLE t RENAME TO u;
INSERT INTO u VALUES (2);
--- equal: u
