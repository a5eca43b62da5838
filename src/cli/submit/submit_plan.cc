#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/submit/submit_template.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

constexpr const char* kMpiChart = "mpijob-0.28.0";
constexpr const char* kPytorchChart = "pytorchjob-0.5.2";
constexpr const char* kTfChart = "tfjob-0.32.0";
constexpr const char* kVolcanoChart = "volcanojob-0.1.0";

json::Object job_object(const SubmitValues& values,
                        const TemplateOptions& options,
                        const Trainer& trainer,
                        const std::string& ns,
                        json::Object spec) {
  return {{"apiVersion", trainer.resource.api_version()},
          {"kind", trainer.resource.kind},
          {"metadata",
           json::Object{{"name", values.name},
                        {"namespace", ns},
                        {"labels", labels_of(values, options)},
                        {"annotations", annotations_of(values, options)}}},
          {"spec", std::move(spec)}};
}

TemplateOptions template_options(const SubmitContext& context, const SubmitValues& values) {
  TemplateOptions options;
  options.type = context.type;
  options.user = context.user;
  options.image = values.image;
  options.gpus = values.gpus;
  options.cpu = options.cpu_limit = values.cpu;
  options.memory = options.memory_limit = values.memory;
  options.selectors = values.selectors;
  options.owner_gpus = static_cast<std::int64_t>(values.workers) * values.gpus;
  options.gang_members = values.workers;
  return options;
}

json::Object plan_mpi(const SubmitContext& context,
                      SubmitValues& values,
                      TemplateOptions& options,
                      const Trainer& trainer) {
  options.container = "mpi";
  options.created_by = "MPIJob";
  options.chart = kMpiChart;
  options.restart_policy = "Never";
  values.share_memory = "2Gi";
  if (values.gpu_topology)
    options.extra_labels = {{"gpu-topology", values.name},
                            {"gpu-topology-replica", std::to_string(values.workers)}};
  json::Object spec{{"replicas", values.workers},
                    {"backoffLimit", values.retry},
                    {"cleanPodPolicy", values.clean_policy},
                    {"launcherResources", json::Object{}},
                    {"mountsOnLauncher", values.mounts_on_launcher},
                    {"template", pod_template(values, options)}};
  return job_object(values, options, trainer, context.ns, std::move(spec));
}

/// The run policy of the kinds that share one.
json::Object run_policy(const SubmitValues& values, std::int64_t members) {
  json::Object policy;
  if (!values.clean_policy.empty()) policy["cleanPodPolicy"] = values.clean_policy;
  if (values.running_timeout_s) policy["activeDeadlineSeconds"] = *values.running_timeout_s;
  if (values.ttl_s) policy["ttlSecondsAfterFinished"] = *values.ttl_s;
  // A limit of 0 would make the controller delete every pod of a job that lost one, logs and all.
  if (values.retry > 0) policy["backoffLimit"] = values.retry;
  // Without --gang each instance stands for itself: it starts when it fits, and losing one evicts
  // no other.
  json::Object scheduling{{"minAvailable", values.gang ? members : 1}};
  if (!values.queue.empty()) scheduling["queue"] = values.queue;
  if (!values.priority.empty()) scheduling["priorityClass"] = values.priority;
  policy["schedulingPolicy"] = std::move(scheduling);
  return policy;
}

json::Object plan_pytorch(const SubmitContext& context,
                          SubmitValues& values,
                          TemplateOptions& options,
                          const Trainer& trainer) {
  options.container = "pytorch";
  options.created_by = "PyTorchJob";
  options.chart = kPytorchChart;
  if (!values.nproc_per_node.empty())
    options.extra_env.emplace_back("PET_NPROC_PER_NODE", values.nproc_per_node);
  if (values.rdma) options.extra_env.emplace_back("MASTER_ADDR", values.name + "-master-0");
  // A collective cannot go on without a member: unless retries were asked for, its loss fails the
  // job at once.
  const std::string restart = values.retry > 0 ? "OnFailure" : "Never";
  TemplateOptions master = options;
  master.extra_labels = {{"master-pod-name", values.name + "-master-0"}};
  json::Object replicas{{"Master",
                         json::Object{{"replicas", 1},
                                      {"restartPolicy", restart},
                                      {"template", pod_template(values, master)}}}};
  if (values.workers > 1) {
    replicas["Worker"] = json::Object{{"replicas", values.workers - 1},
                                      {"restartPolicy", restart},
                                      {"template", pod_template(values, options)}};
  }
  json::Object spec{{"runPolicy", run_policy(values, values.workers)},
                    {"pytorchReplicaSpecs", std::move(replicas)}};
  return job_object(values, options, trainer, context.ns, std::move(spec));
}

