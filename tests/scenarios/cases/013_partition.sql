--- case: partitions on both sides, cut differently
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY LIST (a);
CREATE TABLE t1 (b text, a int NOT NULL);
ALTER TABLE t ATTACH PARTITION t1 FOR VALUES IN (1, 2, 3);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (4, 5, 6);
CREATE TABLE t0 PARTITION OF t DEFAULT;
--- target tables
CREATE TABLE t (c text DEFAULT 'here', a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (5) PARTITION BY LIST (a);
CREATE TABLE t1_1 (b text, c text DEFAULT 'there', a int NOT NULL);
ALTER TABLE t1 ATTACH PARTITION t1_1 FOR VALUES IN (1, 3);
CREATE TABLE t1_0 PARTITION OF t1 DEFAULT;
CREATE TABLE t2 PARTITION OF t DEFAULT;
--- source
INSERT INTO t VALUES (1, 'a'), (5, 'b'), (0, 'c');
INSERT INTO t1 (a, b) VALUES (3, 'd');
UPDATE t SET a = 2 WHERE a = 1;
UPDATE t SET a = 6 WHERE a = 5;
UPDATE t SET a = 4, b = 'moved' WHERE a = 0;
UPDATE t1 SET b = 'directly' WHERE a = 3;
DELETE FROM t WHERE a = 2;
--- equal: t (a, b)

--- case: partitions at the source, one table at the target
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY HASH (a);
CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE t2 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 20) i;
UPDATE t SET a = a + 100 WHERE a < 10;
DELETE FROM t WHERE a BETWEEN 12 AND 15;
--- equal: t
--- source
TRUNCATE t;
INSERT INTO t VALUES (1, 'again');
--- equal: t

--- case: a partition that is attached, written and detached
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- source
INSERT INTO t VALUES (1, 'one');
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20);
INSERT INTO t VALUES (11, 'eleven');
UPDATE t SET b = 'elf' WHERE a = 11;
CREATE TABLE t3 (a int PRIMARY KEY, b text);
ALTER TABLE t ATTACH PARTITION t3 FOR VALUES FROM (20) TO (30);
INSERT INTO t VALUES (21, 'new');
UPDATE t SET a = 12 WHERE a = 21;
--- equal: t

--- case: truncate of a root empties every partition
--- tables
CREATE TABLE t (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
CREATE TABLE t2 PARTITION OF t DEFAULT;
--- source
INSERT INTO t VALUES (1), (11);
TRUNCATE t;
INSERT INTO t VALUES (2), (12);
--- equal: t
--- case: children by inheritance keep their own rows
--- tables
CREATE TABLE parent (a int PRIMARY KEY, b text);
CREATE TABLE child (c int, PRIMARY KEY (a)) INHERITS (parent);
--- trandata: ADD TRANDATA {schema}.parent
--- trandata: ADD TRANDATA {schema}.child
--- source
INSERT INTO parent VALUES (1, 'p');
INSERT INTO child VALUES (2, 'c', 3);
UPDATE parent SET b = b || '!';
--- equal: parent, child
--- source
TRUNCATE ONLY parent;
--- equal: parent, child
--- holds: SELECT count(*) FROM child = 1
--- source
DELETE FROM parent;
--- equal: parent, child
