/* SPDX-License-Identifier: MIT */
#include "service.h"
#include "auto.h"
#include "fragment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <systemd/sd-login.h>
#include <unistd.h>

static const char destination[] = "org.freedesktop.systemd1";
static const char manager_path[] = "/org/freedesktop/systemd1";
static const char manager[] = "org.freedesktop.systemd1.Manager";
static const char dropin[] = "50-vatalloc.conf";

enum {
	GROUP_DEPTH_MAX = 32,
	PROCESSES_MAX = 1 << 20,
};

static void auto_bus_cleanup(sd_bus **bus)
{
	sd_bus_flush_close_unref(*bus);
}
#define auto_bus __attribute__((cleanup(auto_bus_cleanup)))

static void auto_message_cleanup(sd_bus_message **message)
{
	sd_bus_message_unref(*message);
}
#define auto_message __attribute__((cleanup(auto_message_cleanup)))

static void auto_dir_cleanup(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define auto_dir __attribute__((cleanup(auto_dir_cleanup)))

static int connect_private(const char *socket, sd_bus **ret)
{
	auto_bus sd_bus *bus = NULL;
	auto_free char *address = NULL;
	int r;

	r = sd_bus_new(&bus);
	if (r < 0)
		return r;
	if (asprintf(&address, "unix:path=%s", socket) < 0)
		return -ENOMEM;
	r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		return r;
	*ret = take(bus);
	return 0;
}

int service_connect(bool user, sd_bus **ret)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *name;
	auto_bus sd_bus *bus = NULL;
	int r;

	if (!user && geteuid() == 0 && connect_private("/run/systemd/private", ret) >= 0)
		return 0;
	if (user && runtime) {
		auto_free char *socket = NULL;

		if (asprintf(&socket, "%s/systemd/private", runtime) < 0)
			return -ENOMEM;
		if (connect_private(socket, ret) >= 0)
			return 0;
	}
	r = user ? sd_bus_open_user(&bus) : sd_bus_open_system(&bus);
	/* Waits for the answer to the greeting, so that a user who is not let in learns it here. */
	if (r >= 0)
		r = sd_bus_get_unique_name(bus, &name);
	if (r < 0)
		return r;
	*ret = take(bus);
	return 0;
}

