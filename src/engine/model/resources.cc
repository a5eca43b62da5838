#include "engine/model/resources.h"

namespace muster::engine {

ResourceNames::ResourceNames(std::string device_resource)
    : names_{"cpu", "memory", "pods", std::move(device_resource)} {}

std::size_t ResourceNames::find(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return i;
  }
  return kNone;
}

std::size_t ResourceNames::intern(std::string_view name) {
  const std::size_t known = find(name);
  if (known != kNone) return known;
  if (names_.size() == ResourceVector::kMax) return kNone;
  names_.emplace_back(name);
  return names_.size() - 1;
}

}  // namespace muster::engine
