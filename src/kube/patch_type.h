/// The four forms of PATCH, and the media types that name them.
#pragma once

#include <optional>
#include <string_view>

namespace muster::kube {

enum class PatchType { kJson, kMerge, kStrategic, kApply };

std::string_view media_type_of(PatchType type);
/// Nothing for a media type that names no patch.
std::optional<PatchType> patch_type_of(std::string_view media_type);

}  // namespace muster::kube
