#include "kube/patch_type.h"

#include <array>
#include <utility>

namespace muster::kube {
namespace {

constexpr std::array<std::pair<PatchType, std::string_view>, 4> kTypes{{
    {PatchType::kJson, "application/json-patch+json"},
    {PatchType::kMerge, "application/merge-patch+json"},
    {PatchType::kStrategic, "application/strategic-merge-patch+json"},
    {PatchType::kApply, "application/apply-patch+yaml"},
}};

}  // namespace

std::string_view media_type_of(PatchType type) {
  for (const auto& [each, name] : kTypes) {
    if (each == type) return name;
  }
  return "";
}

std::optional<PatchType> patch_type_of(std::string_view media_type) {
  for (const auto& [each, name] : kTypes) {
    if (name == media_type) return each;
  }
  return std::nullopt;
}

}  // namespace muster::kube
