// SPDX-License-Identifier: MIT
// Heap work of many kinds, each ending in a line that depends on every byte it wrote.
'use strict';
const { execFileSync } = require('child_process');
const { createHash } = require('crypto');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib');

const digest = (data) => createHash('sha256').update(data).digest('hex').slice(0, 16);

// Buffers live outside V8's own heap: malloc's work. 3,000 of them alive, 100,000 come and go.
function bufferChurn(seed, rounds) {
	const alive = new Map();
	const hash = createHash('sha256');
	for (let i = 0; i < rounds; i++) {
		const key = (i * 7919 + seed) % 3000;
		const old = alive.get(key);
		if (old && !old.data.equals(Buffer.alloc(old.data.length, old.born & 255)))
			throw new Error(`buffer ${key} is broken`);
		if (old && i % 50 === 0)
			hash.update(`${key}:`).update(old.data);
		alive.set(key, { born: i, data: Buffer.alloc(64 + ((i * 31) % 9000), i & 255) });
	}
	return hash.digest('hex').slice(0, 16);
}

function jsonRoundTrips() {
	const rows = [];
	for (let i = 0; i < 30000; i++)
		rows.push({ id: i, name: 'n'.repeat(i % 50), list: [i, i / 3, null], nested: { i } });
	const text = JSON.stringify(rows);
	return digest(text + JSON.stringify(JSON.parse(text)));
}

function compression() {
	const data = Buffer.from(Array.from({ length: 400000 }, (_, i) => (i * i) >> 7));
	const parts = [];
	for (const pack of [zlib.gzipSync, zlib.deflateRawSync, zlib.brotliCompressSync]) {
		const options = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 }, level: 6 };
		parts.push(pack(data, options));
	}
	const back = [zlib.gunzipSync, zlib.inflateRawSync, zlib.brotliDecompressSync];
	back.forEach((unpack, i) => {
		if (!unpack(parts[i]).equals(data))
			throw new Error('compressed data came back changed');
	});
	return digest(Buffer.concat(parts));
}

async function compressionThreads() {
	const jobs = Array.from({ length: 64 }, (_, i) => new Promise((resolve, reject) => {
		zlib.deflate(Buffer.alloc(50000, `job ${i} `), (error, packed) =>
			error ? reject(error) : resolve(digest(packed)));
	}));
	return digest((await Promise.all(jobs)).join());
}

async function workers() {
	const results = [0, 1, 2].map((seed) => new Promise((resolve, reject) => {
		const worker = new Worker(__filename, { workerData: seed });
		worker.once('message', resolve);
		worker.once('error', reject);
	}));
	return (await Promise.all(results)).join();
}

async function main() {
	console.log('buffers', bufferChurn(0, 100000));
	console.log('json', jsonRoundTrips());
	console.log('compression', compression());
	console.log('compression threads', await compressionThreads());
	console.log('workers', await workers());
	console.log('child', execFileSync(process.execPath,
		['-e', 'console.log(Buffer.alloc(1e6, "ab").toString().length)']).toString().trim());
}

if (isMainThread)
	main();
else
	parentPort.postMessage(bufferChurn(workerData, 20000));
