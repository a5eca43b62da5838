// apps/v1 and batch/v1: what carries a pod template.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/rules.h"
#include "kube/selector.h"
#include "kube/validate.h"

namespace muster::kube {
namespace {

using json::Value;

void validate_template(const Value& spec, const std::string& field, Causes& causes) {
  const Value& pod = json::at(spec, "template");
  validate_labels(json::at(pod, "metadata", "labels"), field + ".metadata.labels", causes);
  validate_pod_spec(json::at(pod, "spec"), field + ".spec", causes);
}

void selector_matches_template(const Value& spec, Causes& causes) {
  const Value& selector = json::at(spec, "selector");
  if (selector.is_null()) {
    causes.required("spec.selector");
    return;
  }
  validate_label_selector(selector, "spec.selector", causes);
  if (json::is_empty(json::at(selector, "matchLabels")) && json::is_empty(json::at(selector, "matchExpressions"))) {
    causes.invalid("spec.selector", json::dump(selector), "empty selector is invalid for deployment");
    return;
  }
  const auto parsed = LabelSelector::from_object(selector);
  const Value& labels = json::at(spec, "template", "metadata", "labels");
  if (parsed && !parsed->matches(json::as_object(labels))) {
    causes.invalid("spec.template.metadata.labels", json::dump(labels.is_null() ? Value(json::Object()) : labels), "`selector` does not match template `labels`");
  }
}

void validate_strategy(const Gvk& gvk, const Value& spec, Causes& causes) {
  if (gvk.kind == "Deployment") {
    const Value& strategy = json::at(spec, "strategy");
    const std::string_view type = json::as_string(json::at(strategy, "type"));
    if (type == "Recreate" && json::at(strategy, "rollingUpdate").is_object()) {
      causes.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'");
    } else if (type != "Recreate" && type != "RollingUpdate") {
      causes.not_supported("spec.strategy.type", type, {"Recreate", "RollingUpdate"});
    }
    const auto zero = [](const Value& value) { return json::is_empty(value) || json::as_string(value) == "0%"; };
    const Value& rolling = json::at(strategy, "rollingUpdate");
    if (type == "RollingUpdate" && zero(json::at(rolling, "maxUnavailable")) && zero(json::at(rolling, "maxSurge"))) {
      causes.invalid("spec.strategy.rollingUpdate.maxUnavailable", shown(json::at(rolling, "maxUnavailable")), "may not be 0 when `maxSurge` is 0");
    }
  } else if (gvk.kind == "StatefulSet") {
    validate_enum(json::at(spec, "podManagementPolicy"), "spec.podManagementPolicy", {"OrderedReady", "Parallel"}, causes);
    validate_enum(json::at(spec, "updateStrategy", "type"), "spec.updateStrategy.type", {"RollingUpdate", "OnDelete"}, causes);
  } else if (gvk.kind == "DaemonSet") {
    validate_enum(json::at(spec, "updateStrategy", "type"), "spec.updateStrategy.type", {"RollingUpdate", "OnDelete"}, causes);
  }
}

void validate_job_spec(const Value& spec, const std::string& field, bool selector, Causes& causes) {
  for (const std::string_view key : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "ttlSecondsAfterFinished"}) {
    const Value& value = json::at(spec, key);
    if (!value.is_null()) validate_non_negative(value, fmt::format("{}.{}", field, key), causes);
  }
  const std::string_view mode = json::as_string(json::at(spec, "completionMode"));
  if (!mode.empty() && mode != "NonIndexed" && mode != "Indexed") causes.not_supported(field + ".completionMode", mode, {"NonIndexed", "Indexed"});
  if (mode == "Indexed") {
    if (json::at(spec, "completions").is_null()) causes.required(field + ".completions", "when completion mode is Indexed");
    if (json::as_int(json::at(spec, "parallelism")) > 100000) {
      causes.invalid(field + ".parallelism", json::dump(json::at(spec, "parallelism")), "must be less than or equal to 100000 when completion mode is Indexed");
    }
  }
  if (selector && json::at(spec, "selector").is_null()) causes.required(field + ".selector");
  validate_template(spec, field + ".template", causes);
  const Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) == "Always" || json::as_string(restart).empty()) {
    causes.add({"FieldValueRequired", "Required value: valid values: \"OnFailure\", \"Never\"", field + ".template.spec.restartPolicy"});
  }
}

