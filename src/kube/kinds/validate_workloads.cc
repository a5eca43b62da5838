// apps/v1 and batch/v1: what carries a pod template.
#include <fmt/core.h>

#include "base/strings.h"
#include "base/time_zone.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/selector/selector.h"

namespace muster::kube {
namespace {

using json::Value;

void validate_template(const Value& spec, const std::string& field, Causes& causes) {
  const Value& pod = json::at(spec, "template");
  if (json::array_at(pod, "spec", "containers").empty()) {
    causes.required(field + ".spec.containers");
    return;
  }
  validate_labels(json::at(pod, "metadata", "labels"), field + ".metadata.labels", causes);
  validate_pod_spec(json::at(pod, "spec"), field + ".spec", causes);
}

void selector_matches_template(const Gvk& gvk, const Value& spec, Causes& causes) {
  const Value& selector = json::at(spec, "selector");
  const Value& labels = json::at(spec, "template", "metadata", "labels");
  const auto mismatch = [&] {
    causes.invalid("spec.template.metadata.labels",
                   json::dump(labels),
                   "`selector` does not match template `labels`");
  };
  if (selector.is_null()) {
    if (gvk.kind != "DaemonSet") causes.required("spec.selector");
    mismatch();
    return;
  }
  validate_label_selector(selector, "spec.selector", causes);
  if (json::is_empty(json::at(selector, "matchLabels")) &&
      json::is_empty(json::at(selector, "matchExpressions"))) {
    causes.invalid("spec.selector",
                   json::dump(selector),
                   fmt::format("empty selector is invalid for {}",
                               to_lower(gvk.kind == "ReplicaSet" ? "Deployment" : gvk.kind)));
    return;
  }
  const auto parsed = LabelSelector::from_object(selector);
  if (!parsed) {
    if (gvk.kind != "DaemonSet")
      causes.invalid("spec.selector",
                     json::dump(selector),
                     gvk.kind == "StatefulSet" ? "" : "invalid label selector");
  } else if (!parsed->matches(json::as_object(labels))) {
    mismatch();
  }
}

void validate_strategy(const Gvk& gvk, const Value& spec, Causes& causes) {
  if (gvk.kind == "Deployment") {
    const Value& strategy = json::at(spec, "strategy");
    const std::string_view type = json::string_at(strategy, "type");
    if (type == "Recreate" && json::at(strategy, "rollingUpdate").is_object()) {
      causes.forbidden("spec.strategy.rollingUpdate",
                       "may not be specified when strategy `type` is 'Recreate'");
    } else if (type != "Recreate" && type != "RollingUpdate") {
      causes.add(
          {"FieldValueNotSupported",
           fmt::format("Unsupported value: {}: supported values: \"Recreate\", \"RollingUpdate\"",
                       json::dump(strategy)),
           "spec.strategy"});
    }
    const auto zero = [](const Value& value) {
      return json::is_empty(value) || json::as_string(value) == "0%";
    };
    const Value& rolling = json::at(strategy, "rollingUpdate");
    if (type == "RollingUpdate") {
      validate_int_or_percent(json::at(rolling, "maxUnavailable"),
                              "spec.strategy.rollingUpdate.maxUnavailable",
                              causes);
      const Value& surge = json::at(rolling, "maxSurge");
      const bool above =
          json::as_string(surge).ends_with('%') &&
          parse_int(json::as_string(surge).substr(0, json::as_string(surge).size() - 1));
      if (!above)
        validate_int_or_percent(
            surge, "spec.strategy.rollingUpdate.maxSurge", causes);  // a surge may exceed 100%
    }
    const Value& deadline = json::at(spec, "progressDeadlineSeconds");
    if (!deadline.is_null()) {
      validate_non_negative(deadline, "spec.progressDeadlineSeconds", causes);
      if (json::as_int(deadline) <= json::int_at(spec, "minReadySeconds")) {
        causes.invalid("spec.progressDeadlineSeconds",
                       json::dump(deadline),
                       "must be greater than minReadySeconds");
      }
    }
    if (type == "RollingUpdate" && zero(json::at(rolling, "maxUnavailable")) &&
        zero(json::at(rolling, "maxSurge"))) {
      causes.invalid("spec.strategy.rollingUpdate.maxUnavailable",
                     shown(json::at(rolling, "maxUnavailable")),
                     "may not be 0 when `maxSurge` is 0");
    }
  } else if (gvk.kind == "StatefulSet") {
    const std::string_view policy = json::string_at(spec, "podManagementPolicy");
    if (policy.empty())
      causes.required("spec.podManagementPolicy");
    else if (policy != "OrderedReady" && policy != "Parallel")
      causes.invalid(
          "spec.podManagementPolicy", quoted(policy), "must be 'OrderedReady' or 'Parallel'");
    const Value& strategy = json::at(spec, "updateStrategy");
    const std::string_view type = json::string_at(strategy, "type");
    if (type.empty())
      causes.required("spec.updateStrategy");
    else if (type != "RollingUpdate" && type != "OnDelete")
      causes.invalid(
          "spec.updateStrategy", json::dump(strategy), "must be 'RollingUpdate' or 'OnDelete'");
    validate_non_negative(json::at(strategy, "rollingUpdate", "partition"),
                          "spec.updateStrategy.rollingUpdate.partition",
                          causes);
    validate_non_negative(json::at(spec, "ordinals", "start"), "spec.ordinals.start", causes);
    const std::string_view service = json::string_at(spec, "serviceName");
    if (!service.empty()) causes.check("spec.serviceName", service, check_dns_label(service));
  } else if (gvk.kind == "DaemonSet") {
    validate_enum(json::at(spec, "updateStrategy", "type"),
                  "spec.updateStrategy.type",
                  {"RollingUpdate", "OnDelete"},
                  causes);
  }
}

/// What counts by index needs indexes.
void validate_indexed_only(const Value& spec,
                           const std::string& field,
                           bool indexed,
                           Causes& causes) {
  const Value& per_index = json::at(spec, "backoffLimitPerIndex");
  const Value& failed = json::at(spec, "maxFailedIndexes");
  if (!failed.is_null() && per_index.is_null())
    causes.required(field + ".backoffLimitPerIndex", "when maxFailedIndexes is specified");
  if (indexed) return;
  if (!per_index.is_null())
    causes.invalid(
        field + ".backoffLimitPerIndex", json::dump(per_index), "requires indexed completion mode");
  if (!failed.is_null())
    causes.invalid(
        field + ".maxFailedIndexes", json::dump(failed), "requires indexed completion mode");
  const Value& success = json::at(spec, "successPolicy");
  if (!success.is_null())
    causes.invalid(
        field + ".successPolicy", json::dump(success), "requires indexed completion mode");
}

void validate_failure_policy(const Value& policy, const std::string& field, Causes& causes) {
  const json::Array& rules = json::array_at(policy, "rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string here = fmt::format("{}.rules[{}]", field, i);
    validate_enum(json::at(rules[i], "action"),
                  here + ".action",
                  {"Count", "FailIndex", "FailJob", "Ignore"},
                  causes);
    const bool codes = json::at(rules[i], "onExitCodes").is_object();
    const bool conditions = !json::array_at(rules[i], "onPodConditions").empty();
    if (codes && conditions)
      causes.add({"FieldValueInvalid",
                  "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
                  here});
    if (!codes && !conditions)
      causes.add({"FieldValueInvalid",
                  "Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
                  here});
  }
}

void validate_job_spec(const Value& spec, const std::string& field, bool selector, Causes& causes) {
  for (const std::string_view key : {"parallelism",
                                     "completions",
                                     "activeDeadlineSeconds",
                                     "backoffLimit",
                                     "backoffLimitPerIndex",
                                     "maxFailedIndexes",
                                     "ttlSecondsAfterFinished"}) {
    const Value& value = json::at(spec, key);
    if (!value.is_null()) validate_non_negative(value, fmt::format("{}.{}", field, key), causes);
  }
  const std::string_view manager = json::string_at(spec, "managedBy");
  if (!manager.empty() && manager.find('/') == std::string_view::npos) {
    causes.invalid(field + ".managedBy",
                   quoted(manager),
                   "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  const std::string_view mode = json::string_at(spec, "completionMode");
  validate_indexed_only(spec, field, mode == "Indexed", causes);
  validate_failure_policy(json::at(spec, "podFailurePolicy"), field + ".podFailurePolicy", causes);
  validate_enum(json::at(spec, "podReplacementPolicy"),
                field + ".podReplacementPolicy",
                {"Failed", "TerminatingOrFailed"},
                causes,
                false);
  if (!mode.empty() && mode != "NonIndexed" && mode != "Indexed")
    causes.not_supported(field + ".completionMode", mode, {"NonIndexed", "Indexed"});
  if (mode == "Indexed") {
    if (json::at(spec, "completions").is_null())
      causes.required(field + ".completions", "when completion mode is Indexed");
    if (json::int_at(spec, "parallelism") > 100000) {
      causes.invalid(field + ".parallelism",
                     json::dump(json::at(spec, "parallelism")),
                     "must be less than or equal to 100000 when completion mode is Indexed");
    }
  }
  if (selector && json::at(spec, "selector").is_null()) causes.required(field + ".selector");
  validate_template(spec, field + ".template", causes);
  const Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) == "Always" || json::as_string(restart).empty()) {
    causes.add({"FieldValueRequired",
                "Required value: valid values: \"OnFailure\", \"Never\"",
                field + ".template.spec.restartPolicy"});
  }
}

/// Labels, annotations and what decides where a pod goes, as they were.
void keep_placement(Value& now, const Value& before) {
  const auto keep = [&](std::initializer_list<std::string_view> path) {
    const Value* old = &before;
    for (const std::string_view part : path) old = &json::at(*old, part);
    if (old->is_null())
      json::remove(now, path);
    else
      json::make(now, path) = *old;
  };
  keep({"metadata", "labels"});
  keep({"metadata", "annotations"});
  for (const std::string_view key : {"nodeSelector", "affinity", "tolerations", "schedulingGates"})
    keep({"spec", key});
}

void validate_job_scheduling(const Value& spec, const Value* live, Causes& causes) {
  const Value& scheduling = json::at(spec, "scheduling");
  if (!scheduling.is_object()) return;
  validate_job_scheduling_shape(scheduling, causes);
  const Value& policy = json::at(scheduling, "schedulingPolicy");
  const Value& count = json::at(policy, "gang", "minCount");
  const std::int64_t parallelism = json::as_int(json::at(spec, "parallelism"), 1);
  if (!count.is_null() && json::as_int(count) > parallelism) {
    causes.invalid("spec.scheduling.schedulingPolicy.gang.minCount",
                   json::dump(count),
                   fmt::format("must not be greater than parallelism ({})", parallelism));
  }
  const bool gang = json::at(policy, "gang").is_object();
  if (!gang && json::at(scheduling, "disruptionMode", "all").is_object()) {
    causes.invalid("spec.scheduling.disruptionMode",
                   "\"\"",
                   "the disruptionMode `all` is not supported with the Basic scheduling policy");
  }
  if (live != nullptr) {
    const Value& old = json::at(*live, "spec", "scheduling", "schedulingPolicy");
    if (json::at(old, "gang").is_object() != gang) {
      causes.invalid(
          "spec.scheduling.schedulingPolicy",
          "null",
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
  if (gvk.kind == "Deployment" || gvk.kind == "DaemonSet")
    validate_non_negative(
        json::at(spec, "revisionHistoryLimit"), "spec.revisionHistoryLimit", causes);
  if (live != nullptr && gvk.kind == "DaemonSet")
    immutable(
        json::at(spec, "selector"), json::at(*live, "spec", "selector"), "spec.selector", causes);
  if (gvk.group == "apps") selector_matches_template(gvk, spec, causes);
  validate_strategy(gvk, spec, causes);
  validate_template(spec, "spec.template", causes);
  const Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) != "Always" && restart.is_string()) {
    causes.not_supported("spec.template.spec.restartPolicy", json::as_string(restart), {"Always"});
  }
  if (!json::at(spec, "template", "spec", "activeDeadlineSeconds").is_null()) {
    causes.forbidden("spec.template.spec.activeDeadlineSeconds",
                     "activeDeadlineSeconds in ReplicaSet is not Supported");
  }
  if (live == nullptr || gvk.group != "apps") return;
  const Value& before = json::at(*live, "spec");
  if (gvk.kind != "DaemonSet")
    immutable(json::at(spec, "selector"), json::at(before, "selector"), "spec.selector", causes);
  if (gvk.kind != "StatefulSet") return;
  for (const std::string_view key :
       {"serviceName", "podManagementPolicy", "volumeClaimTemplates"}) {
    const Value& old = json::at(before, key);
    if (!(json::is_empty(json::at(spec, key)) && json::is_empty(old)))
      immutable(json::at(spec, key), old, fmt::format("spec.{}", key), causes);
  }
  Value now = spec;
  Value old = before;
  for (Value* value : {&now, &old}) {
    for (const std::string_view key : {"replicas",
                                       "ordinals",
                                       "template",
                                       "updateStrategy",
                                       "revisionHistoryLimit",
                                       "persistentVolumeClaimRetentionPolicy",
                                       "minReadySeconds",
                                       "serviceName",
                                       "podManagementPolicy",
                                       "volumeClaimTemplates",
                                       "selector"}) {
      json::remove(*value, {key});
    }
  }
  if (!json::equal(now, old)) {
    causes.forbidden(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
  }
}

void validate_job(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_job_spec(spec, "spec", live != nullptr, causes);
  validate_job_scheduling(spec, live, causes);
  if (live == nullptr) {
    if (uid_of(object).empty()) return;  // not yet prepared: the selector comes with the uid
    const Value& selector = json::at(spec, "selector");
    const Value& labels = json::at(spec, "template", "metadata", "labels");
    const bool manual = json::bool_at(spec, "manualSelector");
    if (!manual && json::object_at(selector, "matchLabels").size() +
                           json::array_at(selector, "matchExpressions").size() !=
                       1) {
      causes.invalid("spec.selector", json::dump(selector), "`selector` not auto-generated");
    }
    if (manual && selector.is_null()) causes.required("spec.selector");
    const auto parsed = LabelSelector::from_object(selector);
    const bool matches = !selector.is_null() && parsed && parsed->matches(json::as_object(labels));
    if (!matches)
      causes.invalid("spec.template.metadata.labels",
                     json::dump(labels),
                     "`selector` does not match template `labels`");
    return;
  }
  const Value& before = json::at(*live, "spec");
  if (json::string_at(spec, "completionMode") != "Indexed") {
    immutable(
        json::at(spec, "completions"), json::at(before, "completions"), "spec.completions", causes);
  }
  immutable(json::at(spec, "selector"), json::at(before, "selector"), "spec.selector", causes);
  immutable(json::at(spec, "completionMode"),
            json::at(before, "completionMode"),
            "spec.completionMode",
            causes);
  immutable(json::at(spec, "podFailurePolicy"),
            json::at(before, "podFailurePolicy"),
            "spec.podFailurePolicy",
            causes);
  immutable(json::at(spec, "managedBy"), json::at(before, "managedBy"), "spec.managedBy", causes);
  // While suspended and never started, the template's placement may still change.
  const bool open =
      json::bool_at(before, "suspend") && json::at(*live, "status", "startTime").is_null();
  Value now = json::at(spec, "template");
  if (open) keep_placement(now, json::at(before, "template"));
  immutable(now, json::at(before, "template"), "spec.template", causes);
}

void validate_job_status(const Value& object, Causes& causes) {
  const Value& status = json::at(object, "status");
  for (const std::string_view key : {"active", "succeeded", "failed", "ready", "terminating"}) {
    validate_non_negative(json::at(status, key), fmt::format("status.{}", key), causes);
  }
  const auto holds = [&](std::string_view type) {
    for (const Value& condition : json::array_at(status, "conditions")) {
      if (json::string_at(condition, "type") == type &&
          json::string_at(condition, "status") == "True")
        return true;
    }
    return false;
  };
  const auto both = [&](std::string_view one, std::string_view other) {
    if (holds(one) && holds(other))
      causes.invalid("status.conditions",
                     "\"\"",
                     fmt::format("cannot set {}=True and {}=true conditions", one, other));
  };
  both("Complete", "Failed");
  both("Complete", "FailureTarget");
  both("Failed", "SuccessCriteriaMet");
}

void validate_time_zone(const Value& zone, Causes& causes) {
  if (!zone.is_string()) return;
  const std::string_view name = json::as_string(zone);
  const auto bad = [&](std::string_view why) {
    causes.invalid("spec.timeZone", quoted(name), std::string(why));
  };
  if (name.empty()) return bad("timeZone must be nil or non-empty string");
  if (to_lower(name) == "local")
    return bad(
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  if (const auto found = TimeZone::find(name); !found) bad(found.error().message);
}

void validate_cron_job(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const std::string_view schedule = json::string_at(spec, "schedule");
  if (schedule.empty()) {
    causes.required("spec.schedule");
  } else if (!schedule.starts_with('@') && split_nonempty(schedule, ' ').size() != 5) {
    causes.invalid("spec.schedule",
                   quoted(schedule),
                   fmt::format("expected exactly 5 fields, found {}: [{}]",
                               split_nonempty(schedule, ' ').size(),
                               schedule));
  }
  validate_enum(json::at(spec, "concurrencyPolicy"),
                "spec.concurrencyPolicy",
                {"Allow", "Forbid", "Replace"},
                causes);
  for (const std::string_view key :
       {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    validate_non_negative(json::at(spec, key), fmt::format("spec.{}", key), causes);
  }
  validate_time_zone(json::at(spec, "timeZone"), causes);
  validate_job_spec(json::at(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec", false, causes);
}

}  // namespace muster::kube
