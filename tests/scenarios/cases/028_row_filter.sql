--- case: rows are chosen by their values
--- tables
CREATE TABLE t (a int PRIMARY KEY, b text);
--- extract: TABLE {schema}.t, FILTER (a > 1000);
--- source
INSERT INTO t VALUES (1, 'small'), (1001, 'large'), (2000, 'larger');
UPDATE t SET b = 'changed';
DELETE FROM t WHERE a = 2000;
--- holds: SELECT string_agg(a || b, ' ' ORDER BY a) FROM t = 1001changed

--- case: rows that begin and cease to be chosen
--- tables
CREATE TABLE t (a int PRIMARY KEY, b int);
--- extract: TABLE {schema}.t, WHERE (b > 10);
--- replicat: MAP {schema}.t, TARGET {schema}.t, REPERROR (1403, DISCARD);
--- trandata: ADD TRANDATA {schema}.t, ALLCOLS
--- differs: (HELP SUBSCRIPTIONS) a subscription turns an update into an insert or a delete where the row begins or ceases to match; TABLE's WHERE is asked of the new row only: a row that ceases to match keeps its last replicated values, and the update of a row that begins to match finds no row
--- source
INSERT INTO t VALUES (1, 5), (2, 20);
UPDATE t SET b = 15 WHERE a = 1;
UPDATE t SET b = 7 WHERE a = 2;
--- holds: SELECT string_agg(a || ':' || b, ' ' ORDER BY a) FROM t = 2:20
