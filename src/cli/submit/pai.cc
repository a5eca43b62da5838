#include "cli/submit/pai.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/md5.h"
#include "base/strings.h"
#include "cli/submit/submit.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

using json::as_array;
using json::as_int;
using json::as_object;
using json::as_string;
using json::at;

constexpr int kFirstPort = 15000;
constexpr int kSharedMemoryDefault_mb = 512;

tl::unexpected<Error> wrong(std::string message) {
  return fail(Code::kInvalid, std::move(message));
}

struct Role {
  std::string name;  // as written
  std::string task;  // as part of a pod's name
  const json::Value* spec = nullptr;
  int instances = 1;
  std::int64_t cpu = 0, memory_mb = 0, gpu = 0, shm_mb = kSharedMemoryDefault_mb;
  int min_failed = 1, min_succeeded = 1;
  std::vector<std::string> ports;  // labels, one entry per port
  std::string image, commands;
};

Result<void> check_keys(const json::Value& map,
                        const std::set<std::string_view>& known,
                        std::string_view where) {
  for (const auto& member : as_object(map)) {
    if (!known.contains(member.key()))
      return wrong(fmt::format("{}: unknown key \"{}\"", where, std::string_view(member.key())));
  }
  return {};
}

bool is_role_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

std::string task_name(std::string_view role) {
  std::string out;
  for (const char c : to_lower(role)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? json::text(value) : value.is_null() ? "" : json::dump(value);
}

/// `$parameters.a.b` or `$data.uri[0]` looked up; an unknown name stays as it is written.
std::string look_up(std::string_view tag, const std::map<std::string, const json::Value*>& roots) {
  const std::string written = fmt::format("<%{}%>", tag);
  const std::string_view path = trim(tag);
  if (!path.starts_with('$')) return written;
  const std::vector<std::string> parts = split(path.substr(1), '.');
  const auto root = roots.find(parts[0]);
  if (root == roots.end()) return written;
  const json::Value* value = root->second;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t bracket = parts[i].find('[');
    value = &at(*value, parts[i].substr(0, bracket));
    if (bracket == std::string::npos) continue;
    const auto index = parse_int(parts[i].substr(bracket + 1, parts[i].size() - bracket - 2));
    const json::Array& items = as_array(*value);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= items.size()) return written;
    value = &items[static_cast<std::size_t>(*index)];
  }
  return value->is_null() ? written : text_of(*value);
}

std::string render(std::string_view text, const std::map<std::string, const json::Value*>& roots) {
  std::string out;
  for (;;) {
    const std::size_t open = text.find("<%");
    const std::size_t close = open == std::string_view::npos ? open : text.find("%>", open);
    if (close == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, open));
    out += look_up(text.substr(open + 2, close - open - 2), roots);
    text = text.substr(close + 2);
  }
}

class Translation {
 public:
  Translation(const json::Value& protocol, const PaiContext& context)
      : from_(protocol), context_(context) {}

  Result<PaiJob> run() {
    for (const auto& step : {&Translation::check_top,
                             &Translation::read_prerequisites,
                             &Translation::read_roles,
                             &Translation::read_scheduling}) {
      if (const auto done = (this->*step)(); !done) return fail(done.error());
    }
    out_.job = make_job();
    return std::move(out_);
  }

