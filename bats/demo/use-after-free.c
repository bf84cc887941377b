/* SPDX-License-Identifier: MIT */
/*
 * A bug as programs have it: a session is closed, its memory goes to whoever asks next, and then
 * the old pointer is used once more. Under most allocators this prints the other user's secret.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
	char user[64];
	char input[16000];
};

static struct session *open_session(const char *user)
{
	struct session *session = malloc(sizeof(*session));

	if (session == NULL)
		exit(EXIT_FAILURE);
	snprintf(session->user, sizeof(session->user), "%s", user);
	return session;
}

int main(void)
{
	struct session *others = open_session("somebody");
	struct session *mine = open_session("guest");

	free(mine);
	/* More come and go, so that the memory is used again, or given back. */
	for (int i = 0; i < 1000; i++)
		free(open_session("somebody else"));
	open_session("admin, password 12345");

	printf("my session belongs to: %s\n", mine->user);
	free(others);
	return EXIT_SUCCESS;
}
