-- The demo's rows, computed from their number and the seed (the loader puts it in for @seed@): the same seed, the same shop.

CREATE FUNCTION pg_temp.pick(n bigint, salt bigint, choices bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ((hashint8extended(n, salt + @seed@) % choices) + choices) % choices $$;

CREATE FUNCTION pg_temp.hex(n bigint, salt bigint, length int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT string_agg(md5((n * 1000003 + salt + @seed@ + i)::text), '' ORDER BY i) FROM generate_series(1, length / 32 + 1) i $$;

INSERT INTO customers (name, email, born, credit_limit, rating, home, registered, active, notes)
SELECT 'Customer ' || i,
       'c' || i || '@example.com',
       date '1940-01-01' + pg_temp.pick(i, 1, 25000)::int,
       pg_temp.pick(i, 2, 900000) / 100.0,
       CASE WHEN pg_temp.pick(i, 3, 10) = 0 THEN 'NaN'::real ELSE pg_temp.pick(i, 3, 50) / 10.0 END,
       ROW(pg_temp.pick(i, 4, 180000) / 1000.0 - 90, pg_temp.pick(i, 5, 360000) / 1000.0 - 180)::geo_point,
       timestamptz '2023-01-01 00:00Z' + pg_temp.pick(i, 6, 63072000) * interval '1 second',
       pg_temp.pick(i, 7, 20) > 0,
       CASE pg_temp.pick(i, 8, 4)
            WHEN 0 THEN NULL
            WHEN 1 THEN ''
            WHEN 2 THEN E'tab\there, quote '' and \\ back'
            ELSE 'žluťoučký 客戶 №' || i END
  FROM generate_series(1, 10000) i;

INSERT INTO addresses (customer_id, kind, street, city, postcode)
SELECT 1 + pg_temp.pick(i, 11, 10000),
       (ARRAY['home', 'work', 'bill'])[1 + pg_temp.pick(i, 12, 3)],
       pg_temp.pick(i, 13, 200) || ' Long Street',
       (ARRAY['Bergen', 'Łódź', 'Malmö', 'Porto', '京都'])[1 + pg_temp.pick(i, 14, 5)],
       NULLIF(pg_temp.pick(i, 15, 99999)::text, '0')
  FROM generate_series(1, 12000) i;

INSERT INTO categories SELECT i, NULLIF(i / 4, 0), 'Category ' || i FROM generate_series(1, 40) i;

INSERT INTO products
SELECT 'SKU-' || lpad(i::text, 5, '0'),
       1 + pg_temp.pick(i, 21, 40),
       'Product ' || i,
       1 + pg_temp.pick(i, 22, 99900) / 100.0,
       CASE WHEN pg_temp.pick(i, 23, 9) = 0 THEN 'Infinity'::float8 ELSE pg_temp.pick(i, 23, 90000) / 1000.0 END,
       CASE pg_temp.pick(i, 24, 3)
            WHEN 0 THEN '{}'
            WHEN 1 THEN ARRAY['new', NULL]
            ELSE ARRAY['sale, now', 'say "hi"'] END,
       CASE WHEN pg_temp.pick(i, 25, 5) > 0 THEN daterange(date '2024-01-01' + pg_temp.pick(i, 26, 300)::int, NULL) END
  FROM generate_series(1, 2000) i;

INSERT INTO inventory
SELECT 1 + (i - 1) / 2000,
       'SKU-' || lpad((1 + (i - 1) % 2000)::text, 5, '0'),
       1000 + pg_temp.pick(i, 31, 9000),
       CASE WHEN pg_temp.pick(i, 32, 50) = 0 THEN 'infinity'
            ELSE timestamp '2024-06-01' + pg_temp.pick(i, 32, 8640000) * interval '1 ms' END
  FROM generate_series(1, 4000) i;

INSERT INTO orders (customer_id, status, ordered, promised, comment)
SELECT 1 + pg_temp.pick(i, 41, 10000),
       (enum_range(NULL::order_status))[1 + pg_temp.pick(i, 42, 3)],
       timestamptz '2024-01-01 00:00Z' + i * interval '17 minutes',
       pg_temp.pick(i, 43, 40) * interval '6 hours',
       CASE WHEN pg_temp.pick(i, 44, 3) = 0 THEN 'leave at the door' END
  FROM generate_series(1, 20000) i;

INSERT INTO order_items (order_id, line, sku, quantity, price)
SELECT 1 + (i - 1) % 20000,
       1 + (i - 1) / 20000,
       'SKU-' || lpad((1 + pg_temp.pick(i, 51, 2000))::text, 5, '0'),
       1 + pg_temp.pick(i, 52, 9),
       1 + pg_temp.pick(i, 53, 99900) / 100.0
  FROM generate_series(1, 50000) i;

INSERT INTO payments
SELECT md5('payment' || i)::uuid,
       i,
       1 + pg_temp.pick(i, 61, 500000) / 100.0,
       timestamptz '2024-01-02 00:00Z' + i * interval '17 minutes',
       CASE WHEN pg_temp.pick(i, 62, 2) = 0
            THEN format('{"card": "%s", "b":1,  "a":[1, 2]}', pg_temp.pick(i, 63, 9999))::json END
  FROM generate_series(1, 15000) i;

INSERT INTO events
SELECT timestamptz '2024-03-01 00:00Z' + pg_temp.pick(i, 71, 8640000) * interval '1 second',
       (ARRAY['view', 'click', 'buy'])[1 + pg_temp.pick(i, 72, 3)],
       ('10.' || pg_temp.pick(i, 73, 256) || '.' || pg_temp.pick(i, 74, 256) || '.1')::inet,
       jsonb_build_object('page', pg_temp.pick(i, 75, 500), 'ok', pg_temp.pick(i, 76, 2) = 0),
       NULLIF(pg_temp.pick(i, 77, 6), 0)
  FROM generate_series(1, 10000) i;

INSERT INTO documents (title, body, scan, meta, pages, flags)
SELECT 'Document ' || i,
       pg_temp.hex(i, 81, 10000),
       decode(pg_temp.hex(i, 82, 3000), 'hex'),
       jsonb_build_object('language', 'en', 'n', i),
       ARRAY[i, NULL, pg_temp.pick(i, 83, 100)]::int[],
       pg_temp.pick(i, 84, 256)::int::bit(8)
  FROM generate_series(1, 400) i;

INSERT INTO "Audit Trail" ("User", "When", "select")
SELECT 'user' || pg_temp.pick(i, 91, 50),
       timestamp '2024-05-05' + i * interval '13.007 seconds',
       NULLIF('row ' || pg_temp.pick(i, 92, 5), 'row 0')
  FROM generate_series(1, 4000) i;

INSERT INTO measurements
SELECT 1 + i % 40,
       timestamp '2023-11-01' + (i / 40) * interval '3 days',
       pg_temp.pick(i, 95, 1000000) / 7.0,
       NULLIF(pg_temp.pick(i, 96, 4)::text, '0')
  FROM generate_series(1, 12000) i;

DROP FUNCTION pg_temp.pick, pg_temp.hex;
