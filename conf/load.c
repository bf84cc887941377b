// SPDX-License-Identifier: MIT
/* load: the files that settings come from; conf.h says which, and in what order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../systemd/auto.h"
#include "../systemd/files.h"
#include "conf.h"

/* Reads a whole file into a buffer with one spare byte. -EFBIG; -EBADF: no file to read. */
static int read_file(const char *path, char **ret, size_t *ret_size)
{
	/* A FIFO must not hold up the boot. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	auto_free char *text = NULL;
	size_t size = 0;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !is_null_device(&st))
		return -EBADF;
	if (st.st_size > CONF_FILE_MAX)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	/* What the file grows by meanwhile is not read. */
	while (size < (size_t)st.st_size) {
		n = read(fd, text + size, (size_t)st.st_size - size);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret = take(text);
	*ret_size = size;
	return 0;
}

/* -ENOENT if the file is not there; one that cannot be read is there, and reported. */
static int load_file(struct conf *conf, const char *path, const char *shown, conf_report_t report,
	void *userdata)
{
	struct conf_problem problem = {.file = shown};
	auto_free char *text = NULL;
	size_t size = 0;
	int r = read_file(path, &text, &size);

	if (r == 0)
		return conf_parse(conf, shown, text, size);
	if (r == -ENOMEM || r == -ENOENT || r == -ENOTDIR)
		return r == -ENOMEM ? r : -ENOENT;
	problem.what = r == -EFBIG   ? "larger than 1 MiB, ignoring the file"
		       : r == -EBADF ? "not a regular file, ignoring it"
				     : "cannot be read, ignoring the file";
	if (report)
		report(&problem, userdata);
	return 0;
}

int conf_load(const char *root, const char *user_dir, conf_report_t report, void *userdata,
	struct conf **ret)
{
	const char *const dirs[] = {user_dir, "/etc", "/run", "/usr/lib"};
	auto_files struct files dropins = {0};
	struct conf *conf = NULL;
	bool found = false;
	int r = conf_new(report, userdata, &conf);

	for (size_t i = 0; i < lengthof(dirs) && r == 0; i++) {
		auto_free char *main_file = NULL, *dir = NULL;

		if (!dirs[i])
			continue;
		if (asprintf(&main_file, "%s%s/vatalloc.conf", root, dirs[i]) < 0 ||
			asprintf(&dir, "%s.d", main_file) < 0) {
			r = -ENOMEM;
			break;
		}
		if (!found) {
			r = load_file(conf, main_file, main_file + strlen(root), report, userdata);
			found = r == 0;
			if (r == -ENOENT)
				r = 0;
		}
		if (r == 0)
			r = files_add_from(&dropins, dir, ".conf");
	}
	files_sort(&dropins);
	for (size_t i = 0; i < dropins.n && r == 0; i++) {
		r = load_file(
			conf, dropins.path[i], dropins.path[i] + strlen(root), report, userdata);
		if (r == -ENOENT)
			r = 0;
	}
	if (r < 0) {
		conf_free(conf);
		return r;
	}
	*ret = conf;
	return 0;
}
