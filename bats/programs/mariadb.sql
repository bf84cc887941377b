-- SPDX-License-Identifier: MIT
CREATE TABLE item (
	id INT PRIMARY KEY, name VARCHAR(40), weight DECIMAL(12, 4), document TEXT, data BLOB,
	KEY (name), FULLTEXT (document)) ENGINE=InnoDB;
INSERT INTO item
SELECT seq, CONCAT('item-', seq * 7919 % 30013), seq / 3,
	JSON_OBJECT('i', seq, 'list', JSON_ARRAY(seq % 7, seq % 11), 'text', REPEAT('word ', seq % 30)),
	REPEAT(CHAR(seq % 256), seq % 700)
FROM seq_1_to_30000;
CREATE TABLE kept ENGINE=Aria AS SELECT * FROM item WHERE id % 4 = 0;
CHECKSUM TABLE item, kept;

SELECT COUNT(*), SUM(weight), MIN(name), MAX(name), SUM(LENGTH(data)) FROM item;
SELECT JSON_VALUE(document, '$.list[0]') AS k, COUNT(*), SUM(weight) FROM item GROUP BY k ORDER BY k;
SET group_concat_max_len = 10000000;
SELECT MD5(GROUP_CONCAT(name ORDER BY name DESC, id SEPARATOR ',')) FROM item;
SELECT COUNT(*), SUM(a.weight * b.id) FROM item a JOIN item b ON b.name = CONCAT('item-', a.id * 31 % 30013);
SET join_cache_level = 8, optimizer_switch = 'join_cache_hashed=on,mrr=on';
SELECT COUNT(*), SUM(a.id * b.id) FROM item a JOIN kept b ON a.weight = b.weight;
SELECT SUM(total) FROM (SELECT SUM(weight) OVER (PARTITION BY id % 100 ORDER BY name) AS total FROM item) AS s;
WITH RECURSIVE walk(n, m) AS (SELECT 1, 1 UNION ALL SELECT n + 1, m * 7 % 30013 FROM walk WHERE n < 900)
SELECT MD5(GROUP_CONCAT(m ORDER BY n)) FROM walk;
SELECT COUNT(*) FROM item WHERE MATCH (document) AGAINST ('word');
SELECT COUNT(*) FROM item WHERE name REGEXP '^item-([0-9])\\1+$';
SELECT MD5(GROUP_CONCAT(REGEXP_REPLACE(name, '([0-9])([0-9]*)', '\\2\\1') ORDER BY id)) FROM item;

BEGIN;
UPDATE item SET document = JSON_SET(document, '$.changed', id) WHERE id % 3 = 0;
SAVEPOINT half;
DELETE FROM item WHERE id % 2 = 0;
SELECT COUNT(*) FROM item;
ROLLBACK TO half;
DELETE FROM item WHERE id % 5 = 0;
COMMIT;

DELIMITER $$
CREATE PROCEDURE churn(rounds INT)
BEGIN
	DECLARE i INT DEFAULT 0;
	DECLARE caught INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET caught = caught + 1;
	CREATE TEMPORARY TABLE alive (k INT PRIMARY KEY, v LONGTEXT);
	WHILE i < rounds DO
		REPLACE INTO alive VALUES (i % 50, REPEAT('v', i % 500));
		IF i % 10 = 0 THEN
			INSERT INTO alive VALUES (i % 50, 'twice');
		END IF;
		SET i = i + 1;
	END WHILE;
	SELECT caught, COUNT(*), SUM(LENGTH(v)) FROM alive;
END $$
DELIMITER ;
CALL churn(2000);
OPTIMIZE TABLE kept;
CHECKSUM TABLE item, kept;
CHECK TABLE item, kept;
