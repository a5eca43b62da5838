// What the kinds that keep pods of a template running have in common.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/rules.h"
#include "kube/selector/selector.h"

namespace muster::kube {
namespace {

using json::Value;

void selector_matches_template(std::string_view kind, const Value& spec, Causes& causes) {
  const Value& selector = json::at(spec, "selector");
  const Value& labels = json::at(spec, "template", "metadata", "labels");
  const auto mismatch = [&] {
    causes.invalid("spec.template.metadata.labels",
                   json::dump(labels),
                   "`selector` does not match template `labels`");
  };
  if (selector.is_null()) {
    if (kind != "DaemonSet") causes.required("spec.selector");
    mismatch();
    return;
  }
  validate_label_selector(selector, "spec.selector", causes);
  if (json::is_empty(json::at(selector, "matchLabels")) &&
      json::is_empty(json::at(selector, "matchExpressions"))) {
    causes.invalid("spec.selector",
                   json::dump(selector),
                   fmt::format("empty selector is invalid for {}",
                               to_lower(kind == "ReplicaSet" ? "Deployment" : kind)));
    return;
  }
  const auto parsed = LabelSelector::from_object(selector);
  if (!parsed) {
    if (kind != "DaemonSet")
      causes.invalid("spec.selector",
                     json::dump(selector),
                     kind == "StatefulSet" ? "" : "invalid label selector");
  } else if (!parsed->matches(json::as_object(labels))) {
    mismatch();
  }
}

}  // namespace

void validate_template(const Value& spec, const std::string& field, Causes& causes) {
  const Value& pod = json::at(spec, "template");
  if (json::array_at(pod, "spec", "containers").empty()) {
    causes.required(field + ".spec.containers");
    return;
  }
  validate_labels(json::at(pod, "metadata", "labels"), field + ".metadata.labels", causes);
  validate_pod_spec(json::at(pod, "spec"), field + ".spec", causes);
}

void validate_replicated(const Value& object,
                         const Value* live,
                         const Replicated& what,
                         Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_non_negative(json::at(spec, "replicas"), "spec.replicas", causes);
  validate_non_negative(json::at(spec, "minReadySeconds"), "spec.minReadySeconds", causes);
  if (what.history)
    validate_non_negative(
        json::at(spec, "revisionHistoryLimit"), "spec.revisionHistoryLimit", causes);
  const bool daemon = what.kind == "DaemonSet";
  if (live != nullptr && daemon)
    immutable(
        json::at(spec, "selector"), json::at(*live, "spec", "selector"), "spec.selector", causes);
  if (what.selector) selector_matches_template(what.kind, spec, causes);
  if (what.strategy != nullptr) what.strategy(spec, causes);
  validate_template(spec, "spec.template", causes);
  const Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) != "Always" && restart.is_string()) {
    causes.not_supported("spec.template.spec.restartPolicy", json::as_string(restart), {"Always"});
  }
  if (!json::at(spec, "template", "spec", "activeDeadlineSeconds").is_null()) {
    causes.forbidden("spec.template.spec.activeDeadlineSeconds",
                     "activeDeadlineSeconds in ReplicaSet is not Supported");
  }
  if (live != nullptr && what.selector && !daemon)
    immutable(
        json::at(spec, "selector"), json::at(*live, "spec", "selector"), "spec.selector", causes);
}

}  // namespace muster::kube
