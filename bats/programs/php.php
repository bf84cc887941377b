<?php
// SPDX-License-Identifier: MIT
// Heap work of many kinds, each ending in a line that depends on every byte it wrote.
declare(strict_types=1);

function show(string $part, mixed ...$values): void
{
	echo $part, ' ', substr(hash('sha256', serialize($values)), 0, 16), "\n";
}

// Arrays: strings of very different sizes come and go under 3,000 keys.
function arrays(int $rounds): array
{
	$alive = [];
	for ($i = 0; $i < $rounds; $i++) {
		$key = 'k' . $i * 7919 % 3000;
		if (isset($alive[$key])) {
			[$born, $text] = $alive[$key];
			if ($text !== str_repeat(chr(65 + $born % 26), $born % 700)) {
				throw new Exception("entry $key is broken");
			}
		}
		$alive[$key] = [$i, str_repeat(chr(65 + $i % 26), $i % 700)];
		if ($i % 11 === 0) {
			unset($alive['k' . $i % 3000]);
		}
	}
	ksort($alive);
	return $alive;
}

function json(): array
{
	$rows = [];
	for ($i = 0; $i < 3000; $i++) {
		$rows["row $i"] = ['id' => $i, 'list' => range(0, $i % 20), 'text' => str_repeat('ä', $i % 40)];
	}
	$text = json_encode($rows, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);
	if (json_decode($text, true) !== $rows || unserialize(serialize($rows)) !== $rows) {
		throw new Exception('the rows came back changed');
	}
	return [$text];
}

function strings(): array
{
	$text = '';
	for ($i = 0; $i < 20000; $i++) {
		$text .= sprintf("%05d:%s\n", $i, strrev((string) ($i * $i)));
		if (strlen($text) > 150000) {
			$text = substr($text, -1000);
		}
	}
	preg_match_all('/^(\d+):(\d*?)0*$/m', $text, $found, PREG_SET_ORDER);
	$text = preg_replace_callback('/\d{3,}/', fn ($m) => dechex((int) $m[0]), $text);
	return [$found, strtoupper($text), explode("\n", wordwrap($text, 17, "\n", true))];
}

// Objects in cycles: the cycle collector's work.
class Node
{
	public ?Node $self = null;
	public array $children = [];

	public function __construct(public string $name)
	{
		$this->self = $this;
	}
}

function cycles(): int
{
	for ($i = 0; $i < 30000; $i++) {
		$node = new Node("node $i");
		for ($j = 0; $j < $i % 4; $j++) {
			$node->children[] = new Node("child $j");
		}
	}
	return gc_collect_cycles() >= 0 ? count($node->children) : -1;
}

function generators(int $rounds): int
{
	$numbers = (function () use ($rounds) {
		for ($i = 0; $i < $rounds; $i++) {
			yield $i => str_repeat('g', $i % 30);
		}
	})();
	$sum = 0;
	foreach ($numbers as $i => $text) {
		$sum += $i * strlen($text);
	}
	return $sum;
}

// Under the server's load a request is much smaller than one run of the program.
$rounds = PHP_SAPI === 'cli' ? 300000 : 500;
show('arrays', arrays($rounds));
if (PHP_SAPI === 'cli') {
	show('json', json());
	show('strings', strings());
	show('cycles', cycles());
}
show('generators', generators($rounds));
