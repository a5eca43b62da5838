/// Normal draws without a random source and without libm, whose last digits differ between machines:
/// from a hash, by a table in integers.
#pragma once

#include <cstdint>

namespace muster::answers {

/// In 65,536ths of a standard deviation, from 32 bits that are spread evenly.
std::int32_t normal_from(std::uint32_t bits);
/// The share of draws below z, in 2^-32; z in 65,536ths.
std::uint32_t share_below(std::int32_t z);

/// A hash of a draw, for whatever `name` names.
std::uint32_t bits_of(std::uint64_t seed, std::int32_t draw, std::uint64_t name);
/// The same, but of so many draws one falls into each of as many equal parts: a few of them say as much
/// as many that are drawn alone.
std::uint32_t even_bits_of(std::uint64_t seed,
                           std::int32_t draw,
                           std::int32_t draws,
                           std::uint64_t name);

}  // namespace muster::answers
