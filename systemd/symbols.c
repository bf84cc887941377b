/* SPDX-License-Identifier: MIT */
#include "symbols.h"
#include "auto.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Each module gets a part of an imaginary address space, at the same distance from the next. */
static const Dwarf_Addr module_space = 1ull << 40;

enum {
	MODULES_MAX = 1 << 16,
	BUILD_ID_MAX = 64,
};

struct module {
	char *path, *build_id;
	unsigned char id[BUILD_ID_MAX];
	size_t id_len;
	Dwfl_Module *dwfl;
};

struct symbols {
	Dwfl *dwfl;
	struct module **modules;
	size_t n_modules;
};

static size_t parse_build_id(const char *hex, unsigned char *id)
{
	size_t n = 0;
	unsigned byte;

	while (n < BUILD_ID_MAX && hex[2 * n] && hex[2 * n + 1] &&
		sscanf(hex + 2 * n, "%2x", &byte) == 1)
		id[n++] = byte;
	return n;
}

/* The path of a module is what a process said about itself: it may be anything, or a device. */
static int open_module(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int find_elf(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
	char **file_name, Elf **elf)
{
	const struct module *module = *userdata;
	int fd = open_module(module->path);

	if (fd >= 0) {
		Elf *file = elf_begin(fd, ELF_C_READ, NULL);
		const void *id;
		ssize_t len = file ? dwelf_elf_gnu_build_id(file, &id) : -1;
		bool same = !module->id_len ||
			    (len == (ssize_t)module->id_len && !memcmp(id, module->id, len));

		elf_end(file);
		if (same && (*file_name = strdup(module->path)))
			return fd;
		close(fd);
	}
	return dwfl_build_id_find_elf(dwfl, userdata, name, base, file_name, elf);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

int symbols_new(bool debuginfod, struct symbols **ret)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return -ENOMEM;
	if (!debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	elf_version(EV_CURRENT);
	symbols->dwfl = dwfl_begin(&callbacks);
	if (!symbols->dwfl) {
		free(symbols);
		return -ENOMEM;
	}
	*ret = symbols;
	return 0;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	dwfl_end(symbols->dwfl);
	for (size_t i = 0; i < symbols->n_modules; i++) {
		free(symbols->modules[i]->path);
		free(symbols->modules[i]->build_id);
		free(symbols->modules[i]);
	}
	free(symbols->modules);
	free(symbols);
}

static int add_module(struct symbols *symbols, const struct crash_frame *frame, size_t *ret)
{
	struct module *module, **more;
	size_t n = symbols->n_modules;
	Dwarf_Addr start = (n + 1) * module_space;
	void **userdata;

	if (n >= MODULES_MAX)
		return -E2BIG;
	more = realloc(symbols->modules, (n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	symbols->modules = more;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	more[symbols->n_modules++] = module;
	module->path = strdup(frame->module);
	module->build_id = strdup(frame->build_id);
	if (!module->path || !module->build_id)
		return -ENOMEM;
	module->id_len = parse_build_id(frame->build_id, module->id);

	dwfl_report_begin_add(symbols->dwfl);
	module->dwfl =
		dwfl_report_module(symbols->dwfl, module->path, start, start + module_space / 2);
	if (module->dwfl) {
		dwfl_module_info(module->dwfl, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = module;
		if (module->id_len)
			dwfl_module_report_build_id(module->dwfl, module->id, module->id_len, 0);
	}
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	*ret = n;
	return 0;
}

static int find_module(struct symbols *symbols, const struct crash_frame *frame, size_t *ret)
{
	for (size_t i = 0; i < symbols->n_modules; i++) {
		if (strcmp(symbols->modules[i]->path, frame->module) ||
			strcmp(symbols->modules[i]->build_id, frame->build_id))
			continue;
		*ret = i;
		return 0;
	}
	return add_module(symbols, frame, ret);
}

int symbols_find(struct symbols *symbols, const struct crash_frame *frame, char **ret)
{
	const char *name, *file = NULL, *slash;
	Dwfl_Module *module;
	Dwarf_Addr bias;
	Dwfl_Line *line;
	int number = 0, r;
	size_t i;

	if (!frame->module[0] || frame->offset >= module_space / 2)
		return -ENOENT;
	r = find_module(symbols, frame, &i);
	if (r < 0)
		return r;
	module = symbols->modules[i]->dwfl;
	/* The bias leads from addresses in the file to those in our imaginary space. */
	if (!module || !dwfl_module_getelf(module, &bias))
		return -ENOENT;
	name = dwfl_module_addrname(module, bias + frame->offset);
	line = dwfl_module_getsrc(module, bias + frame->offset);
	if (line)
		file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	if (!name)
		return -ENOENT;
	slash = file ? strrchr(file, '/') : NULL;
	if (file)
		r = asprintf(ret, "%s at %s:%d", name, slash ? slash + 1 : file, number);
	else
		r = asprintf(ret, "%s", name);
	return r < 0 ? -ENOMEM : 0;
}
