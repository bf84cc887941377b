// SPDX-License-Identifier: MIT
/*
 * vatalloc-generator: for each enabled instance of vatalloc@.service writes a drop-in that
 * preloads the library into the service it names. systemd runs it at boot and at every
 * daemon-reload; called as vatalloc-user-generator it serves a user's manager.
 *
 * It runs before anything else does: no NSS, no IPC, no /var. It logs to /dev/kmsg, and whatever
 * goes wrong with one service leaves the others alone and the boot in peace.
 *
 * The drop-in is 50-vatalloc.conf. Where a drop-in of the unit with a later name would undo what it
 * says, the settings go to a file with a name just behind that one's instead, and 50-vatalloc.conf
 * only says so: its presence tells that a service is enabled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "../conf/conf.h"
#include "auto.h"
#include "fragment.h"
#include "output.h"
#include "preload.h"
#include "sandbox.h"
#include "unit.h"

/* $LIB is glibc's: lib/x86_64-linux-gnu in a 64-bit process, lib/i386-linux-gnu in a 32-bit one, so
 * each program of a service gets the library of its own architecture, if that is installed. */
#define LIBRARY	     "/usr/$LIB/vatalloc/libvatalloc.so"
#define LIBRARY_FILE "/usr/lib/" VATALLOC_TRIPLET "/vatalloc/libvatalloc.so"
#define DROPIN	     "50-vatalloc.conf"

enum { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5 };

static int log_fd = STDERR_FILENO;

__attribute__((format(printf, 2, 3))) static void say(int level, const char *format, ...)
{
	auto_free char *text = NULL;
	va_list ap;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0)
		text = NULL;
	else if (log_fd == STDERR_FILENO)
		dprintf(log_fd, "%s: %s\n", program_invocation_short_name, text);
	else
		/* One write is one record of the kernel's log; 3 << 3 says it is a daemon's. */
		dprintf(log_fd, "<%d>%s[%d]: %s\n", 3 << 3 | level, program_invocation_short_name,
			(int)getpid(), text);
}

/* An enabled instance of vatalloc@.service. */
struct instance {
	char unit[UNIT_NAME_MAX + 1];	/* vatalloc@sshd.service */
	char wanted[UNIT_NAME_MAX + 1]; /* sshd.service, as the instance says */
	char id[UNIT_NAME_MAX + 1];	/* ssh.service: `wanted` may be an alias */
	char *dir;			/* where its symlink was found, below the root */
};

struct generator {
	enum unit_scope scope;
	const char *root; /* "", or what VATALLOC_ROOT says */
	const char *destination;
	struct conf *conf;
	struct fragments *fragments;
	struct instance *instances;
	size_t n_instances;
};

/* What the files of one service say that matters to us. */
struct service {
	struct preload preload;
	struct sandbox sandbox;
	char *last; /* the last drop-in that would undo ours; NULL: none */
};

static void free_service(struct service *service)
{
	preload_free(&service->preload);
	free(service->last);
}
#define auto_service __attribute__((cleanup(free_service)))

static bool is_one_of(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (strcmp(key, *keys) == 0)
			return true;
	return false;
}

static int assign(
	const char *section, const char *key, char *value, const char *file, void *userdata)
{
	/* Of these every line counts, in its place: the first says whether a list allows or
	 * forbids. Ours must come after them all. */
	static const char *const ordered[] = {"SystemCallFilter", "RestrictAddressFamilies", NULL};
	/* An empty one of these starts afresh. */
	static const char *const lists[] = {"BindReadOnlyPaths", "BindPaths", "ExecPaths", NULL};
	struct service *service = userdata;
	bool undoes, reset = !*value;
	char *last;
	int r;

	if (strcmp(section, "Service") != 0)
		return 0;
	sandbox_assign(&service->sandbox, key, value, LIBRARY_FILE);
	r = preload_assign(&service->preload, key, value, &undoes);
	if (r < 0)
		return r;
	undoes = undoes || is_one_of(key, ordered) || (reset && is_one_of(key, lists));
	if (!undoes || strcmp(file, DROPIN) <= 0)
		return 0;
	last = strdup(file);
	if (!last)
		return -ENOMEM;
	free(service->last);
	service->last = last;
	return 0;
}