struct TfRole {
  const char* type;  // Worker
  const char* flag;  // worker
  int replicas;
  int gpus;
};

/// "w,p,c,e" or "Worker,PS,Chief,Evaluator" to the annotation's form.
Result<std::string> role_sequence(const Values& flags) {
  std::vector<std::string> roles;
  for (const std::string& entry : flags.list("role-sequence")) {
    for (const std::string& word : split_nonempty(entry, ',')) {
      const std::string lower = to_lower(trim(word));
      const std::string role = lower == "w" || lower == "worker"      ? "Worker"
                               : lower == "p" || lower == "ps"        ? "PS"
                               : lower == "c" || lower == "chief"     ? "Chief"
                               : lower == "e" || lower == "evaluator" ? "Evaluator"
                                                                      : "";
      if (role.empty())
        return fail(
            Code::kInvalid,
            fmt::format("--role-sequence: \"{}\" is none of Worker, PS, Chief, Evaluator", word));
      roles.push_back(role);
    }
  }
  return join(roles, ",");
}

/// Away from (spread) or near to (binpack) the other members of the role; null for neither.
Result<json::Value> affinity_of(const Values& flags,
                                const SubmitValues& values,
                                const TfRole& role) {
  const std::string flag(role.flag);
  if (flag != "worker" && flag != "ps") return json::Value();
  const std::string policy = flags.text(flag + "-affinity-policy"),
                    constraint = flags.text(flag + "-affinity-constraint");
  if (policy != "none" && policy != "spread" && policy != "binpack") {
    return fail(
        Code::kInvalid,
        fmt::format("--{}-affinity-policy {}: wanted none, spread or binpack", flag, policy));
  }
  if (constraint != "preferred" && constraint != "required") {
    return fail(
        Code::kInvalid,
        fmt::format("--{}-affinity-constraint {}: wanted preferred or required", flag, constraint));
  }
  if (policy == "none") return json::Value();
  json::Object term{{"labelSelector",
                     json::Object{{"matchLabels",
                                   json::Object{{"release", values.name},
                                                {kube::names::kubeflow::kReplicaType, flag}}}}},
                    {"topologyKey", kube::names::kubernetes::kHostname}};
  json::Object rule;
  if (constraint == "required") {
    rule["requiredDuringSchedulingIgnoredDuringExecution"] = json::Array{std::move(term)};
  } else {
    rule["preferredDuringSchedulingIgnoredDuringExecution"] =
        json::Array{json::Object{{"weight", 100}, {"podAffinityTerm", std::move(term)}}};
  }
  return json::Object{{policy == "spread" ? "podAntiAffinity" : "podAffinity", std::move(rule)}};
}

