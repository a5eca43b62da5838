/// Selectors, taints and node terms as Kubernetes defines them. Pure functions over values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace muster::engine {

/// nullptr when absent.
const std::string* find_label(const Labels& labels, std::string_view key);

bool matches(const Requirement& requirement, const Labels& labels);
bool matches(const Selector& selector, const Labels& labels);
/// metadata.name is the only field.
bool matches(const NodeTerm& term, const Labels& labels, const std::string& node_name);

bool tolerates(const Toleration& toleration, const Taint& taint);
/// The first NoSchedule or NoExecute taint that nothing tolerates.
const Taint* find_untolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations);

bool ports_conflict(const HostPort& a, const HostPort& b);

}  // namespace muster::engine
