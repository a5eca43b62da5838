/// A checksum of what decisions follow from: two engines with the same digest have, as far as 64
/// bits can tell, the same future.
///
/// Values are added in a fixed order, ranges with their length, so that no two different states spell
/// the same. What can be worked out again from the rest (indexes, logs, scratch) is left out: a query
/// that brings an index up to date does not change the digest.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/time.h"
#include "engine/model/cell_request.h"
#include "engine/model/ids.h"
#include "engine/model/resources.h"
#include "engine/model/shared.h"

namespace muster::engine {

class Digest {
 public:
  /// Numbers, texts, times, ids, amounts, optionals, pairs and tuples, ranges of these, and every
  /// type that has `void digest(Digest&, const T&)` beside it.
  template <typename... T>
  Digest& add(const T&... values) {
    (one(values), ...);
    return *this;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t v) {
    value_ ^= v + 0x9e3779b97f4a7c15ULL + (value_ << 6) + (value_ >> 2);
    value_ *= 0xff51afd7ed558ccdULL;
    value_ ^= value_ >> 32;
  }

  template <typename T>
  void one(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      mix(static_cast<std::uint64_t>(value));
    } else if constexpr (std::convertible_to<T, std::string_view>) {
      text(value);
    } else if constexpr (requires { digest(*this, value); }) {
      digest(*this, value);
    } else if constexpr (std::ranges::range<T>) {
      mix(static_cast<std::uint64_t>(std::ranges::distance(value)));
      for (const auto& each : value) one(each);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](const auto&... parts) { this->add(parts...); }, value);
    } else {
      // An optional or a pointer to something that does not change.
      mix(value ? 1 : 0);
      if (value) one(*value);
    }
  }
  void text(std::string_view text) {
    mix(text.size());
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      word = word << 8 | static_cast<unsigned char>(text[i]);
      if (i % 8 == 7) mix(std::exchange(word, 0));
    }
    if (text.size() % 8 != 0) mix(word);
  }

  std::uint64_t value_ = 1469598103934665603ULL;
};

inline void digest(Digest& d, Time time) { d.add(time.us); }
inline void digest(Digest& d, Duration duration) { d.add(duration.count()); }
template <typename T>
void digest(Digest& d, const Shared<T>& shared) {
  d.add(*shared);
}
template <typename Tag>
void digest(Digest& d, Id<Tag> id) {
  d.add(id.value);
}
inline void digest(Digest& d, const Amount& amount) { d.add(amount.name, amount.value); }
/// Amounts of nothing at the end count as none.
inline void digest(Digest& d, const ResourceVector& vector) {
  std::size_t size = vector.size();
  while (size > 0 && vector[size - 1] == 0) --size;
  d.add(size);
  for (std::size_t i = 0; i < size; ++i) d.add(vector[i]);
}

// What pods ask of cells and hold of them.
inline void digest(Digest& d, const cells::GroupMember& m) {
  d.add(m.pods, m.leaves, m.cell_type, m.cell_number);
}
inline void digest(Digest& d, const cells::PodGroup& g) {
  d.add(g.name, g.within, g.member, g.children);
}
inline void digest(Digest& d, const cells::PodSpec& s) {
  d.add(s.vc, s.priority, s.pinned_cell, s.leaf_type, s.leaves, s.lazy_preemption);
  d.add(s.ignore_suggested, s.group, s.members, s.root, s.member);
}
inline void digest(Digest& d, const cells::PodPlacement& p) {
  d.add(p.node, p.leaves, p.preassigned_types);
}
inline void digest(Digest& d, const cells::MemberPlacement& m) { d.add(m.pods); }
inline void digest(Digest& d, const cells::BindInfo& b) {
  d.add(b.node, b.leaves, b.chain, b.group, b.root);
}
inline void digest(Digest& d, const cells::PodNote& n) { d.add(n.spec, n.error, n.bind); }

}  // namespace muster::engine
