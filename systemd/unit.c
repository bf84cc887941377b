// SPDX-License-Identifier: MIT
#include "unit.h"
#include "auto.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char suffix[] = ".service";
static const char letters[] =
	"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-_.\\@";

enum unit_form unit_service_form(const char *name)
{
	size_t length = strlen(name), stem;
	const char *at;

	if (length > UNIT_NAME_MAX || length < sizeof(suffix) || *name == '@')
		return UNIT_INVALID;
	stem = length - (sizeof(suffix) - 1);
	if (strcmp(name + stem, suffix) != 0 || strspn(name, letters) != length)
		return UNIT_INVALID;
	at = memchr(name, '@', stem);
	if (!at)
		return UNIT_PLAIN;
	return at == name + stem - 1 ? UNIT_TEMPLATE : UNIT_INSTANCE;
}

/* Callers know that the first `stem` bytes and the suffix fit. */
static void join(char *ret, const char *stem, size_t length, const char *end)
{
	memmove(ret, stem, length);
	strcpy(ret + length, end);
}

int unit_template(const char *name, char *ret)
{
	if (unit_service_form(name) != UNIT_INSTANCE)
		return -EINVAL;
	join(ret, name, (size_t)(strchr(name, '@') - name) + 1, suffix);
	return 0;
}

int unit_with_instance(const char *template, const char *unit, char *ret)
{
	const char *instance = strchr(unit, '@');
	size_t prefix = strlen(template) - (sizeof(suffix) - 1);

	if (unit_service_form(template) != UNIT_TEMPLATE ||
		unit_service_form(unit) != UNIT_INSTANCE)
		return -EINVAL;
	if (prefix + strlen(instance + 1) > UNIT_NAME_MAX)
		return -EINVAL;
	join(ret, template, prefix, instance + 1);
	return 0;
}

int unit_instance_of(const char *prefix, const char *unit, char *ret)
{
	size_t length = strlen(prefix);

	if (unit_service_form(unit) != UNIT_INSTANCE || strncmp(unit, prefix, length) != 0 ||
		unit[length] != '@')
		return -EINVAL;
	unit += length + 1;
	join(ret, unit, strlen(unit) - (sizeof(suffix) - 1), "");
	return 0;
}

int unit_protected_by(const char *instance, char *ret)
{
	size_t length = strlen(instance);
	char name[UNIT_NAME_MAX + sizeof(suffix)];

	if (length > UNIT_NAME_MAX)
		return -EINVAL;
	join(name, instance, length,
		length > sizeof(suffix) - 1 &&
				strcmp(instance + length - (sizeof(suffix) - 1), suffix) == 0
			? ""
			: suffix);
	if (!(unit_service_form(name) & (UNIT_PLAIN | UNIT_INSTANCE)))
		return -EINVAL;
	strcpy(ret, name);
	return 0;
}

int unit_shorten(const char *name, char *ret)
{
	const char *end = strchr(name, '@'), *dash;
	size_t length;

	if (!end)
		end = strrchr(name, '.');
	if (!end)
		return -ENOENT;
	length = (size_t)(end - name);
	/* "a-b-" was shortened before: its last dash stands for what was cut. */
	if (length && name[length - 1] == '-')
		length--;
	dash = memrchr(name, '-', length);
	if (!dash || dash == name)
		return -ENOENT;
	join(ret, name, (size_t)(dash - name) + 1, end);
	return 0;
}

static int add(char ***path, size_t *n, const char *root, const char *dir, const char *below)
{
	char **more;

	/* A relative path in XDG_* is to be ignored, says the XDG specification. */
	if (!dir || *dir != '/')
		return 0;
	more = reallocarray(*path, *n + 2, sizeof(*more));
	if (!more)
		return -ENOMEM;
	*path = more;
	if (asprintf(&more[*n], "%s%s%s", root, dir, below) < 0) {
		more[*n] = NULL;
		return -ENOMEM;
	}
	more[++*n] = NULL;
	return 0;
}

/* Each directory of a colon-separated list. */
static int add_list(char ***path, size_t *n, const char *root, const char *list, const char *below)
{
	auto_free char *copy = strdup(list);
	char *dir, *rest = copy;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && (dir = strsep(&rest, ":")))
		r = add(path, n, root, dir, below);
	return r;
}

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

static int system_path(char ***path, size_t *n, const char *root)
{
	static const char *const dirs[] = {
		"/etc/systemd/system.control",
		"/run/systemd/system.control",
		"/run/systemd/transient",
		"/etc/systemd/system",
		"/etc/systemd/system.attached",
		"/run/systemd/system",
		"/run/systemd/system.attached",
		"/usr/local/lib/systemd/system",
		"/usr/lib/systemd/system",
	};
	auto_free char *lib = NULL;
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && i < lengthof(dirs); i++)
		r = add(path, n, root, dirs[i], "");
	if (r < 0)
		return r;
	/* Before /usr was merged (bookworm may still be so) packages shipped units in /lib. */
	if (asprintf(&lib, "%s/lib", root) < 0)
		return -ENOMEM;
	if (lstat(lib, &st) == 0 && S_ISDIR(st.st_mode))
		r = add(path, n, root, "/lib/systemd/system", "");
	return r;
}

static int user_path(char ***path, size_t *n, const char *root)
{
	const char *runtime = environment("XDG_RUNTIME_DIR", NULL);
	auto_free char *config = NULL, *data = NULL;
	const char *home = environment("HOME", "");
	int r;

	if (asprintf(&config, "%s/.config", home) < 0 ||
		asprintf(&data, "%s/.local/share", home) < 0)
		return -ENOMEM;
	/* The order of systemd's own lookup_paths_init() for a user's manager. */
	if ((r = add(path, n, root, environment("XDG_CONFIG_HOME", config),
		     "/systemd/user.control")) < 0 ||
		(r = add(path, n, root, runtime, "/systemd/user.control")) < 0 ||
		(r = add(path, n, root, runtime, "/systemd/transient")) < 0 ||
		(r = add(path, n, root, environment("XDG_CONFIG_HOME", config), "/systemd/user")) <
			0 ||
		(r = add_list(path, n, root, environment("XDG_CONFIG_DIRS", "/etc/xdg"),
			 "/systemd/user")) < 0 ||
		(r = add(path, n, root, "/etc", "/systemd/user")) < 0 ||
		(r = add(path, n, root, runtime, "/systemd/user")) < 0 ||
		(r = add(path, n, root, "/run", "/systemd/user")) < 0 ||
		(r = add(path, n, root, environment("XDG_DATA_HOME", data), "/systemd/user")) < 0 ||
		(r = add_list(path, n, root,
			 environment("XDG_DATA_DIRS", "/usr/local/share:/usr/share"),
			 "/systemd/user")) < 0 ||
		(r = add(path, n, root, "/usr/local/lib", "/systemd/user")) < 0)
		return r;
	return add(path, n, root, "/usr/lib", "/systemd/user");
}

int unit_path(enum unit_scope scope, const char *root, char ***ret)
{
	char **path = NULL;
	size_t n = 0;
	int r = scope == UNIT_SYSTEM ? system_path(&path, &n, root) : user_path(&path, &n, root);

	if (r < 0) {
		unit_path_free(path);
		return r;
	}
	*ret = path;
	return 0;
}

void unit_path_free(char **path)
{
	for (size_t i = 0; path && path[i]; i++)
		free(path[i]);
	free(path);
}
