/* SPDX-License-Identifier: MIT */
/*
 * A web shop with a bug as programs have it.
 *
 *	/login/NAME     opens a session, and says its number
 *	/account/N      says whose session N is
 *	/logout/N       closes session N: its memory is freed, but the pointer to it stays
 *
 * Under most allocators the next session gets the memory of the one that was closed. Whoever then
 * asks for the old number sees the account of somebody else.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENER 3 /* the socket that systemd hands over */
#define SESSIONS 1000
#define OK       "HTTP/1.0 200 OK\r\n\r\n"

struct session {
	char user[64];
	char basket[32000];
};

static struct session *sessions[SESSIONS];
static int n_sessions;

static void login(int client, const char *user)
{
	struct session *session = n_sessions < SESSIONS ? malloc(sizeof(*session)) : NULL;

	if (!session) {
		dprintf(client, OK "no more sessions\n");
		return;
	}
	snprintf(session->user, sizeof(session->user), "%s", user);
	sessions[n_sessions++] = session;
	dprintf(client, OK "welcome %s, you have session %d\n", session->user, n_sessions);
}

static void account(int client, const struct session *session)
{
	dprintf(client, OK "this is the account of %s\n", session->user);
}

static void logout(int client, struct session *session)
{
	free(session);
	dprintf(client, OK "good bye\n");
}

static struct session *session(int n)
{
	return n > 0 && n <= n_sessions ? sessions[n - 1] : NULL;
}

static void serve(int client)
{
	char request[4096] = "", user[33];
	int n;

	if (recv(client, request, sizeof(request) - 1, 0) <= 0)
		return;
	if (sscanf(request, "GET /login/%32[a-z]", user) == 1)
		login(client, user);
	else if (sscanf(request, "GET /account/%d", &n) == 1 && session(n))
		account(client, session(n));
	else if (sscanf(request, "GET /logout/%d", &n) == 1 && session(n))
		logout(client, session(n));
	else
		dprintf(client, OK "there is no such thing\n");
}

int main(void)
{
	int client;

	while ((client = accept(LISTENER, NULL, NULL)) >= 0) {
		serve(client);
		close(client);
	}
	err(EXIT_FAILURE, "accept");
}
