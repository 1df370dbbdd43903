--- case: a temporal primary key
--- tables
CREATE EXTENSION IF NOT EXISTS btree_gist SCHEMA public;
CREATE TABLE t (id int4range, valid daterange, a text, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
--- source
INSERT INTO t VALUES ('[1,2)', '[2026-01-01,2026-02-01)', 'a'), ('[1,2)', '[2026-02-01,2026-03-01)', 'b'), ('[2,3)', '[2026-01-01,infinity)', 'c');
UPDATE t SET a = upper(a) WHERE id = '[1,2)';
UPDATE t SET valid = '[2026-05-01,2026-06-01)' WHERE a = 'B';
DELETE FROM t WHERE id = '[2,3)';
--- equal: t

--- case: a temporal unique constraint and no key
--- tables
CREATE TABLE t (id int4range NOT NULL, valid daterange NOT NULL, a text, UNIQUE (id, valid WITHOUT OVERLAPS));
--- source
INSERT INTO t VALUES ('[1,2)', '[2026-01-01,2026-02-01)', 'a'), ('[2,3)', '[2026-01-01,infinity)', NULL);
UPDATE t SET a = 'x' WHERE id = '[2,3)';
DELETE FROM t WHERE id = '[1,2)';
--- equal: t