 private:
  Result<void> check_top() {
    if (!from_.is_object())
      return wrong("the file holds no job: want protocolVersion, name, type and taskRoles");
    const auto known = check_keys(from_,
                                  {"protocolVersion",
                                   "name",
                                   "type",
                                   "version",
                                   "contributor",
                                   "description",
                                   "prerequisites",
                                   "parameters",
                                   "secrets",
                                   "jobRetryCount",
                                   "taskRoles",
                                   "deployments",
                                   "defaults",
                                   "extras"},
                                  "job");
    if (!known) return known;
    if (text_of(at(from_, "protocolVersion")) != "2")
      return wrong(
          fmt::format("protocolVersion {}: want 2", text_of(at(from_, "protocolVersion"))));
    if (json::string_at(from_, "type") != "job")
      return wrong(fmt::format("type \"{}\": want job", text_of(at(from_, "type"))));
    pai_name_ = json::text_at(from_, "name");
    const bool good = !pai_name_.empty() && pai_name_.size() <= 255 &&
                      std::all_of(pai_name_.begin(), pai_name_.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '_' || c == '-';
                      });
    if (!good) return wrong(fmt::format("name \"{}\": want letters, digits, - and _", pai_name_));
    out_.name = to_lower(replace_all(pai_name_, "_", "-"));
    if (const auto named = check_name(out_.name); !named) return named;
    if (json::int_at(from_, "jobRetryCount") < 0)
      return wrong("jobRetryCount must not be negative");
    const auto deployment = json::text_at(from_, "defaults", "deployment");
    for (const json::Value& each : json::array_at(from_, "deployments")) {
      if (!deployments_.emplace(json::text_at(each, "name"), &each).second)
        return wrong(fmt::format("Duplicate deployments {}.", json::string_at(each, "name")));
    }
    if (!deployment.empty() && !deployments_.contains(deployment))
      return wrong(fmt::format("Default deployment {} does not exist.", deployment));
    if (!deployment.empty()) deployment_ = deployments_.at(deployment);
    return {};
  }

  Result<void> read_prerequisites() {
    for (const json::Value& each : json::array_at(from_, "prerequisites")) {
      const std::string type = json::text_at(each, "type"), name = json::text_at(each, "name");
      if (!prerequisites_.emplace(std::pair(type, name), &each).second)
        return wrong(fmt::format("Duplicate {} prerequisites {}.", type, name));
      if (type == "dockerimage" && !at(each, "auth").is_null())
        out_.notes.push_back(fmt::format(
            "the credentials of image {} are not used: name an imagePullSecret in the cluster",
            name));
    }
    return {};
  }

  Result<const json::Value*> prerequisite(std::string_view type, const std::string& name) const {
    const auto found = prerequisites_.find(std::pair(std::string(type), name));
    if (found == prerequisites_.end())
      return wrong(fmt::format("Prerequisite {} does not exist.", name));
    return found->second;
  }

  Result<void> read_roles() {
    const json::Object& roles = json::object_at(from_, "taskRoles");
    if (roles.empty()) return wrong("taskRoles: want at least one");
    for (const auto& member : roles) {
      auto role = read_role(std::string(member.key()), member.value());
      if (!role) return fail(role.error());
      for (const Role& other : roles_) {
        if (other.task == role->task)
          return wrong(fmt::format("taskRoles {} and {} have the same name but for case and signs",
                                   other.name,
                                   role->name));
      }
      roles_.push_back(std::move(*role));
    }
    return {};
  }

  Result<Role> read_role(const std::string& name, const json::Value& spec) {
    const std::string where = "taskRoles." + name;
    if (!is_role_name(name))
      return wrong(fmt::format(
          "{}: a name is letters, digits and _, and begins with none of the digits", where));
    const auto known = check_keys(spec,
                                  {"instances",
                                   "completion",
                                   "taskRetryCount",
                                   "dockerImage",
                                   "data",
                                   "output",
                                   "script",
                                   "prerequisites",
                                   "extraContainerOptions",
                                   "resourcePerInstance",
                                   "commands"},
                                  where);
    if (!known) return fail(known.error());
    Role role;
    role.name = name;
    role.task = task_name(name);
    role.spec = &spec;
    if (role.task.empty()) return wrong(fmt::format("{}: the name has no letter or digit", where));
    role.instances = static_cast<int>(as_int(at(spec, "instances"), 1));
    if (role.instances < 1) return wrong(fmt::format("{}.instances: want at least 1", where));
    const json::Value& resources = at(spec, "resourcePerInstance");
    for (const auto& [key, into] : {std::pair{"cpu", &role.cpu},
                                    std::pair{"memoryMB", &role.memory_mb},
                                    std::pair{"gpu", &role.gpu}}) {
      if (!at(resources, key).is_number())
        return wrong(fmt::format("{}.resourcePerInstance.{}: want a number", where, key));
      *into = json::int_at(resources, key);
    }
    for (const auto& port : json::object_at(resources, "ports")) {
      for (std::int64_t i = 0; i < as_int(port.value()); ++i) role.ports.emplace_back(port.key());
    }
    for (const char* always : {"ssh", "http"}) {
      if (std::find(role.ports.begin(), role.ports.end(), always) == role.ports.end())
        role.ports.emplace_back(always);
    }
    if (const std::int64_t shm = json::int_at(spec, "extraContainerOptions", "shmMB"); shm > 0)
      role.shm_mb = shm;
    if (const auto read = read_completion(role, where); !read) return fail(read.error());
    const auto image = prerequisite("dockerimage", json::text_at(spec, "dockerImage"));
    if (!image) return fail(image.error());
    role.image = json::text_at(**image, "uri");
    return read_commands(std::move(role), where);
  }

  static Result<void> read_completion(Role& role, const std::string& where) {
    const json::Value& completion = at(*role.spec, "completion");
    role.min_failed = static_cast<int>(json::int_at(completion, "minFailedInstances"));
    if (role.min_failed == 0) role.min_failed = 1;
    role.min_succeeded = static_cast<int>(json::int_at(completion, "minSucceededInstances"));
    if (role.min_succeeded == 0) role.min_succeeded = role.instances;
    if (role.min_failed != 1 && role.min_failed != -1)
      return wrong(
          fmt::format("{}.completion.minFailedInstances {}: want 1 or -1, others are not supported",
                      where,
                      role.min_failed));
    if (role.min_succeeded != -1 && role.min_succeeded != role.instances) {
      return wrong(fmt::format(
          "{}.completion.minSucceededInstances {}: want -1 or all {} instances, others are not supported",
          where,
          role.min_succeeded,
          role.instances));
    }
    return {};
  }

  Result<Role> read_commands(Role role, const std::string& where) {
    std::map<std::string, const json::Value*> roots{{"parameters", &at(from_, "parameters")}};
    for (const char* type : {"script", "output", "data"}) {
      const std::string name = json::text_at(*role.spec, type);
      if (name.empty()) continue;
      const auto found = prerequisite(type, name);
      if (!found) return fail(found.error());
      roots[type] = *found;
    }
    std::vector<std::string> lines;
    const auto add = [&](const json::Value& commands) {
      for (const json::Value& line : as_array(commands))
        lines.emplace_back(trim(render(as_string(line), roots)));
    };
    const json::Value& around =
        deployment_ == nullptr ? json::null_value() : at(*deployment_, "taskRoles", role.name);
    add(at(around, "preCommands"));
    const std::size_t before = lines.size();
    add(at(*role.spec, "commands"));
    if (lines.size() == before) return wrong(fmt::format("{}.commands: want at least one", where));
    add(at(around, "postCommands"));
    role.commands = join(lines, "\n");
    if (role.commands.find("$secrets") != std::string::npos) {
      return wrong(fmt::format(
          "{}.commands use $secrets, which would end up in the job's object: mount a Secret of the cluster instead",
          where));
    }
    return role;
  }

  Result<void> read_scheduling() {
    const json::Value& hived = at(from_, "extras", "hivedScheduler");
    out_.priority_class = json::text_at(hived, "jobPriorityClass");
    if (out_.priority_class.empty()) out_.priority_class = "test";
    if (!pai_priority(out_.priority_class))
      return wrong(
          fmt::format("extras.hivedScheduler.jobPriorityClass {}: want oppo, test, prod or crit",
                      out_.priority_class));
    for (const auto& member : json::object_at(hived, "taskRoles")) {
      const std::string name(member.key());
      if (std::none_of(
              roles_.begin(), roles_.end(), [&](const Role& role) { return role.name == name; }))
        return wrong(fmt::format("Taskrole {} does not exist.", name));
      if (!at(member.value(), "skuType").is_null() &&
          !at(member.value(), "pinnedCellId").is_null()) {
        return wrong(fmt::format(
            "Taskrole {} has both skuType and pinnedCellId, only one is allowed.", name));
      }
    }
    const json::Value& gang = at(from_, "extras", "gangAllocation");
    gang_ = !(gang.is_bool() && !gang.get_bool());
    cluster_ = json::text_at(from_, "defaults", "virtualCluster");
    if (cluster_.empty()) cluster_ = "default";
    for (const char* key :
         {"com.microsoft.pai.runtimeplugin", "storages", "jobStatusChangeNotification"}) {
      if (!json::is_empty(at(from_, "extras", key)))
        out_.notes.push_back(fmt::format("extras.{} is left out: nothing here offers it", key));
    }
    return {};
  }

  /// HiveD's view of a pod of the role; only where the job asks for HiveD.
  json::Value cell_request(const Role& role) const {
    const json::Value& own = at(from_, "extras", "hivedScheduler", "taskRoles", role.name);
    const auto group_of = [&](const Role& each) {
      return json::text_at(
          from_, "extras", "hivedScheduler", "taskRoles", each.name, "affinityGroupName");
    };
    const bool any_named = std::any_of(
        roles_.begin(), roles_.end(), [&](const Role& each) { return !group_of(each).empty(); });
    json::Object request{{"virtualCluster", cluster_},
                         {"priority", *pai_priority(out_.priority_class)},
                         {"leafCellNumber", role.gpu}};
    for (const auto& [from, to] :
         {std::pair{"skuType", "leafCellType"}, std::pair{"pinnedCellId", "pinnedCellId"}}) {
      if (!at(own, from).is_null()) request[to] = at(own, from);
    }
    for (const char* key :
         {"gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes"}) {
      if (const json::Value& value = at(from_, "extras", "hivedScheduler", key); value.is_bool())
        request[key] = value;
    }
    const std::string named = group_of(role);
    if (any_named ? !named.empty() : gang_) {
      json::Array members;
      for (const Role& each : roles_) {
        if (any_named && group_of(each) != named) continue;
        members.push_back(
            json::Object{{"podNumber", each.instances}, {"leafCellNumber", each.gpu}});
      }
      request["affinityGroup"] = json::Object{
          {"name",
           fmt::format("{}~{}/{}", context_.user, pai_name_, any_named ? named : "default")},
          {"members", std::move(members)}};
    }
    return request;
  }

  json::Array env_of(const Role& role) const {
    std::map<std::string, std::string> env;
    std::vector<std::string> names;
    int tasks = 0;
    for (const Role& each : roles_) {
      names.push_back(each.name);
      tasks += each.instances;
      env["PAI_TASK_ROLE_TASK_COUNT_" + each.name] = std::to_string(each.instances);
      env["PAI_RESOURCE_" + each.name] =
          fmt::format("{},{},{},{}", each.gpu, each.cpu, each.memory_mb, each.shm_mb);
      env["PAI_MIN_FAILED_TASK_COUNT_" + each.name] = std::to_string(each.min_failed);
      env["PAI_MIN_SUCCEEDED_TASK_COUNT_" + each.name] = std::to_string(each.min_succeeded);
    }
    for (const char* key : {"PAI_JOB_NAME", "PAI_FRAMEWORK_NAME"})
      env[key] = fmt::format("{}~{}", context_.user, pai_name_);
    for (const char* key : {"PAI_USER_NAME", "PAI_USERNAME"}) env[key] = context_.user;
    env["PAI_VIRTUAL_CLUSTER"] = cluster_;
    for (const char* key : {"PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"})
      env[key] = std::to_string(roles_.size());
    for (const char* key : {"PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"})
      env[key] = join(names, ",");
    for (const char* key : {"PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"})
      env[key] = std::to_string(tasks);
    env["PAI_CURRENT_TASK_ROLE_NAME"] = role.name;
    int port = kFirstPort;
    for (const Role& each : roles_) {
      for (int i = 0; i < each.instances; ++i) {
        std::map<std::string, std::vector<std::string>> by_label;
        for (const std::string& label : each.ports)
          by_label[label].push_back(std::to_string(port++));
        for (const auto& [label, ports] : by_label) {
          env[fmt::format("PAI_PORT_LIST_{}_{}_{}", each.name, i, label)] = join(ports, ",");
          env[fmt::format("PAI_{}_{}_{}_PORT", each.name, i, label)] = join(ports, ",");
        }
      }
    }
    json::Array array;
    for (const auto& [name, value] : env)
      array.push_back(json::Object{{"name", name}, {"value", value}});
    return array;
  }

  /// What runs before the user's commands: this task's index, and everybody's address. A gang waits
  /// until all have one.
  std::string prologue() const {
    std::string text =
        "export PAI_TASK_INDEX=$VC_TASK_INDEX PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX=$VC_TASK_INDEX\n";
    for (const Role& each : roles_) {
      for (int i = 0; gang_ && i < each.instances; ++i) {
        text += fmt::format(
            "until PAI_IP=$(getent hosts {0}-{1}-{2}.{0} | cut -d' ' -f1) && [ -n \"$PAI_IP\" ]; do sleep 0.2; done; export PAI_HOST_IP_{3}_{2}=$PAI_IP\n",
            out_.name,
            each.task,
            i,
            each.name);
      }
    }
    return text + "set -o errexit -o nounset -o pipefail\n";
  }

  json::Value task_of(const Role& role) const {
    json::Object limits{{"cpu", std::to_string(role.cpu)},
                        {"memory", fmt::format("{}Mi", role.memory_mb)}};
    if (role.gpu > 0) limits["nvidia.com/gpu"] = std::to_string(role.gpu);
    if (json::bool_at(*role.spec, "extraContainerOptions", "infiniband")) limits["rdma/hca"] = "1";
    json::Object container{
        {"name", "app"},
        {"image", role.image},
        {"command", json::Array{"bash", "-c", prologue() + role.commands}},
        {"env", env_of(role)},
        {"resources", json::Object{{"requests", limits}, {"limits", limits}}},
        {"volumeMounts", json::Array{json::Object{{"name", "dshm"}, {"mountPath", "/dev/shm"}}}}};
    json::Object volume{
        {"name", "dshm"},
        {"emptyDir",
         json::Object{{"medium", "Memory"}, {"sizeLimit", fmt::format("{}Mi", role.shm_mb)}}}};
    json::Object metadata{{"labels", labels()}};
    if (at(from_, "extras", "hivedScheduler").is_object()) {
      metadata["annotations"] =
          json::Object{{kube::names::hived::kSchedulingSpec, json::to_yaml(cell_request(role))}};
    }
    json::Array policies;
    if (role.min_failed == 1)
      policies.push_back(json::Object{{"event", "PodFailed"}, {"action", "RestartJob"}});
    if (role.min_succeeded > 0)
      policies.push_back(json::Object{{"event", "TaskCompleted"}, {"action", "CompleteJob"}});
    json::Object task{{"name", role.task},
                      {"replicas", role.instances},
                      {"minAvailable", gang_ ? role.instances : 0},
                      {"template",
                       json::Object{{"metadata", std::move(metadata)},
                                    {"spec",
                                     json::Object{{"restartPolicy", "Never"},
                                                  {"containers", json::Array{std::move(container)}},
                                                  {"volumes", json::Array{std::move(volume)}}}}}}};
    if (!policies.empty()) task["policies"] = std::move(policies);
    return task;
  }

  json::Object labels() const {
    return {{"app", "volcanojob"},
            {"release", out_.name},
            {"createdBy", "OpenPAI"},
            {kube::names::kubeflow::kArenaUid, md5_hex(context_.user)},
            {"virtualCluster", cluster_}};
  }

  json::Value make_job() const {
    json::Array tasks;
    std::int64_t gpus = 0;
    int instances = 0;
    for (const Role& role : roles_) {
      tasks.push_back(task_of(role));
      gpus += role.gpu * role.instances;
      instances += role.instances;
    }
    json::Object annotations{{kube::names::kubeflow::kArenaUsername, context_.user},
                             {"requestGPUsOfJobOwner", std::to_string(gpus)},
                             {kube::names::kPaiName, pai_name_},
                             {kube::names::kOnPreempt, "requeue"}};
    json::Object spec{{"minAvailable", gang_ ? instances : 1},
                      {"schedulerName", "volcano"},
                      {"queue", cluster_},
                      {"priorityClassName", "pai-" + out_.priority_class},
                      {"maxRetry", json::int_at(from_, "jobRetryCount") + 1},
                      {"plugins", json::Object{{"env", json::Array{}}, {"svc", json::Array{}}}},
                      {"tasks", std::move(tasks)}};
    return json::Object{{"apiVersion", kube::resources::kVolcanoJobs.api_version()},
                        {"kind", "Job"},
                        {"metadata",
                         json::Object{{"name", out_.name},
                                      {"namespace", context_.ns},
                                      {"labels", labels()},
                                      {"annotations", std::move(annotations)}}},
                        {"spec", std::move(spec)}};
  }

  const json::Value& from_;
  const PaiContext& context_;
  PaiJob out_;
  std::string pai_name_, cluster_;
  bool gang_ = true;
  std::vector<Role> roles_;
  std::map<std::string, const json::Value*> deployments_;
  const json::Value* deployment_ = nullptr;
  std::map<std::pair<std::string, std::string>, const json::Value*> prerequisites_;
};

}  // namespace

std::optional<int> pai_priority(std::string_view priority_class) {
  if (priority_class == "crit") return 120;
  if (priority_class == "prod") return 100;
  if (priority_class == "test") return 10;
  if (priority_class == "oppo") return -1;
  return std::nullopt;
}

Result<PaiJob> translate_pai(const json::Value& protocol, const PaiContext& context) {
  return Translation(protocol, context).run();
}

}  // namespace muster::cli
