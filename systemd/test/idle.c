/* SPDX-License-Identifier: MIT */
/* A service that has a heap and does nothing: what tests look at from outside. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *volatile held = malloc(100);

	if (!held)
		return 1;
	memset(held, argc > 1 ? argv[1][0] : 0, 100);
	for (;;)
		pause();
}
