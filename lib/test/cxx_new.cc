/* SPDX-License-Identifier: MIT */
/* operator new and delete in all their forms, bad_alloc and the new handler. */
#include "check.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{
struct alignas(256) Wide {
	char bytes[300];
};

/* Not even the optimiser may leave out a pair of calls of the operators themselves. */
void plain()
{
	for (size_t size = 0; size < 200000; size = size * 2 + 1) {
		void *p = hide(::operator new(size)), *q = hide(::operator new[](size));

		CHECK(p && q && p != q && is_aligned(p, 16) && is_aligned(q, 16));
		fill(p, size, 1);
		fill(q, size, 2);
		CHECK(first_changed(p, size, 1) == size);
		::operator delete(p);
		::operator delete[](q);
	}
}

void null()
{
	::operator delete(nullptr);
	::operator delete[](nullptr);
	::operator delete (nullptr, size_t{10});
	::operator delete (nullptr, std::align_val_t{64});
	::operator delete(nullptr, std::nothrow);
}

void nothrow()
{
	void *p = hide(::operator new(100, std::nothrow));
	void *q = hide(::operator new[](100, std::nothrow));
	void *r = hide(::operator new (100, std::align_val_t{128}, std::nothrow));
	void *s = hide(::operator new[](100, std::align_val_t{128}, std::nothrow));

	CHECK(p && q && r && s && is_aligned(r, 128) && is_aligned(s, 128));
	::operator delete(p, std::nothrow);
	::operator delete[](q, std::nothrow);
	::operator delete (r, std::align_val_t{128}, std::nothrow);
	::operator delete[](s, std::align_val_t{128}, std::nothrow);
	CHECK(!hide(::operator new(hide_size(PTRDIFF_MAX), std::nothrow)));
	CHECK(!hide(::operator new[](hide_size(SIZE_MAX), std::nothrow)));
	CHECK(!hide(
		::operator new (hide_size(SIZE_MAX - 100), std::align_val_t{64}, std::nothrow)));
	CHECK(!hide(::operator new[](hide_size(PTRDIFF_MAX), std::align_val_t{64}, std::nothrow)));
}

void aligned()
{
	for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2)
		for (size_t size = 0; size < 100000; size = size * 5 + 1) {
			void *p = hide(::operator new (size, std::align_val_t{alignment}));
			void *q = hide(::operator new[](size, std::align_val_t{alignment}));

			CHECK(is_aligned(p, alignment), "alignment %zu, size %zu", alignment, size);
			CHECK(is_aligned(q, alignment), "alignment %zu, size %zu", alignment, size);
			memset(p, 1, size);
			memset(q, 1, size);
			::operator delete (hide(p), std::align_val_t{alignment});
			::operator delete[](hide(q), size, std::align_val_t{alignment});
		}
}

void sized()
{
	for (size_t size = 0; size < 5 * MIB; size = size * 3 + 1) {
		::operator delete(hide(::operator new(size)), size);
		::operator delete[](hide(::operator new[](size)), size);
		::operator delete (hide(::operator new (size, std::align_val_t{512})), size,
			std::align_val_t{512});
	}
}

/* What the compiler makes of new expressions, the over-aligned included. */
void expressions()
{
	auto *wide = static_cast<Wide *>(hide(new Wide));
	auto *wides = static_cast<Wide *>(hide(new Wide[3]));
	auto *strings = static_cast<std::string *>(hide(new std::string[20]));
	std::vector<std::unique_ptr<Wide>> many;

	CHECK(is_aligned(wide, 256) && is_aligned(wides, 256));
	for (int i = 0; i < 20; i++)
		strings[i].assign(static_cast<size_t>(i) * 10, 'x');
	for (int i = 0; i < 1000; i++)
		many.push_back(std::make_unique<Wide>());
	CHECK(strings[19].size() == 190);
	delete wide;
	delete[] wides;
	delete[] strings;
}

/* A size that cannot be had throws std::bad_alloc, from every throwing form. */
void bad_alloc()
{
	int caught = 0;

	try {
		hide(::operator new(hide_size(PTRDIFF_MAX)));
	} catch (const std::bad_alloc &error) {
		CHECK(strcmp(error.what(), "std::bad_alloc") == 0, "%s", error.what());
		caught++;
	}
	try {
		hide(::operator new[](hide_size(SIZE_MAX)));
	} catch (const std::exception &) {
		caught++;
	}
	try {
		hide(::operator new (hide_size(SIZE_MAX - 64), std::align_val_t{64}));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	try {
		hide(::operator new[](hide_size(PTRDIFF_MAX), std::align_val_t{64}));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	CHECK(caught == 4, "%d of 4 were caught", caught);
}

/* Thrown in a thread, through frames that have destructors. */
void bad_alloc_unwinds()
{
	static int destroyed;
	struct Guard {
		~Guard()
		{
			destroyed++;
		}
	};
	bool caught = false;

	std::thread([&caught] {
		try {
			Guard outer;
			std::vector<char> v;
			Guard inner;

			v.reserve(hide_size(PTRDIFF_MAX) - 1);
			hide(v.data());
		} catch (const std::bad_alloc &) {
			caught = true;
		}
	}).join();
	CHECK(caught && destroyed == 2, "%d destroyed", destroyed);
}

int handler_calls;

void give_up_at_third()
{
	if (++handler_calls == 3)
		std::set_new_handler(nullptr);
}

void throw_own()
{
	throw std::length_error("mine");
}

/* Tried again after each call of the handler, until there is none; one that throws gets through. */
void new_handler()
{
	bool caught = false;

	std::set_new_handler(give_up_at_third);
	try {
		hide(::operator new(hide_size(PTRDIFF_MAX)));
	} catch (const std::bad_alloc &) {
		caught = true;
	}
	CHECK(caught && handler_calls == 3, "the handler was called %d times", handler_calls);
	handler_calls = 0;
	std::set_new_handler(give_up_at_third);
	CHECK(!hide(::operator new(hide_size(PTRDIFF_MAX), std::nothrow)));
	CHECK(handler_calls == 3, "nothrow: the handler was called %d times", handler_calls);
	std::set_new_handler(throw_own);
	caught = false;
	try {
		hide(::operator new[](hide_size(PTRDIFF_MAX)));
	} catch (const std::length_error &) {
		caught = true;
	}
	CHECK(caught, "the handler's own exception was lost");
	std::set_new_handler([] { throw std::bad_alloc(); });
	CHECK(!hide(::operator new(hide_size(PTRDIFF_MAX), std::nothrow)),
		"nothrow did not catch the handler's bad_alloc");
	std::set_new_handler(nullptr);
}

/* new and malloc share one heap. */
void mixed()
{
	void *p = hide(::operator new(100));

	p = hide(realloc(p, 1000));
	CHECK(p);
	free(p);
	::operator delete(hide(malloc(100)));
}

const struct check_case cases[] = {
	{"plain", plain},
	{"null", null},
	{"nothrow", nothrow},
	{"aligned", aligned},
	{"sized", sized},
	{"expressions", expressions},
	{"bad-alloc", bad_alloc},
	{"bad-alloc-unwinds", bad_alloc_unwinds},
	{"new-handler", new_handler},
	{"mixed", mixed},
};
} // namespace

CHECK_MAIN(cases)
