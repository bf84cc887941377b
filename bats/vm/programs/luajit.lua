-- SPDX-License-Identifier: MIT
-- What LuaJIT does with the heap: its own objects, and malloc's by way of its FFI.
local ffi = require('ffi')
ffi.cdef [[
	void *malloc(size_t size);
	void *realloc(void *p, size_t size);
	void free(void *p);
	char *strdup(const char *s);
	void *memset(void *p, int c, size_t n);
]]

-- Strings and tables, compiled by the JIT.
local words, sum = {}, 0
for i = 1, 200000 do
	local key = 'w' .. i % 997
	words[key] = (words[key] or 0) + i
end
for _, n in pairs(words) do
	sum = (sum + n) % 1000003
end
print('words', sum)

-- Objects of malloc, whose addresses pass through Lua as cdata, as numbers and as keys.
local objects, addresses = {}, {}
for i = 1, 2000 do
	local p = ffi.C.malloc(16 + i % 300)
	ffi.C.memset(p, i % 256, 16 + i % 300)
	objects[i] = ffi.gc(p, ffi.C.free)
	addresses[tostring(ffi.cast('uintptr_t', p))] = i
end
local bytes = 0
for i = 1, 2000 do
	local p = ffi.cast('unsigned char *', objects[i])
	bytes = bytes + p[15] + p[8]
	assert(addresses[tostring(ffi.cast('uintptr_t', objects[i]))] == i)
end
print('bytes', bytes)
objects = nil
collectgarbage()

-- A callback, and a C string that comes back as a Lua one.
for i = 1, 1000 do
	local s = ffi.C.strdup('string ' .. i)
	assert(ffi.string(s) == 'string ' .. i)
	ffi.C.free(s)
end
print('strings', 1000)
