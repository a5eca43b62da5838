/// The names that the portal writes on objects.
#pragma once

#include <string_view>

namespace muster::kube::names::portal {

/// On a job: who submitted it through the portal, and the tags that people gave it, "a,b".
inline constexpr std::string_view kSubmittedBy = "muster.dev/submitted-by";
inline constexpr std::string_view kTags = "muster.dev/tags";
/// On Secrets and ConfigMaps that it keeps for itself: "session", "views", "versions".
inline constexpr std::string_view kPart = "muster.dev/portal";
/// On nodes: the rack they stand in.
inline constexpr std::string_view kRack = "topology.muster.dev/rack";

}  // namespace muster::kube::names::portal
