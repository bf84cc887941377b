-- SPDX-License-Identifier: MIT
PRAGMA cache_size = 200;
PRAGMA threads = 2;
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, weight REAL, document TEXT, data BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item
SELECT i, printf('item-%d', i * 7919 % 60013), i / 3.0,
	json_object('i', i, 'list', json_array(i % 7, i % 11), 'text', printf('%.*c', i % 90, 'x')),
	zeroblob(i % 200)
FROM n;
CREATE INDEX item_name ON item (name);
CREATE INDEX item_expression ON item (json_extract(document, '$.list[1]'), weight);
ANALYZE;

-- Sort, group, join, window.
SELECT count(*), sum(length(data)), min(name), max(name), round(sum(weight), 3) FROM item;
SELECT json_extract(document, '$.list[0]') AS k, count(*), sum(length(document)) FROM item
GROUP BY k ORDER BY k;
SELECT a.id, b.id FROM item a JOIN item b ON b.name = 'item-' || (a.id * 31 % 60013)
ORDER BY a.document, b.id LIMIT 5 OFFSET 30000;
SELECT id, total FROM (
	SELECT id, sum(weight) OVER (PARTITION BY id % 100 ORDER BY name ROWS 5 PRECEDING) AS total
	FROM item) ORDER BY total DESC, id LIMIT 5;
SELECT length(group_concat(name, ', ')) FROM (SELECT name FROM item ORDER BY name);

-- Change much, undo some, delete half.
BEGIN;
UPDATE item SET document = json_set(document, '$.changed', id), data = CAST(name AS BLOB)
WHERE id % 3 = 0;
SAVEPOINT half;
DELETE FROM item WHERE id % 2 = 0;
SELECT count(*) FROM item;
ROLLBACK TO half;
DELETE FROM item WHERE id % 5 = 0;
COMMIT;

-- Full text search.
CREATE VIRTUAL TABLE words USING fts5 (body);
INSERT INTO words SELECT name || ' ' || document FROM item;
SELECT count(*) FROM words WHERE words MATCH 'changed';
SELECT count(*) FROM words WHERE words MATCH '"item" AND (7 OR 12)';
INSERT INTO words (words) VALUES ('optimize');
DROP TABLE words;

VACUUM;
PRAGMA integrity_check;
.dump
