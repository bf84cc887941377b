/* SPDX-License-Identifier: MIT */
/* C++ thread_local and static objects own memory: freed as their thread, and the process, ends. */
#include "check.h"

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace
{
std::atomic<int> destroyed;

struct Owner {
	std::vector<std::string> strings;
	std::map<int, std::string> map;

	Owner()
	{
		for (int i = 0; i < 100; i++) {
			strings.emplace_back(static_cast<size_t>(i) * 3, 'a');
			map[i] = std::string(50, 'b');
		}
	}

	~Owner()
	{
		std::vector<int> in_destructor(1000, 1);

		CHECK(strings[99] == std::string(297, 'a') && map[50].size() == 50);
		CHECK(in_destructor[999] == 1);
		destroyed++;
	}
};

thread_local Owner of_thread;

struct Last {
	~Last()
	{
		CHECK(destroyed == 402, "%d destroyed", destroyed.load());
		/* A word for the caller, who sees that this point was reached. */
		CHECK(write(STDOUT_FILENO, "end\n", 4) == 4);
	}
} last;

Owner of_process;
} // namespace

int main()
{
	for (int i = 0; i < 100; i++) {
		std::vector<std::thread> threads;

		for (int k = 0; k < 4; k++)
			threads.emplace_back([] { CHECK(of_thread.strings.size() == 100); });
		for (auto &thread : threads)
			thread.join();
	}
	CHECK(destroyed == 400, "%d destroyed", destroyed.load());
	CHECK(of_thread.strings.size() == 100);
	return 0;
}