Result<json::Object> plan_tf(const SubmitContext& context,
                             const Values& flags,
                             SubmitValues& values,
                             TemplateOptions& options,
                             const Trainer& trainer) {
  options.container = "tensorflow";
  options.created_by = "TFJob";
  options.chart = kTfChart;
  const int ps = flags.number("ps");
  bool chief = flags.yes("chief");
  int workers = values.workers;
  // One process needs no cluster.
  if (workers == 1 && ps == 0 && !chief) {
    chief = true;
    workers = 0;
  }
  const std::vector<TfRole> roles{
      {"Chief", "chief", chief ? 1 : 0, values.gpus},
      {"Worker", "worker", workers, values.gpus},
      {"PS", "ps", ps, flags.number("ps-gpus")},
      {"Evaluator", "evaluator", flags.yes("evaluator") ? 1 : 0, values.gpus}};
  options.owner_gpus = 0;
  options.gang_members = 0;
  for (const TfRole& role : roles) {
    options.gang_members += role.replicas;
    if (std::string_view(role.type) != "PS")
      options.owner_gpus += static_cast<std::int64_t>(role.replicas) * role.gpus;
  }
  const auto sequence = role_sequence(flags);
  if (!sequence) return fail(sequence.error());
  if (!sequence->empty()) values.annotations.emplace_back("job-role-sequence", *sequence);
  json::Object replicas;
  for (const TfRole& role : roles) {
    if (role.replicas == 0) continue;
    TemplateOptions own = options;
    const std::string flag(role.flag);
    for (const char* part : {"-cpu", "-memory", "-cpu-limit", "-memory-limit"}) {
      if (const auto checked = check_quantity(flags, flag + part); !checked)
        return fail(checked.error());
    }
    own.cpu = flags.text(flag + "-cpu");
    own.memory = flags.text(flag + "-memory");
    own.cpu_limit = flags.text(flag + "-cpu-limit");
    own.memory_limit = flags.text(flag + "-memory-limit");
    own.gpus = role.gpus;
    if (const std::string image = flags.text(flag + "-image"); !image.empty()) own.image = image;
    const auto selectors = read_pairs(flags, flag + "-selector");
    if (!selectors) return fail(selectors.error());
    if (!selectors->empty()) own.selectors = *selectors;
    auto affinity = affinity_of(flags, values, role);
    if (!affinity) return fail(affinity.error());
    json::Value pod = pod_template(values, own);
    if (!affinity->is_null()) json::make(pod, {"spec", "affinity"}) = std::move(*affinity);
    if (const int port = flag == "evaluator" ? 0 : flags.number(flag + "-port"); port > 0) {
      json::Value& container = json::make(pod, {"spec", "containers"}).as_array()[0];
      container.as_object()["ports"] =
          json::Array{json::Object{{"name", "tfjob-port"}, {"containerPort", port}}};
    }
    replicas[role.type] = json::Object{{"replicas", role.replicas},
                                       {"restartPolicy", values.retry > 0 ? "OnFailure" : "Never"},
                                       {"template", std::move(pod)}};
  }
  json::Object spec{{"runPolicy", run_policy(values, options.gang_members)},
                    {"tfReplicaSpecs", std::move(replicas)}};
  if (flags.text("success-policy") == "AllWorkers") spec["successPolicy"] = "AllWorkers";
  return job_object(values, options, trainer, context.ns, std::move(spec));
}

Result<json::Object> plan_volcano(const SubmitContext& context,
                                  const Values& flags,
                                  SubmitValues& values,
                                  TemplateOptions& options,
                                  const Trainer& trainer) {
  for (const auto& [flag, into] :
       {std::pair{"annotation", &values.annotations}, std::pair{"label", &values.labels}}) {
    const auto pairs = read_pairs(flags, flag);
    if (!pairs) return fail(pairs.error());
    *into = *pairs;
  }
  for (const char* flag : {"task-cpu", "task-memory"}) {
    if (const auto checked = check_quantity(flags, flag); !checked) return fail(checked.error());
  }
  std::vector<std::string> images;
  for (const std::string& entry : flags.list("task-images")) {
    for (const std::string& image : split_nonempty(entry, ',')) images.push_back(image);
  }
  if (images.empty()) images = {"ubuntu", "nginx", "busybox"};
  options.created_by = "VolcanoJob";
  options.chart = kVolcanoChart;
  const int gpus = flags.number("task-gpus");
  options.owner_gpus = static_cast<std::int64_t>(gpus) * flags.number("task-replicas") *
                       static_cast<std::int64_t>(images.size());
  json::Array tasks;
  for (std::size_t i = 0; i < images.size(); ++i) {
    json::Object amounts{{"cpu", flags.text("task-cpu")}, {"memory", flags.text("task-memory")}};
    json::Object limits;
    if (gpus > 0)
      amounts["nvidia.com/gpu"] = std::to_string(gpus),
      limits["nvidia.com/gpu"] = std::to_string(gpus);
    json::Object container{
        {"name", fmt::format("{}-{}", flags.text("task-name"), i)},
        {"image", images[i]},
        {"ports",
         json::Array{json::Object{{"containerPort", flags.number("task-port")}, {"name", "port"}}}},
        {"resources",
         json::Object{{"requests", std::move(amounts)}, {"limits", std::move(limits)}}}};
    if (!context.command.empty()) container["command"] = json::Array{"sh", "-c", context.command};
    json::Object pod{{"restartPolicy", "Never"}, {"containers", json::Array{std::move(container)}}};
    tasks.push_back(
        json::Object{{"name", fmt::format("{}-{}", flags.text("task-name"), i)},
                     {"replicas", flags.number("task-replicas")},
                     {"template",
                      json::Object{{"metadata",
                                    json::Object{{"labels", labels_of(values, options)},
                                                 {"annotations", annotations_of(values, options)}}},
                                   {"spec", std::move(pod)}}}});
  }
  json::Object spec{{"minAvailable", flags.number("min-available")},
                    {"schedulerName", flags.text("scheduler-name")},
                    {"queue", flags.text("queue")},
                    {"tasks", std::move(tasks)}};
  if (!values.priority.empty()) spec["priorityClassName"] = values.priority;
  return job_object(values, options, trainer, context.ns, std::move(spec));
}

