// SPDX-License-Identifier: MIT
// Compiled and run by the test of g++: containers, strings, exceptions, aligned objects, threads.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace
{

struct alignas(64) Line {
	unsigned char bytes[64];

	explicit Line(unsigned value)
	{
		std::fill(std::begin(bytes), std::end(bytes), static_cast<unsigned char>(value));
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

struct Square : Shape {
	double side;

	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
};

struct Named : Square {
	std::string name;

	Named(double s, std::string n) : Square(s), name(std::move(n)) {}
	double area() const override { return Square::area() + static_cast<double>(name.size()); }
};

std::size_t maps()
{
	std::map<std::string, std::vector<int>> sorted;
	std::unordered_map<int, std::string> hashed;

	for (int i = 0; i < 60000; i++) {
		sorted["key" + std::to_string(i * 7919 % 3001)].push_back(i);
		hashed[i % 7001] += std::to_string(i);
		if (i % 17 == 0)
			sorted.erase("key" + std::to_string(i % 3001));
		if (i % 19 == 0)
			hashed.erase(i % 7001);
	}
	std::size_t sum = 0;
	for (const auto &[key, values] : sorted)
		sum = sum * 31 + key.size() + std::accumulate(values.begin(), values.end(), 0u);
	for (int i = 0; i < 7001; i++)
		if (auto found = hashed.find(i); found != hashed.end())
			sum = sum * 31 + found->second.size();
	return sum;
}

double shapes()
{
	std::deque<std::unique_ptr<Shape>> queue;
	double total = 0;

	for (int i = 0; i < 50000; i++) {
		if (i % 3)
			queue.push_back(std::make_unique<Square>(i % 10));
		else
			queue.push_back(std::make_unique<Named>(i % 10, std::string(i % 80, 'n')));
		if (queue.size() > 500) {
			total += queue.front()->area();
			queue.pop_front();
		}
	}
	return total;
}

unsigned aligned()
{
	std::vector<std::unique_ptr<Line>> lines;
	unsigned sum = 0;

	for (unsigned i = 0; i < 20000; i++) {
		lines.push_back(std::make_unique<Line>(i));
		if (reinterpret_cast<std::uintptr_t>(lines.back().get()) % 64)
			throw std::logic_error("not aligned");
		if (i % 3 == 2)
			lines.erase(lines.end() - 2);
	}
	for (const auto &line : lines)
		sum += line->bytes[63];
	return sum;
}

int exceptions()
{
	std::function<int(int)> deep = [&](int n) -> int {
		std::string local(static_cast<std::size_t>(n) * 10, 'e');
		if (n == 0)
			throw std::runtime_error("bottom of " + local);
		return deep(n - 1) + static_cast<int>(local.size());
	};
	int caught = 0;

	for (int i = 0; i < 2000; i++)
		try {
			deep(i % 30);
		} catch (const std::exception &) {
			caught++;
		}
	try {
		std::vector<char> enormous(std::vector<char>().max_size());
	} catch (const std::bad_alloc &) {
		caught++;
	}
	return caught;
}

std::size_t text()
{
	std::ostringstream stream;

	for (int i = 0; i < 20000; i++)
		stream << std::string(i % 13 + 1, 'w') << i << ' ';
	std::istringstream back(stream.str());
	std::string word, longest;
	std::size_t sum = 0;
	while (back >> word) {
		sum = sum * 31 + word.size();
		longest += word;
	}
	return sum + std::hash<std::string>()(longest);
}

std::uint64_t threads()
{
	std::vector<std::thread> workers;
	std::vector<std::shared_ptr<std::vector<int>>> shared(16);
	std::atomic<std::uint64_t> sum{0};

	for (std::size_t i = 0; i < shared.size(); i++)
		shared[i] = std::make_shared<std::vector<int>>(1000 + i, static_cast<int>(i));
	for (int t = 0; t < 4; t++)
		workers.emplace_back([&, t, own = shared] {
			std::multiset<std::variant<int, std::string>> set;
			for (int i = 0; i < 20000; i++) {
				if (i % 2)
					set.insert(i * t);
				else
					set.insert(std::string(i % 50, 't'));
				if (set.size() > 200)
					set.erase(set.begin());
			}
			for (const auto &vector : own)
				sum += std::accumulate(vector->begin(), vector->end(), set.size());
		});
	shared.clear();
	for (auto &worker : workers)
		worker.join();
	return sum;
}

} // namespace

int main()
{
	std::cout << "maps " << maps() << "\nshapes " << shapes() << "\naligned " << aligned()
		  << "\nexceptions " << exceptions() << "\ntext " << text() << "\nthreads "
		  << threads() << '\n';
}
