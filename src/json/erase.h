/// Removing members of an object without losing the order of the others, in time that grows with
/// the object alone: one stable_erase moves all that follows, so many of them are quadratic.
#pragma once

#include <algorithm>
#include <utility>

#include "json/json.h"

namespace muster::json {

/// Removes the members for which `doomed(key, value)` holds. It is asked once for each, and may
/// change the value of one that stays.
template <typename Doomed>
void erase_members(Object& object, Doomed&& doomed) {
  constexpr std::size_t kFew = 4;
  std::vector<std::size_t> places;
  std::size_t place = 0;
  for (auto& member : object) {
    if (doomed(std::string_view(member.key()), member.value())) places.push_back(place);
    ++place;
  }
  if (places.size() <= kFew) {
    for (auto at = places.rbegin(); at != places.rend(); ++at)
      object.stable_erase(object.begin() + static_cast<std::ptrdiff_t>(*at));
    return;
  }
  Object kept(object.storage());
  kept.reserve(object.size() - places.size());
  auto next = places.begin();
  place = 0;
  for (auto& member : object) {
    if (next != places.end() && *next == place)
      ++next;
    else
      kept.emplace(member.key(), std::move(member.value()));
    ++place;
  }
  object = std::move(kept);
}

}  // namespace muster::json
