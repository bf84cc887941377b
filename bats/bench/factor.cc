// SPDX-License-Identifier: MIT
//
// factor N...: prime factors by Pollard's rho, on whole numbers of any length. Each operation makes
// a new number on the heap, as in most languages that have them, and few live longer than a line.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace
{

// Limbs of 32 bits, the least first, no zero on top; never changed once made.
struct Limbs {
	explicit Limbs(size_t n) : limb(n)
	{
	}
	std::vector<uint32_t> limb;
};

using Number = std::shared_ptr<const Limbs>;

Number trimmed(std::unique_ptr<Limbs> n)
{
	while (!n->limb.empty() && !n->limb.back())
		n->limb.pop_back();
	return n;
}

Number number(uint32_t value)
{
	auto n = std::make_unique<Limbs>(1);
	n->limb[0] = value;
	return trimmed(std::move(n));
}

int compare(const Number &a, const Number &b)
{
	if (a->limb.size() != b->limb.size())
		return a->limb.size() < b->limb.size() ? -1 : 1;
	for (size_t i = a->limb.size(); i-- > 0;)
		if (a->limb[i] != b->limb[i])
			return a->limb[i] < b->limb[i] ? -1 : 1;
	return 0;
}

Number add(const Number &a, const Number &b)
{
	auto n = std::make_unique<Limbs>(std::max(a->limb.size(), b->limb.size()) + 1);
	uint64_t carry = 0;

	for (size_t i = 0; i < n->limb.size(); i++) {
		carry += i < a->limb.size() ? a->limb[i] : 0;
		carry += i < b->limb.size() ? b->limb[i] : 0;
		n->limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	return trimmed(std::move(n));
}

// a >= b
Number subtract(const Number &a, const Number &b)
{
	auto n = std::make_unique<Limbs>(a->limb.size());
	int64_t borrow = 0;

	for (size_t i = 0; i < n->limb.size(); i++) {
		borrow += (int64_t)a->limb[i] - (i < b->limb.size() ? b->limb[i] : 0);
		n->limb[i] = (uint32_t)borrow;
		borrow >>= 32;
	}
	return trimmed(std::move(n));
}

Number multiply(const Number &a, const Number &b)
{
	auto n = std::make_unique<Limbs>(a->limb.size() + b->limb.size());

	for (size_t i = 0; i < a->limb.size(); i++) {
		uint64_t carry = 0;
		for (size_t k = 0; k < b->limb.size(); k++) {
			carry += (uint64_t)a->limb[i] * b->limb[k] + n->limb[i + k];
			n->limb[i + k] = (uint32_t)carry;
			carry >>= 32;
		}
		n->limb[i + b->limb.size()] = (uint32_t)carry;
	}
	return trimmed(std::move(n));
}

// Knuth's algorithm D; the quotient where one wants it.
Number remainder(const Number &a, const Number &b, Number *quotient = nullptr)
{
	size_t n = b->limb.size();

	if (compare(a, b) < 0) {
		if (quotient)
			*quotient = number(0);
		return a;
	}
	auto q = std::make_unique<Limbs>(a->limb.size() - n + 1);
	int shift = __builtin_clz(b->limb.back());
	auto u = std::make_unique<Limbs>(a->limb.size() + 1);
	auto v = std::make_unique<Limbs>(n);
	for (size_t i = 0; i < n; i++)
		v->limb[i] =
			b->limb[i] << shift | (i && shift ? b->limb[i - 1] >> (32 - shift) : 0);
	for (size_t i = 0; i <= a->limb.size(); i++)
		u->limb[i] = (i < a->limb.size() ? a->limb[i] << shift : 0) |
		             (i && shift ? a->limb[i - 1] >> (32 - shift) : 0);
	for (size_t j = a->limb.size() - n + 1; j-- > 0;) {
		uint64_t top = (uint64_t)u->limb[j + n] << 32 | u->limb[j + n - 1];
		uint64_t guess = top / v->limb[n - 1], rest = top % v->limb[n - 1];
		while (guess >> 32 ||
			(n > 1 && guess * v->limb[n - 2] > (rest << 32 | u->limb[j + n - 2]))) {
			guess--;
			rest += v->limb[n - 1];
			if (rest >> 32)
				break;
		}
		int64_t borrow = 0;
		uint64_t carry = 0;
		for (size_t i = 0; i < n; i++) {
			carry += guess * v->limb[i];
			borrow += (int64_t)u->limb[i + j] - (uint32_t)carry;
			u->limb[i + j] = (uint32_t)borrow;
			borrow >>= 32;
			carry >>= 32;
		}
		borrow += (int64_t)u->limb[j + n] - (int64_t)carry;
		u->limb[j + n] = (uint32_t)borrow;
		if (borrow < 0) {
			guess--;
			carry = 0;
			for (size_t i = 0; i < n; i++) {
				carry += (uint64_t)u->limb[i + j] + v->limb[i];
				u->limb[i + j] = (uint32_t)carry;
				carry >>= 32;
			}
			u->limb[j + n] += (uint32_t)carry;
		}
		q->limb[j] = (uint32_t)guess;
	}
	auto r = std::make_unique<Limbs>(n);
	for (size_t i = 0; i < n; i++)
		r->limb[i] = u->limb[i] >> shift |
		             (shift ? (uint32_t)((uint64_t)u->limb[i + 1] << (32 - shift)) : 0);
	if (quotient)
		*quotient = trimmed(std::move(q));
	return trimmed(std::move(r));
}

bool is(const Number &a, uint32_t value)
{
	return value ? a->limb.size() == 1 && a->limb[0] == value : a->limb.empty();
}

Number gcd(Number a, Number b)
{
	while (!is(b, 0)) {
		Number r = remainder(a, b);
		a = b;
		b = r;
	}
	return a;
}

Number power(const Number &base, const Number &exponent, const Number &modulus)
{
	Number result = number(1);

	for (size_t i = exponent->limb.size() * 32; i-- > 0;) {
		result = remainder(multiply(result, result), modulus);
		if (exponent->limb[i / 32] >> i % 32 & 1)
			result = remainder(multiply(result, base), modulus);
	}
	return result;
}

// Miller-Rabin; the bases are enough for what fits in 81 bits.
bool prime(const Number &n)
{
	static const uint32_t bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41};
	Number one = number(1), less = subtract(n, one), odd = less;
	unsigned twos = 0;

	for (uint32_t p : bases)
		if (is(n, p) || is(remainder(n, number(p)), 0))
			return is(n, p);
	for (Number half; is(remainder(odd, number(2), &half), 0); odd = half)
		twos++;
	for (uint32_t base : bases) {
		Number x = power(number(base), odd, n);
		if (is(x, 1) || !compare(x, less))
			continue;
		unsigned i = 1;
		for (; i < twos; i++) {
			x = remainder(multiply(x, x), n);
			if (!compare(x, less))
				break;
		}
		if (i == twos)
			return false;
	}
	return true;
}

Number rho(const Number &n)
{
	for (uint32_t c = 1;; c++) {
		Number x = number(2), y = x, product = number(1), increment = number(c);
		auto step = [&](const Number &z) {
			return remainder(add(multiply(z, z), increment), n);
		};
		for (unsigned i = 1;; i++) {
			x = step(x);
			y = step(step(y));
			Number difference = compare(x, y) < 0 ? subtract(y, x) : subtract(x, y);
			if (is(difference, 0))
				break;
			product = remainder(multiply(product, difference), n);
			if (i % 64)
				continue;
			Number d = gcd(n, product);
			if (!is(d, 1) && compare(d, n))
				return d;
			if (!is(d, 1))
				break;
		}
	}
}

Number parse(const std::string &text)
{
	Number n = number(0);

	for (char digit : text)
		n = add(multiply(n, number(10)), number((uint32_t)(digit - '0')));
	return n;
}

std::string text(Number n)
{
	std::string digits;

	while (!is(n, 0)) {
		Number rest;
		Number digit = remainder(n, number(10), &rest);
		digits += (char)('0' + (is(digit, 0) ? 0 : digit->limb[0]));
		n = rest;
	}
	std::reverse(digits.begin(), digits.end());
	return digits;
}

void factor(const Number &n, std::vector<std::string> &factors)
{
	if (is(n, 1))
		return;
	if (prime(n)) {
		factors.push_back(text(n));
		return;
	}
	Number quotient, d = is(remainder(n, number(2)), 0) ? number(2) : rho(n);
	remainder(n, d, &quotient);
	factor(d, factors);
	factor(quotient, factors);
}

} // namespace

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		std::vector<std::string> factors;
		factor(parse(argv[i]), factors);
		std::sort(factors.begin(), factors.end());
		std::cout << argv[i] << ":";
		for (const auto &f : factors)
			std::cout << " " << f;
		std::cout << "\n";
	}
}
