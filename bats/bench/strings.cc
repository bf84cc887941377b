// SPDX-License-Identifier: MIT
//
// strings N: N times over: build a line from words, take it apart again, count the words, keep
// some.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

uint64_t state = 88172645463325252;

uint64_t draw()
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

std::string word()
{
	std::string w;
	for (uint64_t r = draw() % 20000 + 27; r; r /= 3)
		w += (char)('a' + (r * 7) % 26);
	return w + "-" + w;
}

std::vector<std::string> split(const std::string &line)
{
	std::vector<std::string> parts;
	size_t at = 0;
	for (size_t end; (end = line.find(' ', at)) != std::string::npos; at = end + 1)
		parts.push_back(line.substr(at, end - at));
	parts.push_back(line.substr(at));
	return parts;
}

} // namespace

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], nullptr, 10) : 10000;
	std::unordered_map<std::string, unsigned long> counts;
	std::map<std::string, std::string> kept;
	size_t bytes = 0;

	for (unsigned long i = 0; i < n; i++) {
		std::string line = word();
		for (uint64_t k = 4 + draw() % 12; k; k--)
			line = line + " " + word();
		for (const std::string &part : split(line))
			counts[part + "/" + std::to_string(part.size())]++;
		std::ostringstream out;
		out << i % 5000 << ":" << line;
		kept[out.str().substr(0, 20)] = line;
		if (kept.size() > 4000)
			kept.erase(kept.begin());
		bytes += line.size();
	}
	std::cout << bytes << " bytes, " << counts.size() << " words, " << kept.size() << " kept\n";
}
