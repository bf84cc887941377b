# SPDX-License-Identifier: MIT
"""Heap work of many kinds, each ending in a line that depends on every byte it wrote."""
import ctypes
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import zlib

rng = random.Random(20)
percent = int(os.environ.get("WORK_PERCENT", "100"))


def rounds(full):
    return range(full * percent // 100)


def digest(*values):
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def document(depth):
    kind = rng.randrange(4) if depth else rng.randrange(2)
    if kind == 0:
        return rng.random()
    if kind == 1:
        return "".join(rng.choices("aä€😀\"\\\n", k=rng.randrange(40)))
    if kind == 2:
        return [document(depth - 1) for _ in range(rng.randrange(8))]
    return {f"k{i}": document(depth - 1) for i in range(rng.randrange(8))}


def json_round_trips():
    texts = []
    for _ in rounds(1500):
        value = document(6)
        text = json.dumps(value, indent=rng.choice((None, 1)))
        assert json.loads(text) == value
        texts.append(text)
    return texts


def dict_churn():
    """Keep 10,000 entries of very different sizes alive while 200,000 come and go."""
    alive = {}
    check = 0
    for i in rounds(200_000):
        key = rng.randrange(10_000)
        old = alive.get(key)
        if old is not None:
            born, data = old
            assert len(data) == born * 7919 % 900 and data == bytes([born & 255]) * len(data)
            check = zlib.crc32(data, check)
        alive[key] = (i, bytes([i & 255]) * (i * 7919 % 900))
    return check, len(alive)


def growing_buffers():
    """realloc: up in small steps, down in large ones."""
    buffers = [bytearray() for _ in range(16)]
    for i in rounds(20_000):
        buffer = buffers[i % 16]
        buffer.extend(i.to_bytes(4, "little") * (1 + i % 97))
        if len(buffer) > 1_000_000:
            del buffer[1000:]
    return [zlib.crc32(buffer) for buffer in buffers]


def threads():
    """Objects made by one thread and freed by another."""
    shelves = [[] for _ in range(8)]
    results = [0] * 8

    def work(me):
        for i in rounds(4000):
            shelves[(me + 1) % 8].append(zlib.compress(b"%d-%d" % (me, i) * (i % 50), 1))
        for block in [b"%d" % i * 100 for i in rounds(4000)]:
            results[me] = zlib.crc32(block, results[me])

    workers = [threading.Thread(target=work, args=(me,)) for me in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for me, shelf in enumerate(shelves):
        for block in shelf:
            results[me] += zlib.crc32(zlib.decompress(block))
        shelf.clear()
    return results


def short_threads():
    total = []
    for i in rounds(300):
        thread = threading.Thread(target=lambda i=i: total.append(len(str(2**(i * 10)))))
        thread.start()
        thread.join()
    return sum(total)


def c_memory():
    """The malloc family through ctypes, in its own words."""
    libc = ctypes.CDLL(None)
    for name in "malloc", "calloc", "realloc", "strdup", "aligned_alloc":
        getattr(libc, name).restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    check = 0
    for i in rounds(3000):
        size = i * 31 % 5000 + 1
        block = libc.realloc(libc.malloc(size), size * 3)
        ctypes.memset(block, i & 255, size * 3)
        zeroes = libc.calloc(size, 3)
        assert ctypes.string_at(zeroes, size * 3) == bytes(size * 3)
        aligned = libc.aligned_alloc(4096, 4096 * (i % 5 + 1))
        assert aligned % 4096 == 0
        text = libc.strdup(b"x" * size)
        check = zlib.crc32(ctypes.string_at(block, size * 3), check)
        check = zlib.crc32(ctypes.string_at(text), check)
        for pointer in block, zeroes, aligned, text:
            libc.free(pointer)
    return check


def regular_expressions():
    words = re.findall(r"(\w+)=(\d+)", " ".join(f"w{i}={i * i}" for i in rounds(50_000)))
    return len(words), re.sub(r"(1+)(2*)", r"<\2\1>", "".join(b for _, b in words))


def child_processes():
    script = "import sys; print(sum(map(len, [str(i) * 9 for i in range(int(sys.argv[1]))])))"
    return [
        subprocess.run(
            [sys.executable, "-c", script, str(i * 1000)], check=True, capture_output=True
        ).stdout
        for i in range(10)
    ]


PARTS = {
    part.__name__: part
    for part in (
        json_round_trips,
        dict_churn,
        growing_buffers,
        threads,
        short_threads,
        c_memory,
        regular_expressions,
        child_processes,
    )
}

for name in sys.argv[1:] or PARTS:
    print(name, digest(PARTS[name]()))
