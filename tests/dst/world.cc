#include "world.h"

#include <fmt/format.h>

#include "allocator_world.h"
#include "cell_world.h"
#include "queue_world.h"

namespace muster::dst {

const std::vector<NamedKind>& kinds() {
  static const std::vector<NamedKind> kKinds = {{Kind::kMuster, "muster"},
                                                {Kind::kVolcano, "volcano"},
                                                {Kind::kCells, "cells"},
                                                {Kind::kAllocator, "allocator"}};
  return kKinds;
}

std::string_view name_of(Kind kind) {
  for (const NamedKind& one : kinds()) {
    if (one.kind == kind) return one.name;
  }
  return "";
}

std::optional<Failure> World::go() {
  for (std::int64_t i = 0; i < run_.steps; ++i) {
    if (run_.skipped.contains(i)) continue;
    if (run_.trace) fmt::print("step {}\n", i);
    Random random(run_.seed * 1'000'003 + static_cast<std::uint64_t>(i) * 17 + 5);
    if (auto wrong = step(random)) return Failure{i, std::move(*wrong)};
  }
  return std::nullopt;
}

std::unique_ptr<World> make_world(const Run& run) {
  switch (run.kind) {
    case Kind::kCells:
      return std::make_unique<CellWorld>(run);
    case Kind::kAllocator:
      return std::make_unique<AllocatorWorld>(run);
    case Kind::kMuster:
    case Kind::kVolcano:
      break;
  }
  return std::make_unique<QueueWorld>(run);
}

}  // namespace muster::dst