/* Puts a file of our own behind those that set LD_PRELOAD. */
static int write_environment_file(const struct generator *generator, const char *id,
	const char *library, const char *preload, FILE *dropin)
{
	static const char name[] = "50-vatalloc.env";
	const char *destination = generator->destination;
	struct output output;
	int r = output_open(&output);

	if (r < 0)
		return r;
	fprintf(output.stream,
		"# The LD_PRELOAD of the unit's own EnvironmentFile=, and vatalloc's in front.\n"
		"LD_PRELOAD=\"%s:",
		library);
	write_quoted(output.stream, preload);
	fputs("\"\n", output.stream);
	r = output_write(&output, generator->destination, id, name);
	if (r < 0)
		return r;
	if (strncmp(destination, generator->root, strlen(generator->root)) == 0)
		destination += strlen(generator->root);
	fputs("# An EnvironmentFile= of the unit sets LD_PRELOAD, and wins over Environment=.\n"
	      "EnvironmentFile=-",
		dropin);
	for (; *destination; destination++)
		fputs(*destination == '%' ? "%%" : (char[]){*destination, '\0'}, dropin);
	fprintf(dropin, "/%s.d/%s\n", id, name);
	return 0;
}

/* Where this comes from, for whoever finds the file. */
static void write_header(const struct instance *instances, size_t n,
	const struct conf_settings *settings, FILE *stream)
{
	fputs("# Written by vatalloc-generator. Changes are lost: see vatalloc-generator(8).\n",
		stream);
	for (size_t i = 0; i < n; i++)
		fprintf(stream, "# %s is enabled in %s.\n", instances[i].unit, instances[i].dir);
	for (unsigned i = 0; settings && i < CONF_KEYS; i++) {
		const struct conf_origin *origin = &settings->origin[i];

		if (origin->file)
			fprintf(stream, "# %s= is from %s:%u.\n", conf_key_name(i), origin->file,
				origin->line);
	}
}

static void write_environment(const struct preload *preload, const char *library,
	const struct conf_settings *settings, FILE *stream)
{
	char options[512];

	fprintf(stream, "Environment=\"LD_PRELOAD=%s", library);
	if (preload->environment && *preload->environment) {
		fputc(':', stream);
		/* A specifier (%h) is still one: systemd expands it in our line. */
		write_quoted(stream, preload->environment);
	}
	fputs("\"\n", stream);
	if (preload->options)
		return;
	conf_format_options(settings, options, sizeof(options));
	fprintf(stream, "Environment=\"VATALLOC_OPTIONS=%s\"\n", options);
}

