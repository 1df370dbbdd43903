-- Forms of statements that PostgreSQL's regression tests use, and that once arrived wrongly.
CREATE TABLE people (name text, age int4, CHECK (age > 0));
CREATE TABLE staff (salary int4) INHERITS (people);
INSERT INTO people VALUES ('a', 1), ('b', 2), ('b', 2);
INSERT INTO staff VALUES ('a', 1, 10), ('b', 2, 20);
UPDATE people SET age = age + 1;
UPDATE ONLY people SET age = 9 WHERE name = 'b';
DELETE FROM ONLY people WHERE name = 'a';
ALTER TABLE people ADD COLUMN since timestamptz DEFAULT clock_timestamp();
ALTER TABLE staff NO INHERIT people;
INSERT INTO people VALUES ('c', 0);  -- fails
CREATE TEMPORARY TABLE some_rows AS SELECT * FROM people;
CREATE TABLE kept (id int PRIMARY KEY);
CREATE TABLE dropped (id int REFERENCES kept);
DROP TABLE some_rows, dropped;
ALTER TABLE kept ADD COLUMN whole kept;  -- fails
CREATE UNLOGGED TABLE fast (id int PRIMARY KEY, v text);
INSERT INTO fast SELECT g, 'v' || g FROM generate_series(1, 20) g;
ALTER TABLE fast SET LOGGED;
UPDATE fast SET v = 'new' WHERE id < 5;
CREATE TABLE parts (id int, v text) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 (v text, gone int, id int);
ALTER TABLE parts_1 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT g, 'p' || g FROM generate_series(1, 20) g;
CREATE INDEX ON parts (v);
REINDEX TABLE parts;
TRUNCATE parts_0;

-- A type of a column changes without an expression: by a cast of the user that gives another result in each database, and
-- by casts that depend on settings.
CREATE TYPE single AS (a int);
CREATE FUNCTION any_text(single) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN gen_random_uuid()::text; END $$;
CREATE CAST (single AS text) WITH FUNCTION any_text(single) AS ASSIGNMENT;
CREATE TABLE casted (id int PRIMARY KEY, v single, moment timestamp);
INSERT INTO casted VALUES (1, '(1)', '2026-01-01'), (2, '(2)', '2026-07-01');
SET TimeZone = 'Asia/Tokyo';
ALTER TABLE casted ALTER moment TYPE timestamptz;
RESET TimeZone;
ALTER TABLE casted ALTER v TYPE text;
