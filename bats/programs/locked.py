# SPDX-License-Identifier: MIT
"""What a daemon under mlockall does: heap work with all memory, present and future, locked."""
import ctypes
import sys
import zlib

MCL_CURRENT, MCL_FUTURE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)

if libc.mlockall(MCL_CURRENT | MCL_FUTURE) != 0:
    sys.exit(f"mlockall: errno {ctypes.get_errno()}")

check = 0
alive = {}
for i in range(60_000):
    old = alive.pop(i * 7919 % 2000, b"")
    check = zlib.crc32(old, check)
    alive[i * 7919 % 2000] = bytes([i & 255]) * (i * 31 % 5000)
blocks = [bytearray(3_000_000) for _ in range(10)]
for block in blocks:
    check = zlib.crc32(block, check)
print("check", check)

with open("/proc/self/status") as status:
    locked = {k: int(v.split()[0]) for k, v in (l.split(":") for l in status) if k in ("VmLck", "VmRSS")}
print("locked", locked["VmLck"] > 10_000)
print("resident below 300 MB", locked["VmRSS"] < 300_000)
