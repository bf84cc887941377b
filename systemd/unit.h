/* SPDX-License-Identifier: MIT */
/*
 * unit: names of systemd units, and the directories where units are looked for.
 *
 * A name is PREFIX[@INSTANCE].TYPE, at most 255 bytes of letters, digits and `:-_.\@`; the first
 * `@` parts prefix from instance, so an instance may hold more of them. Everything here takes the
 * name as systemctl prints it: `\x2d` stays `\x2d`, nothing is unescaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define UNIT_NAME_MAX 255

enum unit_form {
	UNIT_INVALID = 0,
	UNIT_PLAIN = 1,	   /* nginx.service */
	UNIT_TEMPLATE = 2, /* postgresql@.service */
	UNIT_INSTANCE = 4, /* postgresql@17-main.service */
};

enum unit_scope { UNIT_SYSTEM, UNIT_USER };

/* What form a service's name has; UNIT_INVALID if it is no service's name at all. */
enum unit_form unit_service_form(const char *name);

/* postgresql@17-main.service -> postgresql@.service. `ret` holds UNIT_NAME_MAX + 1 bytes;
 * -EINVAL if `name` is not an instance. */
int unit_template(const char *name, char *ret);

/* An alias may name a template: getty@.service and autovt@tty1.service -> getty@tty1.service.
 * -EINVAL if `template` or `unit` is not of that form, or the name gets too long. */
int unit_with_instance(const char *template, const char *unit, char *ret);

/* The instance of `unit`, if it is one of the service template called `prefix`:
 * "vatalloc", "vatalloc@nginx.service" -> "nginx". -EINVAL if it is not. */
int unit_instance_of(const char *prefix, const char *unit, char *ret);

/* The service that an instance of vatalloc@ stands for: "nginx" and "nginx.service" both mean
 * nginx.service. -EINVAL if that is no name of a plain service or an instance. */
int unit_protected_by(const char *instance, char *ret);

/* The name one dash shorter: "a-b-c@i.service" -> "a-b-@i.service" -> "a-@i.service", as systemd
 * walks drop-in directories. -ENOENT at the end. */
int unit_shorten(const char *name, char *ret);

/* The directories of units, the most important first, each below `root`, ended by NULL. Those
 * that generators write are left out: they run at the same time. Free with unit_path_free(). */
int unit_path(enum unit_scope scope, const char *root, char ***ret);
void unit_path_free(char **path);
