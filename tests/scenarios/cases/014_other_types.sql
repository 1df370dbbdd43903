--- case: wider and other types at the target
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b int, c varchar(10), d timestamp, e text, f numeric(10,2), g json, h int[]);
--- target tables
CREATE TABLE t (a bigint PRIMARY KEY, b numeric, c text, d timestamp(3), e varchar(5), f float8, g jsonb, h bigint[]);
--- source
INSERT INTO t VALUES (1, 2, 'three', '2026-01-01 00:00:00.123', 'abc', 1.25, '{"a": 1}', '{1,2}');
UPDATE t SET b = -7, h = '{}' WHERE a = 1;
--- holds: SELECT * FROM t = 1|-7|three|2026-01-01 00:00:00.123|abc|1.25|{"a": 1}|{}

--- case: a value that the target's type does not take
--- source tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- target tables
CREATE TABLE t (a int PRIMARY KEY, b int);
--- source
INSERT INTO t VALUES (1, '1');
--- equal: t
--- source
INSERT INTO t VALUES (2, 'not a number');
--- abends: 22P02
--- target
ALTER TABLE t ALTER b TYPE text;
--- start
--- equal: t
