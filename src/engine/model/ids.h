/// Dense indexes of the engine's own tables. Callers never see them: they name things by strings,
/// and the engine interns a name once, when the first event about it arrives.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace muster::engine {

template <typename Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t v) : value(v) {}
  auto operator<=>(const Id&) const = default;
  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  [[nodiscard]] constexpr std::size_t index() const { return value; }
};

using NodeId = Id<struct NodeTag>;
using PodId = Id<struct PodTag>;
using GangId = Id<struct GangTag>;
using TenantId = Id<struct TenantTag>;
using ClassId = Id<struct ClassTag>;  ///< Pods that are alike for every placement decision.
/// Gangs that are alike: the same classes in the same numbers.
using ShapeId = Id<struct ShapeTag>;

}  // namespace muster::engine
