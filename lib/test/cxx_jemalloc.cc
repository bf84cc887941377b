/* LIBS: -ljemalloc */
/* SPDX-License-Identifier: MIT */
/* A C++ program linked with jemalloc, as mariadb is: its operators and its *allocx are one heap. */
#include "check.h"

#include <jemalloc/jemalloc.h>
#include <new>
#include <string>
#include <vector>

int main()
{
	std::vector<std::string> strings;

	for (size_t i = 1; i < 3000; i++) {
		void *p = hide(::operator new(i)), *q = hide(mallocx(i, MALLOCX_ALIGN(64)));

		CHECK(sallocx(p, 0) >= i && is_aligned(q, 64));
		memset(p, 1, i);
		memset(q, 2, i);
		if (i % 2) {
			sdallocx(hide(p), i, 0);
			free(hide(q));
		} else {
			::operator delete(hide(p), i);
			sdallocx(hide(q), i, MALLOCX_ALIGN(64));
		}
		strings.emplace_back(i, 's');
	}
	CHECK(strings[2998].size() == 2999);
	return 0;
}
