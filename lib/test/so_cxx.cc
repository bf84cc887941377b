/* SPDX-License-Identifier: MIT */
/* A C++ module for a program that is not C++: it brings libstdc++ along. */
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

/* Allocates, throws, catches; 0 if all went as it should. */
extern "C" int module_run(size_t too_much)
{
	std::vector<std::string> strings;
	int caught = 0;

	for (int i = 0; i < 1000; i++)
		strings.emplace_back(static_cast<size_t>(i), 'x');
	try {
		std::vector<char> v(too_much);
	} catch (const std::bad_alloc &) {
		caught++;
	} catch (const std::length_error &) {
		caught += 10;
	}
	try {
		::operator delete[](::operator new[](too_much));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	if (::operator new[](too_much, std::nothrow))
		return 1;
	return caught == 2 && strings[999].size() == 999 ? 0 : 2;
}
