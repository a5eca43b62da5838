/// Looking through the objects of a collection, as long as it may take, without keeping the loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apiserver/core.h"
#include "apiserver/registry/image.h"
#include "apiserver/rest/rest.h"
#include "base/pace.h"

namespace muster::apiserver {

using Objects = std::map<std::string, StoredPtr, std::less<>>;

/// The objects of a collection in the order of their keys, as they were at some revision: those of
/// now, and in their place what `undone` says they were (null: it was not there). Good within one
/// turn of the loop.
class Walk {
 public:
  /// Only keys that begin with `prefix` and come after `after`.
  Walk(const Objects& now, const Objects& undone, std::string prefix, const std::string& after);

  /// Null at the end.
  const StoredPtr* next();

 private:
  using Place = Objects::const_iterator;
  [[nodiscard]] bool left(Place place, const Objects& of) const {
    return place != of.end() && place->first.starts_with(prefix_);
  }

  const Objects& now_;
  const Objects& undone_;
  std::string prefix_;
  Place now_place_, undone_place_;
};

/// "ns/" or, for all namespaces and cluster-scoped kinds, nothing.
std::string key_prefix(const Resource& resource, const std::string& ns);

/// The first `most` (0: all) that are selected. They are as they were when it was called, however
/// long it takes; the walk has not been left if as many were found as it may give.
Task<std::vector<StoredPtr>> find_selected(Slices& slices,
                                           const Resource& resource,
                                           Walk& walk,
                                           const Selection& selection,
                                           std::size_t most);

}  // namespace muster::apiserver