/* The drop-in of one service; `instances` are those that stand for it, most often one. */
static int write_service(
	const struct generator *generator, const struct instance *instances, size_t n)
{
	auto_service struct service service = {0};
	auto_free char *name = NULL;
	const char *id = instances->id, *library;
	struct conf_settings settings;
	struct output output;
	bool for_reports;
	int r;

	r = fragment_read(generator->fragments, id, assign, &service);
	if (r == 0)
		r = preload_read_files(&service.preload, id, generator->root);
	if (r < 0)
		return r;
	if (service.preload.unset)
		say(LOG_WARNING, "%s has UnsetEnvironment=LD_PRELOAD, which keeps vatalloc out",
			id);
	if (service.sandbox.unreachable)
		say(LOG_WARNING, "InaccessiblePaths= of %s covers " LIBRARY_FILE, id);

	conf_for_unit(generator->conf, id, &settings);
	for (size_t i = 0; i < n; i++)
		if (strcmp(instances[i].wanted, id) != 0)
			conf_add_alias(generator->conf, instances[i].wanted, &settings);
	for_reports = settings.value[CONF_OPEN_SANDBOX] == CONF_YES;
	library = sandbox_library(&service.sandbox);
	if (!library)
		library = LIBRARY;

	r = output_open(&output);
	if (r < 0)
		return r;
	write_header(instances, n, &settings, output.stream);
	fputs("\n[Unit]\n# It checks the service each time it has started.\n", output.stream);
	for (size_t i = 0; i < n; i++)
		fprintf(output.stream, "Wants=%s\n", instances[i].unit);
	fputs("\n[Service]\n", output.stream);
	write_environment(&service.preload, library, &settings, output.stream);
	if (service.preload.from_files && *service.preload.from_files)
		r = write_environment_file(
			generator, id, library, service.preload.from_files, output.stream);
	sandbox_write(&service.sandbox, for_reports, LIBRARY_FILE, output.stream);
	if (r == 0 && service.last && asprintf(&name, "%s-vatalloc.conf", service.last) < 0)
		r = -ENOMEM;
	if (r < 0) {
		output_drop(&output);
		return r;
	}
	r = output_write(&output, generator->destination, id, name ? name : DROPIN);
	if (r < 0 || !name)
		return r;

	r = output_open(&output);
	if (r < 0)
		return r;
	write_header(instances, n, NULL, output.stream);
	fprintf(output.stream, "# The settings are in %s, because %s would undo them here.\n", name,
		service.last);
	return output_write(&output, generator->destination, id, DROPIN);
}

/* vatalloc@.service is ordered after %i.service, which is right for all instances but those
 * that say .service themselves. */
static int write_instance(const struct generator *generator, const struct instance *instance)
{
	char name[UNIT_NAME_MAX + 1];
	struct output output;
	int r;

	if (unit_instance_of("vatalloc", instance->unit, name) < 0 ||
		strcmp(name, instance->wanted) != 0)
		return 0;
	r = output_open(&output);
	if (r < 0)
		return r;
	write_header(instance, 1, NULL, output.stream);
	fprintf(output.stream, "\n[Unit]\nAfter=%s\nPartOf=%s\n", instance->wanted,
		instance->wanted);
	return output_write(&output, generator->destination, instance->unit, DROPIN);
}

/* Takes one symlink, if it is of an instance of ours. */
static int note_link(const char *dir, const char *name, void *userdata)
{
	struct generator *generator = userdata;
	char instance[UNIT_NAME_MAX + 1], wanted[UNIT_NAME_MAX + 1], id[UNIT_NAME_MAX + 1];
	enum unit_state state;
	struct instance *more;
	int r;

	if (unit_instance_of("vatalloc", name, instance) < 0)
		return 0;
	for (size_t i = 0; i < generator->n_instances; i++)
		if (strcmp(generator->instances[i].unit, name) == 0)
			return 0;
	if (unit_protected_by(instance, wanted) < 0) {
		say(LOG_ERROR, "%s/%s: '%s' is no service's name, ignoring", dir, name, instance);
		return 0;
	}
	r = fragment_find(generator->fragments, name, id, &state);
	if (r < 0 || state == UNIT_MASKED)
		return r;
	r = fragment_find(generator->fragments, wanted, id, &state);
	if (r < 0 || state == UNIT_MASKED)
		return r;
	if (strncmp(id, "vatalloc", strlen("vatalloc")) == 0) {
		say(LOG_ERROR, "%s/%s: vatalloc's own services cannot be protected, ignoring", dir,
			name);
		return 0;
	}
	more = reallocarray(generator->instances, generator->n_instances + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	generator->instances = more;
	more += generator->n_instances;
	more->dir = strdup(dir);
	if (!more->dir)
		return -ENOMEM;
	strcpy(more->unit, name);
	strcpy(more->wanted, wanted);
	strcpy(more->id, id);
	generator->n_instances++;
	return 0;
}

static int compare_instances(const void *a, const void *b)
{
	const struct instance *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->unit, y->unit);
}

