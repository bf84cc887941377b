// SPDX-License-Identifier: MIT
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "auto.h"

int output_open(struct output *output)
{
	*output = (struct output){0};
	output->stream = open_memstream(&output->text, &output->length);
	return output->stream ? 0 : -ENOMEM;
}

void output_drop(struct output *output)
{
	fclose(output->stream);
	free(output->text);
}

static int write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0)
			return -errno;
		text += n;
		length -= (size_t)n;
	}
	return 0;
}

static int write_file(const char *dir, const char *name, const char *text, size_t length)
{
	auto_free char *file = NULL, *temporary = NULL;
	auto_close int fd = -1;
	int r;

	if (asprintf(&file, "%s/%s", dir, name) < 0 ||
		asprintf(&temporary, "%s/.%s.%d", dir, name, (int)getpid()) < 0)
		return -ENOMEM;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, length);
	if (r == 0 && renameat2(AT_FDCWD, temporary, AT_FDCWD, file, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

int output_write(struct output *output, const char *destination, const char *unit, const char *name)
{
	auto_free char *dir = NULL;
	int r = fclose(output->stream) == 0 ? 0 : -ENOMEM;

	if (r == 0 && asprintf(&dir, "%s/%s.d", destination, unit) < 0)
		r = -ENOMEM;
	if (r == 0 && mkdir(dir, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = write_file(dir, name, output->text, output->length);
	free(output->text);
	return r;
}

void write_quoted(FILE *stream, const char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(stream, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(stream, "\\x%02x", *text);
		else
			fputc(*text, stream);
}
