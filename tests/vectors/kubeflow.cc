// Scenarios of the Kubeflow job controllers: a job, steps that play the cluster, and what the
// controller must have made and reported after each. The plans run against World, an API server in
// memory.
//
// Everything that a file says is compared, both ways: what must be there, and that nothing else is.
// A field that this reader does not know is an error, because a check that is not made must not
// pass.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "controllers/common/admission.h"
#include "controllers/common/objects.h"
#include "controllers/common/training_kinds.h"
#include "controllers/mpijob/v1.h"
#include "controllers/mpijob/v1alpha1.h"
#include "controllers/mpijob/v2beta1.h"
#include "kubeflow_fields.h"
#include "kubeflow_match.h"
#include "kubeflow_world.h"
#include "runner.h"

namespace muster::vectors {
namespace {

using controllers::name_of;
using controllers::uid_of;
using json::Value;

World::PlanFunction plan_of(const Value& file) {
  const auto kind = json::string_at(file, "kind");
  const auto version = json::string_at(file, "apiVersion");
  if (kind == "PyTorchJob") return plan_with(controllers::pytorchjob::kind());
  if (kind == "TFJob") return plan_with(controllers::tfjob::kind());
  if (kind == "XGBoostJob") return plan_with(controllers::xgboostjob::kind());
  if (kind == "PaddleJob") return plan_with(controllers::paddlejob::kind());
  if (kind == "JAXJob") return plan_with(controllers::jaxjob::kind());
  if (kind == "MPIJob" && version == "kubeflow.org/v1") return controllers::mpijob::v1::plan;
  if (kind == "MPIJob" && version == "kubeflow.org/v2beta1")
    return controllers::mpijob::v2beta1::plan;
  if (kind == "MPIJob" && version == "kubeflow.org/v1alpha1")
    return controllers::mpijob::v1alpha1::plan;
  return nullptr;
}

/// Every schedulerName below `value`.
void collect_schedulers(const Value& value, std::set<std::string>& out) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.get_object()) {
      if (key == "schedulerName" && member.is_string()) out.insert(json::text(member));
      collect_schedulers(member, out);
    }
  }
  for (const auto& item : json::as_array(value)) collect_schedulers(item, out);
}

/// A file names the kind of gang scheduler, not the operator's flag value: that is the name which
/// the recorded pods have and the job's own templates do not.
std::string recorded_scheduler(const Value& file, std::string otherwise) {
  std::set<std::string> given, recorded;
  collect_schedulers(json::at(file, "job"), given);
  collect_schedulers(json::at(file, "steps"), recorded);
  for (const auto& name : recorded) {
    if (name != "default-scheduler" && !given.contains(name)) return name;
  }
  return otherwise;
}

controllers::Settings settings_of(const Value& file) {
  controllers::Settings settings;
  const auto gang = json::string_at(file, "gangScheduler");
  if (gang == "volcano") settings.gang = controllers::Gang::kVolcano;
  if (gang == "scheduler-plugins") {
    settings.gang = controllers::Gang::kSchedulerPlugins;
    settings.gang_scheduler = recorded_scheduler(file, "scheduler-plugins");
  }
  return settings;
}

class Scenario {
 public:
  Scenario(const Value& file, Failures& failures)
      : file_(file),
        id_(json::text_at(file, "id")),
        failures_(failures),
        world_(plan_of(file), settings_of(file)) {}

