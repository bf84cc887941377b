-- SPDX-License-Identifier: MIT
-- A database in memory: rows, indices, joins, groups, text and JSON, and much of it deleted again.
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price INTEGER, note TEXT);
CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, day INTEGER, number INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO item SELECT i, printf('item %d of %x', i, i * 2654435761 % 65536), i * 37 % 1000,
	json_object('size', i % 7, 'tags', json_array(i % 3, i % 5, 'word' || i % 11)) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
INSERT INTO sale SELECT i, i * 48271 % 20000 + 1, i * 16807 % 365, i % 9 + 1,
	substr('some words of many lengths to keep', 1, i % 34) || i FROM n;
CREATE INDEX sale_item ON sale (item, day);
CREATE INDEX item_name ON item (name);
SELECT count(*), sum(number * price) FROM sale JOIN item ON item.id = sale.item;
SELECT day, count(*), group_concat(DISTINCT number) FROM sale GROUP BY day ORDER BY 2 DESC LIMIT 3;
SELECT json_extract(note, '$.tags[2]') AS tag, count(*), sum(price) FROM item GROUP BY tag ORDER BY tag;
SELECT upper(substr(note, 1, 9)) AS word, count(*) FROM sale GROUP BY word ORDER BY 2 DESC, 1 LIMIT 3;
UPDATE sale SET note = note || ' again ' || day WHERE id % 3 = 0;
UPDATE item SET note = json_set(note, '$.sold', (SELECT sum(number) FROM sale WHERE item = item.id));
DELETE FROM sale WHERE day % 5 = 1;
SELECT count(*), max(length(note)), sum(length(note)) FROM sale;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
SELECT count(*) FROM (SELECT (SELECT name FROM item WHERE id = i) AS a,
	(SELECT group_concat(note, '') FROM sale WHERE item = i) AS b FROM n) WHERE length(b) > 100;
VACUUM;
SELECT count(*), sum(length(name)) FROM item WHERE name LIKE 'item 1%';
