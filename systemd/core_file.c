/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

struct core_file {
	int fd;
	ZSTD_DStream *zstd; /* NULL for a plain file */
	ZSTD_inBuffer in;
	unsigned char *buf;
	size_t buf_size;
};

enum {
	WINDOW_LOG_MAX = 27, /* 128 MiB: more than systemd's level needs, and a limit to memory */
};

static ssize_t plain_read(void *context, void *buf, size_t len)
{
	struct core_file *file = context;
	ssize_t n;

	do
		n = read(file->fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int64_t plain_skip(void *context, uint64_t len)
{
	struct core_file *file = context;
	off_t from = lseek(file->fd, 0, SEEK_CUR);
	struct stat st;

	if (from < 0 || fstat(file->fd, &st) < 0)
		return -errno;
	if (st.st_size <= from)
		return 0;
	if (len > (uint64_t)(st.st_size - from))
		len = st.st_size - from;
	return lseek(file->fd, (off_t)len, SEEK_CUR) < 0 ? -errno : (int64_t)len;
}

static ssize_t zstd_read(void *context, void *buf, size_t len)
{
	struct core_file *file = context;
	ZSTD_outBuffer out = {buf, len, 0};

	while (!out.pos) {
		size_t left;

		if (file->in.pos == file->in.size) {
			ssize_t n = plain_read(file, file->buf, file->buf_size);

			if (n <= 0)
				return n;
			file->in = (ZSTD_inBuffer){file->buf, n, 0};
		}
		left = ZSTD_decompressStream(file->zstd, &out, &file->in);
		if (ZSTD_isError(left))
			return -EBADMSG;
	}
	return (ssize_t)out.pos;
}

void core_file_close(struct core_file *file)
{
	if (!file)
		return;
	ZSTD_freeDStream(file->zstd);
	free(file->buf);
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

static void auto_core_file_cleanup(struct core_file **file)
{
	core_file_close(*file);
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && !strcmp(text + n - m, suffix);
}

int core_file_open(const char *path, struct core_file **ret, struct core_source *ret_source)
{
	__attribute__((cleanup(auto_core_file_cleanup))) struct core_file *file = NULL;
	struct stat st;

	if (ends_with(path, ".xz") || ends_with(path, ".lz4"))
		return -EPROTONOSUPPORT;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (!ends_with(path, ".zst")) {
		*ret_source = (struct core_source){plain_read, plain_skip, file};
		*ret = take(file);
		return 0;
	}
	file->buf_size = ZSTD_DStreamInSize();
	file->buf = malloc(file->buf_size);
	file->zstd = ZSTD_createDStream();
	if (!file->buf || !file->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(file->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	*ret_source = (struct core_source){zstd_read, NULL, file};
	*ret = take(file);
	return 0;
}
