// Job.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"
#include "kube/selector/selector.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_job_spec(Object& spec) {
  // Only when both are absent is one completion meant; parallelism alone is a work queue.
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  put(spec, "parallelism", 1);
  const Value* per_index = spec.if_contains("backoffLimitPerIndex");
  put(spec, "backoffLimit", per_index != nullptr && !per_index->is_null() ? 2147483647 : 6);
  put_text(spec, "completionMode", "NonIndexed");
  put(spec, "suspend", false);
  put(spec, "manualSelector", false);
  const Value* failure = spec.if_contains("podFailurePolicy");
  put_text(spec,
           "podReplacementPolicy",
           failure != nullptr && failure->is_object() ? "Failed" : "TerminatingOrFailed");
  default_template(spec);
}

void default_job(Object& object) { default_job_spec(object_at(object, "spec")); }

/// A Job finds its pods by its own uid unless the owner chose a selector by hand.
void prepare_create(Value& job) {
  const std::string uid(uid_of(job));
  if (uid.empty() || json::bool_at(job, "spec", "manualSelector")) return;
  Object& labels = json::make_object(job, {"spec", "template", "metadata", "labels"});
  labels[names::kubernetes::kControllerUid] = uid;
  labels[names::kubernetes::kJobName] = name_of(job);
  labels[names::kubernetes::kOldControllerUid] = uid;
  labels[names::kubernetes::kOldJobName] = name_of(job);
  json::make_object(job, {"spec", "selector", "matchLabels"})[names::kubernetes::kControllerUid] =
      uid;
  // A job without labels of its own bears those of its pods.
  if (json::object_at(job, "metadata", "labels").empty()) {
    json::make(job, {"metadata", "labels"}) =
        json::at(job, "spec", "template", "metadata", "labels");
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

/// Whoever made the selector, it must find the pods that the template makes.
void selector_matches_template(const Value& spec, Causes& causes) {
  const Value& selector = json::at(spec, "selector");
  const Value& labels = json::at(spec, "template", "metadata", "labels");
  const auto parsed = LabelSelector::from_object(selector);
  if (!selector.is_null() && parsed && parsed->matches(json::as_object(labels))) return;
  causes.invalid("spec.template.metadata.labels",
                 json::dump(labels),
                 "`selector` does not match template `labels`");
}

void validate_job(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_job_spec(spec, "spec", live != nullptr, causes);
  validate_job_scheduling(spec, live, causes);
  if (live == nullptr) {
    if (uid_of(object).empty()) return;  // not yet prepared: the selector comes with the uid
    const Value& selector = json::at(spec, "selector");
    const bool manual = json::bool_at(spec, "manualSelector");
    if (!manual && json::object_at(selector, "matchLabels").size() +
                           json::array_at(selector, "matchExpressions").size() !=
                       1) {
      causes.invalid("spec.selector", json::dump(selector), "`selector` not auto-generated");
    }
    if (manual && selector.is_null()) causes.required("spec.selector");
    selector_matches_template(spec, causes);
    return;
  }
  selector_matches_template(spec, causes);
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
  if (now.is_null()) now = json::Object();
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

void validate(const Value& object, const Value* live, Causes& causes) {
  validate_job(object, live, causes);
  if (live != nullptr) validate_job_status(object, causes);
}

Array job_cells(const Value& job, Time now) {
  const Value& spec = json::at(job, "spec");
  const Value& status = json::at(job, "status");
  std::string completions;
  const std::int64_t succeeded = json::int_at(status, "succeeded");
  const Value& wanted = json::at(spec, "completions");
  const std::int64_t parallelism = json::int_at(spec, "parallelism");
  if (!wanted.is_null())
    completions = fmt::format("{}/{}", succeeded, json::as_int(wanted));
  else if (parallelism > 1)
    completions = fmt::format("{}/1 of {}", succeeded, parallelism);
  else
    completions = fmt::format("{}/1", succeeded);
  std::string state = "Running";
  if (condition_true(job, "Complete"))
    state = "Complete";
  else if (condition_true(job, "Failed"))
    state = "Failed";
  else if (is_deleting(job))
    state = "Terminating";
  else if (condition_true(job, "Suspended"))
    state = "Suspended";
  else if (condition_true(job, "FailureTarget"))
    state = "FailureTarget";
  else if (condition_true(job, "SuccessCriteriaMet"))
    state = "SuccessCriteriaMet";
  std::string duration;
  const auto started = parse_time(json::string_at(status, "startTime"));
  if (started) {
    const auto done = parse_time(json::string_at(status, "completionTime"));
    duration = human_duration((done ? *done : now) - *started);
  }
  const auto [names, images] = containers_of(json::at(spec, "template", "spec"));
  return {name_of(job),
          state,
          completions,
          duration,
          age_of(creation_time(job), now),
          names,
          images,
          selector_text(json::at(spec, "selector"))};
}

}  // namespace

std::vector<KindRules> families::job() {
  using namespace columns;
  return {{.group = "batch",
           .kind = "Job",
           .defaults = default_job,
           .prepare_create = prepare_create,
           .validate = validate,
           .columns = {name_column(),
                       text("Status"),
                       text("Completions"),
                       text("Duration"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = job_cells,
           .fields = {"metadata.name", "metadata.namespace", "status.successful"},
           .generation = true}};
}

void validate_job_spec(const json::Value& spec,
                       const std::string& field,
                       bool selector,
                       Causes& causes) {
  for (const std::string_view key : {"parallelism",
                                     "completions",
                                     "activeDeadlineSeconds",
                                     "backoffLimit",
                                     "backoffLimitPerIndex",
                                     "maxFailedIndexes",
                                     "ttlSecondsAfterFinished"}) {
    const json::Value& value = json::at(spec, key);
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
  std::vector<std::string_view> replacement{"Failed"};
  if (json::at(spec, "podFailurePolicy").is_null()) replacement.push_back("TerminatingOrFailed");
  validate_enum(json::at(spec, "podReplacementPolicy"),
                field + ".podReplacementPolicy",
                replacement,
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
  const json::Value& restart = json::at(spec, "template", "spec", "restartPolicy");
  if (json::as_string(restart) == "Always" || json::as_string(restart).empty()) {
    causes.add({"FieldValueRequired",
                "Required value: valid values: \"OnFailure\", \"Never\"",
                field + ".template.spec.restartPolicy"});
  }
}

}  // namespace muster::kube