void validate_job_scheduling(const Value& spec, const Value* live, Causes& causes) {
  const Value& scheduling = json::at(spec, "scheduling");
  if (!scheduling.is_object()) return;
  validate_job_scheduling_shape(scheduling, causes);
  const Value& policy = json::at(scheduling, "schedulingPolicy");
  const Value& count = json::at(policy, "gang", "minCount");
  const std::int64_t parallelism = json::as_int(json::at(spec, "parallelism"), 1);
  if (!count.is_null() && json::as_int(count) > parallelism) {
    causes.invalid("spec.scheduling.schedulingPolicy.gang.minCount", json::dump(count), fmt::format("must not be greater than parallelism ({})", parallelism));
  }
  const bool gang = json::at(policy, "gang").is_object();
  if (!gang && json::at(scheduling, "disruptionMode", "all").is_object()) {
    causes.invalid("spec.scheduling.disruptionMode", "\"\"", "the disruptionMode `all` is not supported with the Basic scheduling policy");
  }
  if (live != nullptr) {
    const Value& old = json::at(*live, "spec", "scheduling", "schedulingPolicy");
    if (json::at(old, "gang").is_object() != gang) {
      causes.invalid("spec.scheduling.schedulingPolicy", "null",
                     "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated");
    }
  }
}

}  // namespace

void validate_replicated(const Gvk& gvk, const Value& object, const Value* live, Causes& causes) {
  if (gvk.kind == "ControllerRevision") return;
  const Value& spec = json::at(object, "spec");
  validate_non_negative(json::at(spec, "replicas"), "spec.replicas", causes);
  validate_non_negative(json::at(spec, "minReadySeconds"), "spec.minReadySeconds", causes);
  if (gvk.group == "apps") selector_matches_template(spec, causes);
  validate_strategy(gvk, spec, causes);
  validate_template(spec, "spec.template", causes);
  const Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) != "Always" && restart.is_string()) {
    causes.not_supported("spec.template.spec.restartPolicy", json::as_string(restart), {"Always"});
  }
  if (!json::at(spec, "template", "spec", "activeDeadlineSeconds").is_null()) {
    causes.forbidden("spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported");
  }
  if (live == nullptr || gvk.group != "apps") return;
  const Value& before = json::at(*live, "spec");
  immutable(json::at(spec, "selector"), json::at(before, "selector"), "spec.selector", causes);
  if (gvk.kind != "StatefulSet") return;
  Value now = spec;
  Value old = before;
  for (Value* value : {&now, &old}) {
    for (const std::string_view key : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
      json::remove(*value, {key});
    }
  }
  if (!json::equal(now, old)) {
    causes.forbidden("spec", "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                             "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
  }
}

void validate_job(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_job_spec(spec, "spec", live != nullptr, causes);
  validate_job_scheduling(spec, live, causes);
  if (live == nullptr) return;
  const Value& before = json::at(*live, "spec");
  if (json::as_string(json::at(spec, "completionMode")) != "Indexed") {
    immutable(json::at(spec, "completions"), json::at(before, "completions"), "spec.completions", causes);
  }
  immutable(json::at(spec, "selector"), json::at(before, "selector"), "spec.selector", causes);
  immutable(json::at(spec, "completionMode"), json::at(before, "completionMode"), "spec.completionMode", causes);
  immutable(json::at(spec, "podFailurePolicy"), json::at(before, "podFailurePolicy"), "spec.podFailurePolicy", causes);
  // While suspended and never started, the template's placement may still change.
  const bool open = json::as_bool(json::at(before, "suspend")) && json::at(*live, "status", "startTime").is_null();
  if (!open) immutable(json::at(spec, "template"), json::at(before, "template"), "spec.template", causes);
}

void validate_cron_job(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const std::string_view schedule = json::as_string(json::at(spec, "schedule"));
  if (schedule.empty()) {
    causes.required("spec.schedule");
  } else if (!schedule.starts_with('@') && split_nonempty(schedule, ' ').size() != 5) {
    causes.invalid("spec.schedule", quoted(schedule), fmt::format("expected exactly 5 fields, found {}: [{}]", split_nonempty(schedule, ' ').size(), schedule));
  }
  validate_enum(json::at(spec, "concurrencyPolicy"), "spec.concurrencyPolicy", {"Allow", "Forbid", "Replace"}, causes);
  for (const std::string_view key : {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    validate_non_negative(json::at(spec, key), fmt::format("spec.{}", key), causes);
  }
  validate_job_spec(json::at(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec", false, causes);
}

}  // namespace muster::kube