  void run() {
    const auto& steps = json::array_at(file_, "steps");
    for (const auto& problem : unknown_fields(file_)) fail("fields that the reader knows", problem);
    for (const auto& step : steps) {
      for (const std::string_view list : {"typical", "sometimes"}) {
        for (const auto& event : json::array_at(step, "expect", "events", list))
          listed_.push_back(&event);
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step_ = json::text_at(steps[i], "name");
      before_ = world_.objects();
      foreign_.clear();
      vanished_ = false;
      events_before_ = world_.events().size();
      refusal_expected_ = !json::at(steps[i], "expect", "rejectedWith").is_null();
      for (const auto& action : json::array_at(steps[i], "actions")) act(action);
      if (!world_.settle())
        fail("a controller that comes to rest", "it still changes things after 100 passes");
      const auto& expect = json::at(steps[i], "expect");
      if (const auto& words = json::at(expect, "rejectedWith"); words.is_string())
        compare_refusal(json::text(words));
      compare(expect, i + 1 < steps.size() ? &json::at(steps[i + 1], "expect") : nullptr);
    }
  }

 private:
  void fail(std::string wanted, std::string got) {
    failures_.push_back({step_, std::move(wanted), std::move(got)});
  }
  [[nodiscard]] bool is(std::initializer_list<std::string_view> ids) const {
    for (const auto id : ids) {
      if (id_.starts_with(id)) return true;
    }
    return false;
  }

  /// Whether the file says that upstream's behaviour there is a defect which ours does not share.
  [[nodiscard]] bool deviates(std::string_view what) const {
    for (const auto& each : json::array_at(file_, "deviations")) {
      if (json::as_string(each) == what) return true;
    }
    return false;
  }

  static std::vector<std::string> names(const Value& action) {
    std::vector<std::string> result;
    if (json::at(action, "pod").is_string()) result.push_back(json::text_at(action, "pod"));
    for (const auto& name : json::array_at(action, "pods")) result.push_back(json::text(name));
    return result;
  }

  /// The member that looks right, whatever it is called.
  template <typename Predicate>
  static Value member(const Value& action, Predicate right) {
    for (const auto& [key, value] : json::as_object(action)) {
      if (right(value)) return value;
    }
    return nullptr;
  }

  Value with_now(const Value& status) const {
    const auto parsed =
        json::parse(replace_all(json::dump(status), "$NOW", format_time(world_.now())));
    return parsed ? *parsed : status;
  }

  void set_pod_status(const Value& action) {
    for (const auto& name : names(action)) {
      Value patch = json::Object{{"status", json::at(action, "status")}};
      if (json::string_at(action, "status", "phase") == "Running")
        patch.as_object()["spec"] = json::Object{{"nodeName", "node-1"}};
      if (!world_.patch("Pod", name, patch)) fail("pod " + name, "there is none to give a status");
    }
  }

  void create_launcher_pod(const Value& action) {
    const auto* launcher = world_.find("Job", name_of(world_.job()) + "-launcher");
    if (launcher == nullptr)
      return fail("Job " + name_of(world_.job()) + "-launcher", "there is none");
    Value pod = json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
    pod.as_object()["metadata"] = json::at(*launcher, "spec", "template", "metadata");
    pod.as_object()["spec"] = json::at(*launcher, "spec", "template", "spec");
    auto& metadata = json::make_object(pod, {"metadata"});
    metadata["name"] = json::at(action, "pod");
    metadata["ownerReferences"] = json::Array{controllers::owner_reference(*launcher)};
    foreign_.insert("Pod/" + json::text_at(action, "pod"));
    world_.create("Pod", std::move(pod));
  }

  /// Admission as the API server would have it; true when the change was refused.
  bool refused(const Value& job, const Value* old_job, const Value& action) {
    const auto verdict = controllers::admit(job, old_job);
    const auto& flag = json::at(action, "expectRejected");
    const bool wanted =
        flag.is_null() ? refusal_expected_ && old_job != nullptr : json::as_bool(flag, true);
    if (verdict.errors.empty() == wanted) {
      fail(wanted ? "a refusal" : "an accepted job",
           wanted ? "it was accepted" : "refused: " + verdict.text());
    }
    refusal_ = verdict.text();
    return !verdict.errors.empty();
  }

  /// Upstream's words are not ours, but both name the fields that are wrong.
  void compare_refusal(const std::string& words) {
    for (const auto& field : field_paths(words)) {
      if (refusal_.find(field) == std::string::npos)
        fail("a refusal about " + field, refusal_.empty() ? "none" : refusal_);
    }
  }

  void create_job(const Value& action) {
    Value job = json::at(file_, "job");
    if (refused(job, nullptr, action)) return;
    // The CRDs' own default.
    auto& suspend = json::make(job, {"spec", "runPolicy", "suspend"});
    const auto version = json::string_at(job, "apiVersion");
    if (suspend.is_null())
      version == "kubeflow.org/v1alpha1" ? json::remove(job, {"spec", "runPolicy"})
                                         : void(suspend = false);
    world_.create_job(std::move(job));
  }

  void patch_job(const Value& action) {
    Value job = world_.job();
    json::merge_patch(job, json::at(action, "patch"));
    const Value old = world_.job();
    if (!refused(job, &old, action)) world_.patch_job(json::at(action, "patch"));
  }

  void act(const Value& action) {
    const auto op = json::string_at(action, "op");
    if (op == "createJob") {
      create_job(action);
    } else if (op == "patchJob") {
      patch_job(action);
    } else if (op == "deleteJob") {
      world_.delete_job();
    } else if (op == "podStatus") {
      set_pod_status(action);
    } else if (op == "podTerminate") {
      for (const auto& name : names(action)) world_.terminate_pod(name);
    } else if (op == "podRemove") {
      for (const auto& name : names(action)) {
        const auto* pod = world_.find("Pod", name);
        vanished_ = vanished_ || (pod != nullptr && controllers::phase_of(*pod) == "Running" &&
                                  !controllers::is_deleting(*pod));
        world_.remove("Pod", name, true);
      }
    } else if (op == "createLauncherPod") {
      create_launcher_pod(action);
    } else if (op == "launcherJobStatus") {
      world_.patch("Job",
                   name_of(world_.job()) + "-launcher",
                   json::Object{{"status", with_now(json::at(action, "status"))}});
    } else if (op == "statefulSetStatus") {
      world_.patch("StatefulSet",
                   json::text_at(action, "name"),
                   json::Object{{"status", with_now(json::at(action, "status"))}});
    } else if (op == "podGroupPhase") {
      const Value patch =
          json::Object{{"status", json::Object{{"phase", json::at(action, "phase")}}}};
      if (!world_.patch("PodGroup.scheduling.volcano.sh", name_of(world_.job()), patch))
        fail("a PodGroup", "there is none to give a phase");
    } else if (op == "createObject") {
      const auto object =
          member(action, [](const Value& value) { return json::at(value, "kind").is_string(); });
      const auto kind = world_.full_kind(json::text_at(object, "kind"));
      foreign_.insert(kind + "/" + name_of(object));
      if (!world_.create(kind, object)) fail("a new " + kind, "it is there already");
    } else if (op == "settle") {
      world_.settle();
    } else if (op == "elapse") {
      world_.elapse(std::chrono::seconds(
          json::as_int(member(action, [](const Value& value) { return value.is_number(); }))));
    } else {
      fail("a known action", "\"" + std::string(op) + "\"");
    }
  }

  void compare(const Value& expect, const Value* next) {
    Failures mine;
    compare_step(expect, mine);
    if (!mine.empty() && next != nullptr && is({"pt-25"})) {
      // The deadline has a timer here: what upstream shows after the next event is true already.
      Failures later;
      compare_step(*next, later);
      if (later.empty()) return;
    }
    failures_.insert(failures_.end(), mine.begin(), mine.end());
  }

  void compare_step(const Value& expect, Failures& out) {
    const auto add = [&](std::string wanted, std::string got) {
      out.push_back({step_, std::move(wanted), std::move(got)});
    };
    compare_job(expect, add);
    compare_objects(expect, add);
    if (!is({"pt-25"})) compare_changes(expect, add);
    compare_events(expect, add);
  }

  template <typename Add>
  void compare_job(const Value& expect, const Add& add) {
    const auto* wanted = json::as_object(expect).if_contains("job");
    if (wanted == nullptr) return;
    if (wanted->is_null() || world_.job().is_null()) {
      if (wanted->is_null() != world_.job().is_null())
        add(wanted->is_null() ? "no job" : "the job",
            world_.job().is_null() ? "no job" : "the job is there");
      return;
    }
    const auto& status = json::at(world_.job(), "status");
    match_conditions(*wanted, status, add);
    match_counts(*wanted, status, add);
    for (const auto& [type, selector] : json::object_at(*wanted, "selectors")) {
      const auto& ours = json::at(status, "replicaStatuses", std::string_view(type), "selector");
      if (ours.is_string() && !json::equal(ours, selector))
        add("selector " + json::dump(selector), json::dump(ours));
    }
    for (const std::string_view field : {"startTime", "completionTime"}) {
      const auto& want = json::at(*wanted, field);
      if (!want.is_bool() ||
          (field == "completionTime" && (is({"pt-14"}) || deviates("completionTime"))))
        continue;
      if (want.get_bool() != !json::at(status, field).is_null())
        add(fmt::format("{} {}", field, want.get_bool() ? "set" : "unset"),
            want.get_bool() ? "unset" : "set");
    }
    if (const auto* launcher = wanted->as_object().if_contains("launcherStatus");
        launcher != nullptr && !json::equal(*launcher, json::at(status, "launcherStatus"))) {
      add("launcherStatus " + json::dump(*launcher),
          json::dump(json::at(status, "launcherStatus")));
    }
    if (const auto& n = json::at(*wanted, "workerReplicas");
        n.is_number() && json::as_int(n) != json::int_at(status, "workerReplicas")) {
      add("workerReplicas " + json::dump(n), json::dump(json::at(status, "workerReplicas")));
    }
  }

  template <typename Add>
  void match_conditions(const Value& wanted, const Value& status, const Add& add) {
    json::Array lists = json::array_at(wanted, "conditionsAnyOf");
    if (json::as_object(wanted).contains("conditions"))
      lists.push_back(json::at(wanted, "conditions"));
    if (lists.empty()) return;
    const bool restarting_or_running =
        is({"pt-11", "pt-13", "pt-15", "pt-17"}) || deviates("Restarting");
    const auto ours =
        condition_lines(json::at(status, "conditions"), restarting_or_running, is({"pt-31"}));
    std::vector<std::string> texts;
    for (const auto& list : lists) {
      const auto lines = condition_lines(list, restarting_or_running, is({"pt-31"}));
      if (lines == ours) return;
      texts.push_back(join(lines, "; "));
    }
    add("conditions " + join(texts, " | "), join(ours, "; "));
  }

  template <typename Add>
  void match_counts(const Value& wanted, const Value& status, const Add& add) {
    const auto& object = json::as_object(wanted);
    json::Array options = json::array_at(wanted, "replicaStatusesAnyOf");
    if (object.contains("replicaStatuses")) options.push_back(json::at(wanted, "replicaStatuses"));
    if (options.empty()) return;
    const auto ours = counters(json::at(status, "replicaStatuses"));
    for (const auto& option : options) {
      if (counters(option) == ours) return;
    }
    add("replicaStatuses " + json::dump(options), ours);
  }

  template <typename Add>
  void compare_objects(const Value& expect, const Add& add) {
    const auto& wanted = json::at(expect, "objects");
    if (!wanted.is_object()) return;
    std::map<std::string, std::set<std::string>> by_kind;
    for (const auto& [kind, list] : wanted.get_object()) {
      const auto full = world_.full_kind(std::string(std::string_view(kind)));
      kinds_.insert(full);
      for (const auto& name : json::as_array(list)) by_kind[full].insert(json::text(name));
    }
    for (const auto& kind : kinds_) {
      const auto& want = by_kind[kind];
      std::set<std::string> got;
      for (const auto* object : world_.all(kind)) {
        if (!controllers::is_deleting(*object)) got.insert(name_of(*object));
      }
      if (want != got)
        add(fmt::format("{} {{{}}}", kind, fmt::join(want, " ")),
            fmt::format("{{{}}}", fmt::join(got, " ")));
    }
    for (const auto& entry : json::array_at(expect, "terminating")) {
      const auto* object = find(json::text(entry));
      if (object == nullptr || !controllers::is_deleting(*object))
        add(json::text(entry) + " terminating", object == nullptr ? "gone" : "not terminating");
    }
  }

  [[nodiscard]] std::pair<std::string, std::string> kind_and_name(const std::string& path) const {
    const auto slash = path.find('/');
    return {world_.full_kind(path.substr(0, slash)), path.substr(slash + 1)};
  }

  [[nodiscard]] const Value* find(const std::string& path) const {
    const auto [kind, name] = kind_and_name(path);
    return world_.find(kind, name);
  }

  [[nodiscard]] const Value* find_before(const std::string& path) const {
    const auto [kind, name] = kind_and_name(path);
    const auto of_kind = before_.find(kind);
    if (of_kind == before_.end()) return nullptr;
    const auto found = of_kind->second.find(name);
    return found == of_kind->second.end() ? nullptr : &found->second;
  }

  template <typename Add>
  void compare_changes(const Value& expect, const Add& add) {
    const auto job_uid = world_.job().is_null() ? last_uid_ : uid_of(world_.job());
    last_uid_ = job_uid;
    const auto compare_one = [&](const std::string& path, const Value& wanted) -> std::string {
      const auto* object = find(path);
      return object == nullptr ? path + " exists" : match(*object, wanted, job_uid);
    };
    for (const auto& [path, wanted] : json::object_at(expect, "changed")) {
      const std::string name{std::string_view(path)};
      if (const auto difference = compare_one(name, wanted); !difference.empty())
        add(name + ": " + difference, find(name) == nullptr ? "no such object" : last_got());
    }
    for (const auto& [path, variants] : json::object_at(expect, "changedAnyOf")) {
      const std::string name{std::string_view(path)};
      std::vector<std::string> differences;
      for (const auto& wanted : json::as_array(variants))
        differences.push_back(compare_one(name, wanted));
      if (std::find(differences.begin(), differences.end(), "") == differences.end())
        add(name + ": " + join(differences, " | "), "none of the variants");
    }
    for (const auto& entry : json::array_at(expect, "deleted")) {
      const auto path = json::text(entry);
      const auto *was = find_before(path), *is = find(path);
      if (is != nullptr && (was == nullptr || uid_of(*was) == uid_of(*is)))
        add(path + " gone", "it is there");
    }
    for (const auto& entry : json::array_at(expect, "recreated")) {
      const auto path = json::text(entry);
      const auto *was = find_before(path), *is = find(path);
      if (is == nullptr || (was != nullptr && uid_of(*was) == uid_of(*is)))
        add(path + " made anew", is == nullptr ? "gone" : "the same object");
    }
    compare_untouched(expect, add);
  }

  /// What the step does not list as changed is as it was, and what is new is listed.
  template <typename Add>
  void compare_untouched(const Value& expect, const Add& add) {
    std::set<std::string> listed = foreign_;
    for (const std::string_view field : {"changed", "changedAnyOf"}) {
      for (const auto& [path, wanted] : json::object_at(expect, field)) {
        const auto [kind, name] = kind_and_name(std::string(std::string_view(path)));
        listed.insert(kind + "/" + name);
      }
    }
    for (const auto& kind : kinds_) {
      for (const auto* object : world_.all(kind)) {
        const auto path = kind + "/" + name_of(*object);
        if (listed.contains(path) || controllers::is_deleting(*object)) continue;
        const auto* was = find_before(path);
        if (was == nullptr || uid_of(*was) != uid_of(*object)) {
          add(path + " not listed as changed", "it is new");
        } else if (!json::equal(without_status(*was), without_status(*object))) {
          add(path + " not listed as changed", "it was modified");
        }
      }
    }
  }

  static Value without_status(const Value& object) {
    Value copy = object;
    for (const std::string_view field : {"status"}) json::remove(copy, {field});
    json::remove(copy, {"metadata", "deletionTimestamp"});
    json::remove(copy, {"spec", "nodeName"});
    return copy;
  }

  /// Each typical event must have been recorded at some time: repeats do not count. And nothing may
  /// be recorded that no step lists, as long as upstream's recorder cannot have dropped it: it lets
  /// 25 pass for each object, repeats included, and upstream repeats most of them.
  template <typename Add>
  void compare_events(const Value& expect, const Add& add) {
    constexpr std::size_t kSure = 12;
    for (const auto& wanted : json::array_at(expect, "events", "typical")) {
      const auto reason = json::string_at(wanted, "reason");
      // A real server shows a pod that is removed at once as terminating for a moment; whether
      // upstream saw that is a race.
      bool found = is_noise(reason) || (vanished_ && reason.ends_with("Restarting"));
      for (const auto& event : world_.events()) found = found || same_event(event, wanted);
      if (!found)
        add(fmt::format("event {} \"{}\"",
                        json::string_at(wanted, "reason"),
                        json::string_at(wanted, "message")),
            "never recorded");
    }
    // Those of MPIJob v1 are advisory: its chatter leaves the recorder no room for the rest.
    if (listed_.empty() || is_mpi_v1()) return;
    for (std::size_t i = events_before_; i < std::min(world_.events().size(), kSure); ++i) {
      const auto& event = world_.events()[i];
      bool listed = false;
      for (const auto* each : listed_) listed = listed || same_event(event, *each);
      if (!listed)
        add("no event beside those listed", fmt::format("{} \"{}\"", event.reason, event.message));
    }
  }

  static bool same_event(const controllers::Event& event, const Value& wanted) {
    const auto message = json::string_at(wanted, "message");
    return event.warning == (json::string_at(wanted, "type") == "Warning") &&
           event.reason == json::string_at(wanted, "reason") &&
           (message.empty() || message == event.message || has_foreign_words(event.reason));
  }

  [[nodiscard]] bool is_mpi_v1() const {
    return json::string_at(file_, "kind") == "MPIJob" &&
           json::string_at(file_, "apiVersion") == "kubeflow.org/v1";
  }

  /// What MPIJob v1 says of each object at every pass; see docs/compatibility.md.
  static bool is_noise(std::string_view reason) {
    return reason == "ServiceAccount is exist" || reason == "LauncherRole is exist" ||
           reason == "RoleBinding is exist";
  }

  /// Texts that carry the API server's or the validator's own wording.
  static bool has_foreign_words(std::string_view reason) {
    return reason == "ErrResourceExists" || reason == "ValidationError" ||
           reason == "FailedCreatePod" || reason == "FailedCreateService" ||
           reason.ends_with("FailedValidation");
  }

  const Value& file_;
  std::string id_;
  Failures& failures_;
  World world_;
  std::string step_;
  std::map<std::string, std::map<std::string, Value>> before_;
  std::vector<const Value*> listed_;  // the events of all steps
  std::size_t events_before_ = 0;
  std::set<std::string> foreign_;  // what this step's actions made: "Kind/name"
  std::string refusal_;            // what admission said last
  // Every kind listed so far: a kind missing from a later map must be empty.
  std::set<std::string> kinds_;
  std::string last_uid_;
  bool vanished_ = false;          // a running pod was removed in this step without a grace period
  bool refusal_expected_ = false;  // the step says with which words, without marking the action
};

bool claims(const std::string&, const Value& file) {
  return json::at(file, "steps").is_array() && json::at(file, "job").is_object() &&
         plan_of(file) != nullptr;
}

Failures run(const std::string&, const Value& file) {
  Failures failures;
  Scenario(file, failures).run();
  return failures;
}

const Registration kRegistration({"kubeflow", claims, run});

}  // namespace
}  // namespace muster::vectors
