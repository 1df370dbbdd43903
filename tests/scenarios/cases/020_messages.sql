--- case: logical messages of others change nothing
--- tables
CREATE TABLE t (a int PRIMARY KEY);
--- source
SELECT pg_logical_emit_message(true, 'other', 'a transactional message');
SELECT pg_logical_emit_message(false, 'other', 'and one beside it');
BEGIN;
INSERT INTO t VALUES (1);
SELECT pg_logical_emit_message(true, 'ggs', '{"not":"ours"}');
COMMIT;
BEGIN;
SELECT pg_logical_emit_message(false, 'other', 'kept though its transaction is not');
INSERT INTO t VALUES (2);
ROLLBACK;
--- equal: t
