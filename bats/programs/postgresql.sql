-- SPDX-License-Identifier: MIT
CREATE TABLE item AS
SELECT i AS id, 'item-' || i * 7919 % 60013 AS name, (i / 3.0)::numeric(12, 4) AS weight,
	jsonb_build_object('i', i, 'list', jsonb_build_array(i % 7, i % 11), 'text', repeat('x', i % 90)) AS document,
	ARRAY[i % 5, i % 13] AS tags
FROM generate_series(1, 60000) AS i;
CREATE INDEX ON item (name);
CREATE INDEX ON item USING gin (document);
CREATE INDEX ON item USING gin (tags);
ANALYZE item;

SELECT count(*), sum(weight), min(name), max(name), sum(length(document::text)) FROM item;
SELECT document -> 'list' -> 0 AS k, count(*), sum(weight) FROM item GROUP BY k ORDER BY k;
SELECT md5(string_agg(name, ',' ORDER BY name COLLATE "C" DESC, id)) FROM item;
SELECT count(*) FROM item WHERE document @> '{"list": [3]}';
SELECT count(*) FROM item WHERE tags && ARRAY[11, 12];

-- Hash and merge joins, in memory and spilling, with and without parallel workers.
SELECT count(*), sum(a.weight * b.id) FROM item a JOIN item b ON b.name = 'item-' || a.id * 31 % 60013;
SET enable_hashjoin = off;
SELECT count(*), sum(a.weight * b.id) FROM item a JOIN item b ON b.name = 'item-' || a.id * 31 % 60013;
RESET enable_hashjoin;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(DISTINCT name), sum(length(name)), max(document ->> 'text') FROM item;
SELECT sum(total) FROM (SELECT sum(weight) OVER (PARTITION BY id % 100 ORDER BY name) AS total FROM item) AS s;
RESET ALL;

-- Recursion, regular expressions, full text search.
WITH RECURSIVE walk(id, path) AS (
	SELECT 1, ARRAY[1]
	UNION ALL
	SELECT (id * 7) % 60013, path || (id * 7) % 60013 FROM walk WHERE cardinality(path) < 300)
SELECT md5(array_to_string(max(path), ',')) FROM walk;
SELECT count(*) FROM item WHERE name ~ '^item-(\d)\1+$';
SELECT md5(string_agg(regexp_replace(name, '(\d)(\d*)', '\2\1'), ',' ORDER BY id)) FROM item;
SELECT count(*), sum(ts_rank(to_tsvector('english', name || ' running ' || (document ->> 'text')), to_tsquery('english', 'run & !x'))) > 0
FROM item WHERE id < 5000;

-- A function with loops, exceptions and savepoints.
CREATE FUNCTION churn(rounds int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	alive jsonb := '{}';
	caught int := 0;
BEGIN
	FOR i IN 1..rounds LOOP
		alive := jsonb_set(alive, ARRAY['k' || i % 50], to_jsonb(repeat('v', i % 500)));
		BEGIN
			IF i % 10 = 0 THEN
				PERFORM 1 / (i % 10);
			END IF;
		EXCEPTION WHEN division_by_zero THEN
			caught := caught + 1;
		END;
	END LOOP;
	RETURN caught || ' ' || md5(alive::text);
END $$;
SELECT churn(3000);

BEGIN;
UPDATE item SET document = document || jsonb_build_object('changed', id) WHERE id % 3 = 0;
SAVEPOINT half;
DELETE FROM item WHERE id % 2 = 0;
SELECT count(*) FROM item;
ROLLBACK TO half;
DELETE FROM item WHERE id % 5 = 0;
COMMIT;
VACUUM ANALYZE item;
SELECT count(*), sum(length(document::text)) FROM item;
CLUSTER item USING item_name_idx;
