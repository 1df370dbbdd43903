-- The statements of mysql_9_7.binlog, run on MySQL 9.7 with binlog_row_metadata = FULL and gtid_mode = ON.
CREATE DATABASE recorded;
USE recorded;
CREATE TABLE kinds (id int PRIMARY KEY, big bigint unsigned, price decimal(10,2), bits bit(5), tags set('a','b'), size enum('s','l'),
  seen timestamp(6) NULL, hidden int INVISIBLE, doubled int AS (id * 2) STORED, shape point, place vector(2), name varchar(20)
  CHARACTER SET latin1, data blob);
INSERT INTO kinds (id, big, price, bits, tags, size, seen, hidden, shape, place, name, data) VALUES
  (1, 18446744073709551615, -1.25, b'10101', 'a,b', 'l', '2026-01-02 03:04:05.678901', 7, POINT(1, 2), TO_VECTOR('[1,-0.5]'), 'é',
   X'00FF'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE docs (id int PRIMARY KEY, doc json, other json, note varchar(10));
INSERT INTO docs VALUES (1, '{"b": [1, 2.5, true, null, "x"], "a": {"k": -1}}', '[1, [2]]', 'n'), (2, '"text"', NULL, NULL);
SET binlog_row_value_options = 'PARTIAL_JSON';
UPDATE docs SET doc = JSON_SET(doc, '$.b[1]', 'two'), note = 'm' WHERE id = 1;
UPDATE docs SET doc = JSON_REMOVE(doc, '$.b[0]'), other = JSON_REPLACE(other, '$[1][0]', CAST(9 AS JSON)) WHERE id = 1;
UPDATE docs SET doc = JSON_SET(JSON_SET(doc, '$.a.k', 5), '$."new key"', JSON_ARRAY(1, 'é')) WHERE id = 1;
UPDATE docs SET doc = JSON_INSERT(doc, '$.c', 1), note = NULL;
UPDATE docs SET doc = NULL WHERE id = 2;
SET binlog_row_value_options = '';
SET binlog_transaction_compression = ON;
BEGIN;
INSERT INTO docs (id, note) VALUES (3, 'packed'), (4, 'packed');
DELETE FROM docs WHERE id = 3;
COMMIT;
SET binlog_transaction_compression = OFF;
SET gtid_next = 'AUTOMATIC:tagged';
INSERT INTO docs (id) VALUES (5);
SET gtid_next = AUTOMATIC;
CREATE TABLE copies AS SELECT id, note FROM docs WHERE id = 4;
XA START 'x';
INSERT INTO docs (id) VALUES (6);
XA END 'x';
XA PREPARE 'x';
XA COMMIT 'x';
XA START 'y';
INSERT INTO docs (id) VALUES (7);
XA END 'y';
XA COMMIT 'y' ONE PHASE;
UPDATE docs SET id = 8 WHERE id = 7;
TRUNCATE copies;
