CREATE SCHEMA shop; CREATE SCHEMA "Größe 2";
CREATE TYPE shop.mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE shop.point3 AS (x int, y numeric, name text);
CREATE DOMAIN shop.positive AS int CHECK (VALUE > 0);
CREATE FUNCTION shop.doubled(n int) RETURNS int LANGUAGE sql IMMUTABLE AS $$SELECT --
-- Name: fake; Type: TABLE; Schema: shop; Owner: nobody
--
n * 2$$;
CREATE TABLE shop.plain (id int PRIMARY KEY, small smallint, big bigint, amount numeric(12, 2), at timestamptz, day date, flag bool,
  name text, code varchar(10), raw bytea, pause interval, doc jsonb, old json, ids int[], names text[], place inet, mark uuid,
  span int4range, bits bit varying, words tsvector, how regclass, money money);
INSERT INTO shop.plain SELECT n, n % 100, n * 1000000007::bigint, n / 7.0, '2026-01-01'::timestamptz + n * interval '1 min',
  '2026-01-01'::date + n, n % 2 = 0, E'ta\tb\\ n\n' || n, 'c' || n, decode(md5(n::text), 'hex'), n * interval '1 sec',
  jsonb_build_object('n', n), json_build_object('n', n), ARRAY[n, NULL, 3], ARRAY['a', NULL, 'b"' || n], '10.0.0.1', gen_random_uuid(),
  int4range(n, n + 5), B'1011', to_tsvector('the fat cat ' || n), 'shop.plain'::regclass, n::money
  FROM generate_series(1, 2000) n;
INSERT INTO shop.plain (id) VALUES (-1);
CREATE INDEX plain_name ON shop.plain (name); CREATE UNIQUE INDEX plain_expr ON shop.plain (shop.doubled(id)) WHERE id > 0;
CREATE INDEX plain_words ON shop.plain USING gin (words);
CREATE TABLE shop.typed (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m shop.mood, ms shop.mood[], p shop.point3,
  ps shop.point3[], n shop.positive, twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO shop.typed (m, ms, p, ps, n) SELECT 'ok'::shop.mood, '{sad,happy}'::shop.mood[], ROW(n, n / 3.0, 'x,"y')::shop.point3, ARRAY[ROW(1, 2, 'z')::shop.point3], n
  FROM generate_series(1, 300) n;
CREATE TABLE shop.enums (id serial PRIMARY KEY, m shop.mood NOT NULL, n shop.positive); INSERT INTO shop.enums (m, n) VALUES ('sad', 4);
CREATE UNLOGGED TABLE shop.quick (id bigserial PRIMARY KEY, what text); INSERT INTO shop.quick (what) VALUES ('a'), ('b');
CREATE TABLE shop.nothing (); INSERT INTO shop.nothing DEFAULT VALUES; INSERT INTO shop.nothing DEFAULT VALUES;
CREATE TABLE shop.computed (a int GENERATED ALWAYS AS (7) STORED); INSERT INTO shop.computed DEFAULT VALUES;
CREATE TABLE shop.empty (id int PRIMARY KEY);
CREATE TABLE "Größe 2"."Ta ""b""; %s" ("Sp alte" int PRIMARY KEY, "ü%" text);
INSERT INTO "Größe 2"."Ta ""b""; %s" SELECT n, 'ü' || n FROM generate_series(1, 50) n;
CREATE TABLE shop.sales (id int, region text, at date, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE shop.sales_n PARTITION OF shop.sales FOR VALUES IN ('n');
CREATE TABLE shop.sales_s PARTITION OF shop.sales FOR VALUES IN ('s') PARTITION BY RANGE (id);
CREATE TABLE shop.sales_s1 PARTITION OF shop.sales_s FOR VALUES FROM (0) TO (500);
CREATE TABLE shop.sales_s2 PARTITION OF shop.sales_s DEFAULT;
CREATE INDEX sales_at ON shop.sales (at);
INSERT INTO shop.sales SELECT n, CASE n % 2 WHEN 0 THEN 'n' ELSE 's' END, '2026-01-01' FROM generate_series(1, 1000) n;
CREATE TABLE shop.parent (id int, what text); CREATE TABLE shop.child (more int) INHERITS (shop.parent);
INSERT INTO shop.parent VALUES (1, 'p'); INSERT INTO shop.child VALUES (2, 'c', 3);
CREATE TABLE shop.dropped (a int, gone text, b text); INSERT INTO shop.dropped VALUES (1, 'x', 'y');
ALTER TABLE shop.dropped DROP COLUMN gone;
CREATE TABLE shop.orders (id int PRIMARY KEY, plain int REFERENCES shop.plain, self int REFERENCES shop.orders, note text,
  CONSTRAINT long_note CHECK (length(note) < 1000), EXCLUDE USING gist (int4range(id, id + 1) WITH &&));
INSERT INTO shop.orders SELECT n, n, greatest(n - 1, 1), 'n' FROM generate_series(1, 500) n;
ALTER TABLE shop.orders CLUSTER ON orders_pkey; CREATE UNIQUE INDEX orders_note ON shop.orders (note, id);
ALTER TABLE shop.orders ALTER note SET NOT NULL; ALTER TABLE shop.orders REPLICA IDENTITY USING INDEX orders_note;
CREATE FUNCTION shop.changed() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := 'fired'; RETURN NEW; END$$;
CREATE TRIGGER orders_changed BEFORE INSERT OR UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.changed();
CREATE VIEW shop.big AS SELECT id, name, count(*) FROM shop.plain GROUP BY id;
CREATE MATERIALIZED VIEW shop.sums AS SELECT region, count(*) FROM shop.sales GROUP BY region; CREATE UNIQUE INDEX ON shop.sums (region);
CREATE MATERIALIZED VIEW shop.sums2 AS SELECT sum(count) AS n FROM shop.sums;
CREATE MATERIALIZED VIEW shop.unfilled AS SELECT 1 AS a WITH NO DATA;
CREATE SEQUENCE shop.numbers START 100 INCREMENT 5; SELECT nextval('shop.numbers'), nextval('shop.numbers');
CREATE SEQUENCE shop.unused;
CREATE TABLE shop.secure (id int PRIMARY KEY, who text); INSERT INTO shop.secure VALUES (1, 'x');
ALTER TABLE shop.secure ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON shop.secure USING (who = CURRENT_USER);
CREATE STATISTICS shop.related ON id, small FROM shop.plain;
CREATE RULE never AS ON DELETE TO shop.parent DO INSTEAD NOTHING;
COMMENT ON TABLE shop.plain IS 'it''s; plain'; COMMENT ON INDEX shop.plain_name IS 'an index'; GRANT SELECT ON shop.plain TO pg_monitor;