/// Every parameter under its own name, for people and for `get -o yaml`-like tools; arena keeps the
/// same record.
json::Object parameters(const SubmitContext& context, const Values& flags) {
  json::Object all;
  for (const Command& command : submit_commands()) {
    if (command.name != context.type) continue;
    for (const Flag& flag : command.flags) {
      if (flag.name == "dry-run" || flag.name == "wait" || flag.name == "timeout") continue;
      switch (flag.type) {
        case FlagType::kInt:
          all[flag.name] = flags.number(flag.name);
          break;
        case FlagType::kBool:
          all[flag.name] = flags.yes(flag.name);
          break;
        case FlagType::kList: {
          json::Array entries;
          for (const std::string& entry : flags.list(flag.name)) entries.emplace_back(entry);
          all[flag.name] = std::move(entries);
          break;
        }
        default:
          all[flag.name] = flags.text(flag.name);
      }
    }
  }
  all["command"] = context.command;
  return all;
}

json::Value record_of(const SubmitContext& context,
                      const Values& flags,
                      const SubmitPlan& plan,
                      const std::string& chart) {
  std::string app;
  for (const json::Value& object : plan.before) app += shown(object) + "\n";
  for (const json::Value& object : plan.after) app += shown(object) + "\n";
  app += shown(plan.job) + "\n";
  const std::size_t dash = chart.rfind('-');
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata",
                       json::Object{{"name", fmt::format("{}-{}", plan.name, context.type)},
                                    {"namespace", context.ns},
                                    {"labels", json::Object{{"createdBy", "arena"}}}}},
                      {"data",
                       json::Object{{"values", json::to_yaml(parameters(context, flags))},
                                    {"app", app},
                                    {chart.substr(0, dash), chart.substr(dash + 1)}}}};
}

void add_notes(SubmitPlan& plan, const SubmitValues& values) {
  if (!values.model_name.empty())
    plan.notes.emplace_back(
        "--model-name labels the job; no model registry is connected, so no version is registered");
  if (values.starting_timeout_s)
    plan.notes.emplace_back(
        "--starting-timeout is not enforced here: the job waits as long as it must; `suspend` or `delete` end the wait");
}

}  // namespace

std::string shown(const json::Value& object) {
  const kube::Gvk gvk = kube::gvk_of(object);
  return fmt::format("{}{}/{}",
                     to_lower(gvk.kind),
                     gvk.group.empty() ? "" : "." + gvk.group,
                     kube::name_of(object));
}

Result<SubmitPlan> plan_submit(const SubmitContext& context, const Values& flags) {
  const Trainer* trainer = find_trainer(context.type);
  if (trainer == nullptr) {
    return fail(
        Code::kInvalid,
        fmt::format("nothing here runs a {}: submit it as mpi, pytorch or tf", context.type));
  }
  SubmitPlan plan;
  plan.trainer = trainer;
  SubmitValues values;
  if (context.type == "volcanojob") {
    values.name = flags.text("name");
    values.priority = flags.text("priority");
    if (const auto named = check_name(values.name); !named) return fail(named.error());
  } else {
    auto read = read_submit_values(context, flags);
    if (!read) return fail(read.error());
    values = std::move(*read);
  }
  plan.name = values.name;
  TemplateOptions options = template_options(context, values);
  if (context.type == "mpijob") {
    plan.job = plan_mpi(context, values, options, *trainer);
  } else if (context.type == "pytorchjob") {
    plan.job = plan_pytorch(context, values, options, *trainer);
  } else {
    auto job = context.type == "tfjob" ? plan_tf(context, flags, values, options, *trainer)
                                       : plan_volcano(context, flags, values, options, *trainer);
    if (!job) return fail(job.error());
    plan.job = std::move(*job);
  }
  plan.before = config_file_maps(values, options, context.ns);
  if (needs_gang_object(values, options))
    plan.before.push_back(gang_object(values, options, context.ns));
  plan.after = tensorboard_objects(values, options, context.ns);
  add_notes(plan, values);
  plan.record = record_of(context, flags, plan, options.chart);
  return plan;
}

}  // namespace muster::cli
