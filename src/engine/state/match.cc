#include "engine/state/match.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::engine {

const std::string* find_label(const Labels& labels, std::string_view key) {
  for (const auto& [k, v] : labels) {
    if (k == key) return &v;
  }
  return nullptr;
}

namespace {

bool compare_numbers(const Requirement& r, const std::string& value) {
  if (r.values.size() != 1) return false;
  const auto have = parse_int(value);
  const auto want = parse_int(r.values[0]);
  if (!have || !want) return false;
  return r.op == Operator::kGt ? *have > *want : *have < *want;
}

bool holds(const Requirement& r, const std::string* value) {
  const auto listed = [&] {
    return std::find(r.values.begin(), r.values.end(), *value) != r.values.end();
  };
  switch (r.op) {
    case Operator::kIn:
      return value != nullptr && listed();
    case Operator::kNotIn:
      return value == nullptr || !listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      return value != nullptr && compare_numbers(r, *value);
  }
  return false;
}

bool any_address(const std::string& ip) { return ip.empty() || ip == "0.0.0.0" || ip == "::"; }

}  // namespace

bool matches(const Requirement& requirement, const Labels& labels) {
  return holds(requirement, find_label(labels, requirement.key));
}

bool matches(const Selector& selector, const Labels& labels) {
  return std::all_of(
      selector.all.begin(), selector.all.end(), [&](const auto& r) { return matches(r, labels); });
}

bool matches(const NodeTerm& term, const Labels& labels, const std::string& node_name) {
  if (term.labels.empty() && term.fields.empty()) return false;
  for (const auto& r : term.labels) {
    if (!matches(r, labels)) return false;
  }
  for (const auto& r : term.fields) {
    if (r.key != "metadata.name" || !holds(r, &node_name)) return false;
  }
  return true;
}

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect && *toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.exists;
  if (toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

const Taint* find_untolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations) {
  for (const auto& taint : taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule) continue;
    const bool ok = std::any_of(
        tolerations.begin(), tolerations.end(), [&](const auto& t) { return tolerates(t, taint); });
    if (!ok) return &taint;
  }
  return nullptr;
}

bool ports_conflict(const HostPort& a, const HostPort& b) {
  if (a.port != b.port || a.protocol != b.protocol) return false;
  return any_address(a.ip) || any_address(b.ip) || a.ip == b.ip;
}

}  // namespace muster::engine
