/// The names that answers write on objects.
#pragma once

#include <string_view>

namespace muster::kube::names::answers {

/// On a PodGroup that waits: "2026-11-16T11:05Z 10:20/14:40 learned", when it is expected to start,
/// between which times 8 in 10 such starts lie, and what that rests on.
inline constexpr std::string_view kExpectedStart = "muster.dev/expected-start";

}  // namespace muster::kube::names::answers