/* Reads Environment=, of which only LD_PRELOAD matters; the last one counts. */
static int read_environment(sd_bus_message *m, struct service *service)
{
	const char *assignment;
	int r = sd_bus_message_enter_container(m, 'a', "s");

	while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &assignment)) > 0) {
		if (strncmp(assignment, "LD_PRELOAD=", strlen("LD_PRELOAD=")))
			continue;
		free(service->preload);
		service->preload = strdup(assignment + strlen("LD_PRELOAD="));
		if (!service->preload)
			return -ENOMEM;
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_dropins(sd_bus_message *m, struct service *service)
{
	const char *path;
	int r = sd_bus_message_enter_container(m, 'a', "s");

	while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &path)) > 0) {
		const char *slash = strrchr(path, '/');

		if (slash && !strcmp(slash + 1, dropin))
			service->enabled = true;
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_files(sd_bus_message *m, struct service *service)
{
	const char *path;
	int optional, r = sd_bus_message_enter_container(m, 'a', "(sb)");

	while (r >= 0 && (r = sd_bus_message_read(m, "(sb)", &path, &optional)) > 0)
		service->files = true;
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_string(sd_bus_message *m, char **field)
{
	const char *text;
	int r = sd_bus_message_read_basic(m, 's', &text);

	if (r < 0)
		return r;
	/* Of two properties that fill one field the one with a value counts. */
	if (*field && !*text)
		return 0;
	free(*field);
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

static int read_property(sd_bus_message *m, const char *name, struct service *service)
{
	const char *contents;
	uint32_t pid;
	int r, truth;

	r = sd_bus_message_peek_type(m, NULL, &contents);
	if (r < 0)
		return r;
	r = sd_bus_message_enter_container(m, 'v', contents);
	if (r < 0)
		return r;
	if (!strcmp(name, "Id")) {
		r = read_string(m, &service->id);
	} else if (!strcmp(name, "LoadState")) {
		r = read_string(m, &service->load_state);
	} else if (!strcmp(name, "ActiveState")) {
		r = read_string(m, &service->active_state);
	} else if (!strcmp(name, "ControlGroup")) {
		r = read_string(m, &service->control_group);
	} else if (!strcmp(name, "RootDirectory") || !strcmp(name, "RootImage")) {
		r = read_string(m, &service->root);
	} else if (!strcmp(name, "NeedDaemonReload")) {
		r = sd_bus_message_read_basic(m, 'b', &truth);
		if (r >= 0)
			service->reload_needed = truth;
	} else if (!strcmp(name, "MainPID")) {
		r = sd_bus_message_read_basic(m, 'u', &pid);
		if (r >= 0)
			service->main_pid = (pid_t)pid;
	} else if (!strcmp(name, "ExecMainStartTimestamp")) {
		r = sd_bus_message_read_basic(m, 't', &service->started);
	} else if (!strcmp(name, "Environment")) {
		r = read_environment(m, service);
	} else if (!strcmp(name, "EnvironmentFiles")) {
		r = read_files(m, service);
	} else if (!strcmp(name, "DropInPaths")) {
		r = read_dropins(m, service);
	} else {
		r = sd_bus_message_skip(m, contents);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_properties(sd_bus *bus, const char *path, struct service *service)
{
	auto_message sd_bus_message *reply = NULL;
	int r;

	/* With an empty interface the manager gives the properties of all of them. */
	r = sd_bus_call_method(bus, destination, path, "org.freedesktop.DBus.Properties", "GetAll",
		NULL, &reply, "s", "");
	if (r < 0)
		return r;
	r = sd_bus_message_enter_container(reply, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
		const char *name;

		r = sd_bus_message_read_basic(reply, 's', &name);
		if (r >= 0)
			r = read_property(reply, name, service);
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r < 0 ? r : 0;
}

static int fill_in(char **field)
{
	if (!*field)
		*field = strdup("");
	return *field ? 0 : -ENOMEM;
}

int service_read(sd_bus *bus, bool user, const char *unit, struct service *ret)
{
	auto_message sd_bus_message *reply = NULL;
	struct service service = {.user = user};
	const char *path;
	int r;

	r = sd_bus_call_method(
		bus, destination, manager_path, manager, "LoadUnit", NULL, &reply, "s", unit);
	if (r >= 0)
		r = sd_bus_message_read_basic(reply, 'o', &path);
	if (r >= 0)
		r = read_properties(bus, path, &service);
	if (r >= 0 && (fill_in(&service.id) < 0 || fill_in(&service.load_state) < 0 ||
			      fill_in(&service.active_state) < 0 ||
			      fill_in(&service.control_group) < 0 || fill_in(&service.root) < 0))
		r = -ENOMEM;
	if (r >= 0 && !strcmp(service.load_state, "not-found"))
		r = -ENOENT;
	if (r < 0) {
		service_free(&service);
		return r;
	}
	*ret = service;
	return 0;
}

void service_free(struct service *service)
{
	free(service->id);
	free(service->load_state);
	free(service->active_state);
	free(service->control_group);
	free(service->root);
	free(service->preload);
	*service = (struct service){0};
}

/* The first of the links that enable @id. */
struct first_link {
	const struct fragments *fragments;
	const char *id;
	uint64_t made; /* in µs since 1970; UINT64_MAX before one was found */
};

static int note_link(const char *dir, const char *name, void *userdata)
{
	char instance[UNIT_NAME_MAX + 1], wanted[UNIT_NAME_MAX + 1], id[UNIT_NAME_MAX + 1];
	struct first_link *first = userdata;
	auto_free char *path = NULL;
	enum unit_state state;
	struct stat st;
	uint64_t made;

	if (unit_instance_of("vatalloc", name, instance) < 0 ||
		unit_protected_by(instance, wanted) < 0 ||
		fragment_find(first->fragments, wanted, id, &state) < 0 || strcmp(id, first->id))
		return 0;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (lstat(path, &st) < 0)
		return 0;
	made = (uint64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
	if (made < first->made)
		first->made = made;
	return 0;
}

bool service_is_older(const struct service *service)
{
	struct first_link first = {.id = service->id, .made = UINT64_MAX};
	struct fragments *fragments;
	int r;

	/* The drop-in tells nothing: it is written anew each time the manager reads its files. */
	if (!service->started ||
		fragments_open(service->user ? UNIT_USER : UNIT_SYSTEM, "", &fragments) < 0)
		return false;
	first.fragments = fragments;
	r = fragment_links(fragments, note_link, &first);
	fragments_close(fragments);
	return r >= 0 && first.made != UINT64_MAX && service->started < first.made;
}

int service_of_process(pid_t pid, bool user, char **ret)
{
	char *unit = NULL;
	int r = user ? sd_pid_get_user_unit(pid, &unit) : sd_pid_get_unit(pid, &unit);

	if (r < 0)
		return r;
	*ret = unit;
	return 0;
}

struct pids {
	pid_t *list;
	size_t n, size;
};

static int add_pid(struct pids *pids, pid_t pid)
{
	if (pids->n == pids->size) {
		size_t size = pids->size ? pids->size * 2 : 16;
		pid_t *bigger;

		if (size > PROCESSES_MAX)
			return -E2BIG;
		bigger = realloc(pids->list, size * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		pids->list = bigger;
		pids->size = size;
	}
	pids->list[pids->n++] = pid;
	return 0;
}

/* Adds the processes of the group that is the directory @fd, and of those below; closes @fd. */
static int walk_group(int fd, int depth, struct pids *pids)
{
	auto_dir DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return -errno;
	}
	{
		int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
		auto_file FILE *f = procs < 0 ? NULL : fdopen(procs, "re");
		int pid, r;

		/* A group of threads has no list of processes of its own: its parent has. */
		while (f && fscanf(f, "%d", &pid) == 1) {
			r = pid > 0 ? add_pid(pids, pid) : 0;
			if (r < 0)
				return r;
		}
	}
	while ((entry = readdir(dir))) {
		int below, r;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (depth >= GROUP_DEPTH_MAX)
			return -ELOOP;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* It may have been removed just now. */
		r = below < 0 ? 0 : walk_group(below, depth + 1, pids);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Where systemd's own hierarchy is mounted: it may share the place with those of version 1. */
static const char *group_mount(void)
{
	struct statfs fs;

	if (statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return "/sys/fs/cgroup";
	if (statfs("/sys/fs/cgroup/unified", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return "/sys/fs/cgroup/unified";
	return "/sys/fs/cgroup/systemd";
}

int service_processes(const struct service *service, pid_t **ret, size_t *ret_n)
{
	auto_free char *path = NULL;
	struct pids pids = {0};
	int fd, r = 0;

	if (service->control_group[0]) {
		if (asprintf(&path, "%s%s", group_mount(), service->control_group) < 0)
			return -ENOMEM;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return -errno;
		/* The group goes with its last process. */
		r = fd < 0 ? 0 : walk_group(fd, 0, &pids);
	}
	if (r < 0) {
		free(pids.list);
		return r;
	}
	if (pids.n)
		qsort(pids.list, pids.n, sizeof(*pids.list), compare_pids);
	*ret = pids.list;
	*ret_n = pids.n;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int service_enabled(bool user, char ***ret, size_t *ret_n)
{
	static const char suffix[] = ".service.d";
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	auto_free char *path = NULL;
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0;
	int r = 0;

	if (asprintf(&path, "%s/systemd/generator", user && runtime ? runtime : "/run") < 0)
		return -ENOMEM;
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		auto_free char *file = NULL;
		char **more;

		if (len <= strlen(suffix) || strcmp(entry->d_name + len - strlen(suffix), suffix))
			continue;
		if (asprintf(&file, "%s/%s", entry->d_name, dropin) < 0) {
			r = -ENOMEM;
			break;
		}
		if (faccessat(dirfd(dir), file, F_OK, 0) < 0)
			continue;
		more = realloc(names, (n + 1) * sizeof(*names));
		if (!more || !((names = more)[n] = strndup(entry->d_name, len - strlen(".d")))) {
			r = -ENOMEM;
			break;
		}
		n++;
	}
	if (r < 0) {
		while (n)
			free(names[--n]);
		free(names);
		return r;
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	*ret = names;
	*ret_n = n;
	return 0;
}
