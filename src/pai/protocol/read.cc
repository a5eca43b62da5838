#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "pai/job/ports.h"
#include "pai/protocol/job.h"
#include "pai/protocol/template.h"

namespace muster::pai {
namespace {

constexpr std::int64_t kSharedMemory_mb = 512;
/// Every task is told of every role, so what a job becomes grows with the square of its roles.
constexpr std::size_t kRolesMax = 64;
constexpr std::int64_t kTasksMax = 10'000;
constexpr std::size_t kPrerequisitesMax = 1'000;
/// More could not be stored on the Framework.
constexpr std::size_t kRenderedMax = 256 * 1024;
constexpr std::string_view kCommandPlugin = "com.microsoft.pai.runtimeplugin.cmd";

std::string name_in_pods(std::string_view role) {
  std::string out;
  for (const char c : to_lower(role)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

std::string no_prerequisite(std::string_view name) {
  return fmt::format("Prerequisite {} does not exist.", name);
}

class Reader {
 public:
  Reader(const json::Value& protocol, const std::string& user) : from_(protocol) {
    job_.protocol = &protocol;
    job_.user = user;
    job_.name = json::text_at(protocol, "name");
    job_.retries = json::int_at(protocol, "jobRetryCount");
    job_.virtual_cluster = json::text_at(protocol, "defaults", "virtualCluster");
    if (job_.virtual_cluster.empty()) job_.virtual_cluster = "default";
    const json::Value& gang = json::at(protocol, "extras", "gangAllocation");
    job_.gang = !(gang.is_bool() && !gang.get_bool());
    job_.priority_class = json::text_at(protocol, "extras", "hivedScheduler", "jobPriorityClass");
    if (job_.priority_class.empty()) job_.priority_class = "test";
  }

  Answer<Job> run() {
    if (std::string wrong = first_wrong(); !wrong.empty())
      return tl::unexpected(invalid(std::move(wrong)));
    return std::move(job_);
  }

 private:
  [[nodiscard]] std::string too_large() const {
    const json::Object& roles = json::object_at(from_, "taskRoles");
    if (roles.size() > kRolesMax)
      return fmt::format(
          "The job has {} taskroles, at most {} are allowed.", roles.size(), kRolesMax);
    const std::size_t wanted = json::array_at(from_, "prerequisites").size();
    if (wanted > kPrerequisitesMax)
      return fmt::format(
          "The job has {} prerequisites, at most {} are allowed.", wanted, kPrerequisitesMax);
    std::int64_t tasks = 0;
    for (const auto& role : roles) tasks += json::as_int(json::at(role.value(), "instances"), 1);
    if (tasks > kTasksMax)
      return fmt::format("The job has {} instances, at most {} are allowed.", tasks, kTasksMax);
    return {};
  }

  /// The message of the first reference that leads nowhere; empty if all are right.
  std::string first_wrong() {
    if (std::string wrong = too_large(); !wrong.empty()) return wrong;
    for (const json::Value& each : json::array_at(from_, "prerequisites")) {
      const std::string type = json::text_at(each, "type"), name = json::text_at(each, "name");
      if (!prerequisites_.emplace(std::pair(type, name), &each).second)
        return fmt::format("Duplicate {} prerequisites {}.", type, name);
    }
    for (const auto& [key, value] : prerequisites_) by_name_.emplace(key.second, value);
    std::map<std::string, const json::Value*> deployments;
    for (const json::Value& each : json::array_at(from_, "deployments")) {
      if (!deployments.emplace(json::text_at(each, "name"), &each).second)
        return fmt::format("Duplicate deployments {}.", json::string_at(each, "name"));
    }
    for (const auto& member : json::object_at(from_, "taskRoles")) {
      if (std::string wrong = check_references(member.value()); !wrong.empty()) return wrong;
    }
    const std::string deployment = json::text_at(from_, "defaults", "deployment");
    if (!deployment.empty() && !deployments.contains(deployment))
      return fmt::format("Default deployment {} does not exist.", deployment);
    if (!deployment.empty()) deployment_ = deployments.at(deployment);
    for (const auto& member : json::object_at(from_, "taskRoles")) {
      Role role = read_role(std::string(member.key()), member.value());
      if (rendered_ > kRenderedMax)
        return fmt::format(
            "The job's commands take more than {} bytes with their parameters: move long ones into a "
            "script.",
            kRenderedMax);
      if (std::string wrong = clash(role); !wrong.empty()) return wrong;
      if (std::string wrong = too_many_ports(role); !wrong.empty()) return wrong;
      job_.roles.push_back(std::move(role));
    }
    return {};
  }

  [[nodiscard]] const json::Value* find(std::string_view type, std::string_view name) const {
    const auto found = prerequisites_.find(std::pair(std::string(type), std::string(name)));
    return found == prerequisites_.end() ? nullptr : found->second;
  }

  /// A prerequisite by name alone, of any type.
  [[nodiscard]] const json::Value* find_any(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  [[nodiscard]] std::string check_references(const json::Value& role) const {
    for (const auto& [field, type] : {std::pair{"dockerImage", "dockerimage"},
                                      std::pair{"script", "script"},
                                      std::pair{"output", "output"},
                                      std::pair{"data", "data"}}) {
      const std::string name = json::text_at(role, field);
      if (!name.empty() && find(type, name) == nullptr) return no_prerequisite(name);
    }
    if (json::string_at(role, "dockerImage").empty()) return no_prerequisite("");
    for (const json::Value& name : json::array_at(role, "prerequisites")) {
      if (find_any(json::as_string(name)) == nullptr) return no_prerequisite(json::as_string(name));
    }
    return {};
  }

  /// Pods are named after the role without signs and in lower case, so two roles may collide.
  [[nodiscard]] std::string clash(const Role& role) const {
    if (role.in_pods.empty())
      return fmt::format("Taskrole {} has no letter or digit in its name.", role.name);
    for (const Role& other : job_.roles) {
      if (other.in_pods == role.in_pods)
        return fmt::format("Taskroles {} and {} have the same name but for case and signs.",
                           other.name,
                           role.name);
    }
    return {};
  }

  [[nodiscard]] static std::string too_many_ports(const Role& role) {
    std::int64_t wanted = 0;
    for (const auto& [label, count] : role.ports) wanted += count;
    constexpr std::int64_t kPorts = kPortLast - kPortFirst;
    if (wanted <= kPorts) return {};
    return fmt::format("Taskrole {} requests {} ports, but the range from {} to {} has {}.",
                       role.name,
                       wanted,
                       kPortFirst,
                       kPortLast,
                       kPorts);
  }

  Role read_role(std::string name, const json::Value& spec) {
    Role role;
    role.name = std::move(name);
    role.in_pods = name_in_pods(role.name);
    role.instances = json::as_int(json::at(spec, "instances"), 1);
    const json::Value& completion = json::at(spec, "completion");
    role.min_failed = json::int_at(completion, "minFailedInstances");
    if (role.min_failed == 0) role.min_failed = 1;
    role.min_succeeded = json::int_at(completion, "minSucceededInstances");
    if (role.min_succeeded == 0) role.min_succeeded = role.instances;
    role.retries = json::int_at(spec, "taskRetryCount");
    const json::Value& resources = json::at(spec, "resourcePerInstance");
    role.cpu = json::int_at(resources, "cpu");
    role.memory_mb = json::int_at(resources, "memoryMB");
    role.gpu = json::int_at(resources, "gpu");
    role.shm_mb = json::int_at(spec, "extraContainerOptions", "shmMB");
    if (role.shm_mb == 0) role.shm_mb = kSharedMemory_mb;
    role.infiniband = json::bool_at(spec, "extraContainerOptions", "infiniband");
    role.ports = {{"ssh", 1}, {"http", 1}};
    for (const auto& port : json::object_at(resources, "ports")) {
      const auto same = std::find_if(role.ports.begin(), role.ports.end(), [&](const auto& each) {
        return each.first == std::string_view(port.key());
      });
      const int count = static_cast<int>(json::as_int(port.value()));
      if (same == role.ports.end()) {
        role.ports.emplace_back(port.key(), count);
      } else {
        same->second = std::max(1, count);
      }
    }
    read_image(role, spec);
    read_commands(role, spec);
    read_hooks(role, spec);
    const json::Value& cells = json::at(from_, "extras", "hivedScheduler", "taskRoles", role.name);
    role.sku_type = json::text_at(cells, "skuType");
    role.pinned_cell = json::text_at(cells, "pinnedCellId");
    role.affinity_group = json::text_at(cells, "affinityGroupName");
    return role;
  }

  /// Nothing more once there is too much of it; the job is refused then.
  std::string rendered(const json::Value& text, const Roots& roots) {
    if (rendered_ > kRenderedMax) return {};
    std::string out = render(json::as_string(text), roots, kRenderedMax - rendered_);
    rendered_ += out.size();
    return out;
  }

  void read_image(Role& role, const json::Value& spec) {
    const json::Value& image = *find("dockerimage", json::string_at(spec, "dockerImage"));
    role.image = json::text_at(image, "uri");
    const json::Object& auth = json::object_at(image, "auth");
    if (auth.empty()) return;
    const Roots secrets{{"secrets", &json::at(from_, "secrets")}};
    json::Object known;
    for (const auto& member : auth) known[member.key()] = rendered(member.value(), secrets);
    role.auth = std::move(known);
  }

  [[nodiscard]] Roots roots_of(const json::Value& spec) const {
    Roots roots{{"parameters", &json::at(from_, "parameters")}};
    for (const char* type : {"script", "output", "data"}) {
      if (const json::Value* found = find(type, json::string_at(spec, type)); found != nullptr)
        roots[type] = found;
    }
    return roots;
  }

  void add_rendered(std::vector<std::string>& lines,
                    const json::Value& commands,
                    const Roots& roots) {
    for (const json::Value& line : json::as_array(commands))
      lines.emplace_back(trim(rendered(line, roots)));
  }

  void read_commands(Role& role, const json::Value& spec) {
    const Roots roots = roots_of(spec);
    const json::Value& around = deployment_ == nullptr
                                    ? json::null_value()
                                    : json::at(*deployment_, "taskRoles", role.name);
    add_rendered(role.commands, json::at(around, "preCommands"), roots);
    add_rendered(role.commands, json::at(spec, "commands"), roots);
    add_rendered(role.commands, json::at(around, "postCommands"), roots);
  }

  /// Prerequisites that are plugins: in order when a task starts, in reverse order when it has
  /// succeeded. What one requires comes before it.
  void read_hooks(Role& role, const json::Value& spec) {
    std::vector<const json::Value*> order;
    std::set<std::string> seen;
    for (const json::Value& name : json::array_at(spec, "prerequisites"))
      add_with_required(json::text(name), order, seen);
    const Roots roots = roots_of(spec);
    for (const json::Value* each : order) {
      if (json::string_at(*each, "plugin") != kCommandPlugin) continue;
      for (const json::Value& callback : json::array_at(*each, "callbacks")) {
        Hook hook;
        hook.may_fail = json::string_at(*each, "failurePolicy") == "ignore";
        add_rendered(hook.commands, json::at(callback, "commands"), roots);
        const auto event = json::string_at(callback, "event");
        if (event == "taskStarts") role.starts.push_back(hook);
        if (event == "taskSucceeds") role.succeeds.insert(role.succeeds.begin(), hook);
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): each name is visited once.
  void add_with_required(const std::string& name,
                         std::vector<const json::Value*>& order,
                         std::set<std::string>& seen) const {
    const json::Value* found = find_any(name);
    if (found == nullptr || !seen.insert(name).second) return;
    for (const json::Value& required : json::array_at(*found, "require"))
      add_with_required(json::text(required), order, seen);
    order.push_back(found);
  }

  const json::Value& from_;
  Job job_;
  std::map<std::pair<std::string, std::string>, const json::Value*> prerequisites_;
  std::map<std::string, const json::Value*, std::less<>> by_name_;  // of any type
  const json::Value* deployment_ = nullptr;
  std::size_t rendered_ = 0;
};

}  // namespace

Refusal invalid(std::string message) { return {400, "InvalidProtocolError", std::move(message)}; }

Answer<Job> read_job(const json::Value& protocol, const std::string& user) {
  return Reader(protocol, user).run();
}

}  // namespace muster::pai