static void say_problem(const struct conf_problem *problem, void *userdata)
{
	char text[1024];

	(void)userdata;
	conf_format_problem(problem, text, sizeof(text));
	say(LOG_WARNING, "%s", text);
}

/* "vatalloc=off" on the kernel's command line: the way out if the library ever breaks a boot. */
static bool switched_off(const char *root)
{
	auto_free char *path = NULL, *line = NULL;
	auto_file FILE *stream = NULL;
	char *word, *rest;
	size_t room = 0;

	if (asprintf(&path, "%s/proc/cmdline", root) < 0)
		return false;
	stream = fopen(path, "re");
	if (!stream || getline(&line, &room, stream) < 0)
		return false;
	for (word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
		if (strcmp(word, "vatalloc=off") == 0)
			return true;
	return false;
}

static bool library_is_there(const char *root)
{
	auto_free char *path = NULL;

	return asprintf(&path, "%s" LIBRARY_FILE, root) >= 0 && access(path, R_OK) == 0;
}

static int read_conf(struct generator *generator)
{
	auto_free char *dir = NULL;
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (generator->scope == UNIT_USER) {
		if (config && *config == '/')
			dir = strdup(config);
		else if (asprintf(&dir, "%s/.config", home ? home : "") < 0)
			dir = NULL;
		if (!dir)
			return -ENOMEM;
	}
	return conf_load(generator->root, dir, say_problem, NULL, &generator->conf);
}

static int run(struct generator *generator)
{
	int r = fragments_open(generator->scope, generator->root, &generator->fragments);

	if (r == 0)
		r = fragment_links(generator->fragments, note_link, generator);
	if (r < 0 || generator->n_instances == 0)
		return r;
	if (switched_off(generator->root)) {
		say(LOG_NOTICE,
			"vatalloc=off on the kernel's command line: no service is protected");
		return 0;
	}
	if (!library_is_there(generator->root)) {
		say(LOG_ERROR, LIBRARY_FILE " is missing: no service is protected");
		return 0;
	}
	r = read_conf(generator);
	if (r < 0)
		return r;
	qsort(generator->instances, generator->n_instances, sizeof(*generator->instances),
		compare_instances);
	for (size_t i = 0, n; i < generator->n_instances; i += n) {
		const struct instance *first = &generator->instances[i];

		for (n = 1; i + n < generator->n_instances; n++)
			if (strcmp(first[n].id, first->id) != 0)
				break;
		r = write_service(generator, first, n);
		for (size_t k = 0; r == 0 && k < n; k++)
			r = write_instance(generator, &first[k]);
		if (r < 0)
			say(LOG_ERROR, "%s cannot be protected: %s", first->id, strerror(-r));
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct generator generator = {.scope = UNIT_SYSTEM, .root = secure_getenv("VATALLOC_ROOT")};
	int r;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "Usage: %s NORMAL-DIR [EARLY-DIR LATE-DIR]\n",
			program_invocation_short_name);
		return 2;
	}
	umask(0022);
	if (strcmp(program_invocation_short_name, "vatalloc-user-generator") == 0)
		generator.scope = UNIT_USER;
	generator.destination = argv[1];
	if (!generator.root)
		generator.root = "";
	if (!*generator.root && generator.scope == UNIT_SYSTEM) {
		log_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (log_fd < 0)
			log_fd = STDERR_FILENO;
	}
	r = run(&generator);
	if (r < 0)
		say(LOG_ERROR, "no service is protected: %s", strerror(-r));
	for (size_t i = 0; i < generator.n_instances; i++)
		free(generator.instances[i].dir);
	free(generator.instances);
	fragments_close(generator.fragments);
	conf_free(generator.conf);
	/* A generator that fails delays nothing, but it is no help either. */
	return 0;
}
