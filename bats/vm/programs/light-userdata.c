/* SPDX-License-Identifier: MIT */
/*
 * light-userdata: what C modules do to LuaJIT, which keeps pointers in the lower bits of a number:
 * hand it addresses of malloc's objects as light userdata, and take them back. Says how many came
 * back as they were, and what Lua said when it refused one.
 */
#include <dlfcn.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct lua_State lua_State;

static lua_State *(*new_state)(void);
static void (*push)(lua_State *, void *);
static void *(*to)(lua_State *, int);
static int (*call)(lua_State *, int (*)(lua_State *), void *);
static const char *(*text)(lua_State *, int, size_t *);
static void (*set_top)(lua_State *, int);
static size_t good, bad;

static int hand_over(lua_State *lua)
{
	for (size_t i = 0; i < 20000; i++) {
		/* Of all sizes, so that they lie in many places. */
		char *p = malloc(16 + i * 7919 % 100000);

		*p = 1;
		push(lua, p);
		if (to(lua, -1) == p)
			good++;
		else
			bad++;
		set_top(lua, 0);
		free(p);
	}
	return 0;
}

int main(void)
{
	void *library = dlopen("libluajit-5.1.so.2", RTLD_NOW);
	lua_State *lua;

	if (!library)
		errx(1, "%s", dlerror());
	*(void **)&new_state = dlsym(library, "luaL_newstate");
	*(void **)&push = dlsym(library, "lua_pushlightuserdata");
	*(void **)&to = dlsym(library, "lua_touserdata");
	*(void **)&call = dlsym(library, "lua_cpcall");
	*(void **)&text = dlsym(library, "lua_tolstring");
	*(void **)&set_top = dlsym(library, "lua_settop");
	lua = new_state();
	if (!lua)
		errx(1, "no state");
	if (call(lua, hand_over, NULL))
		printf("Lua: %s\n", text(lua, -1, NULL));
	printf("%zu good, %zu bad\n", good, bad);
	return 0;
}
