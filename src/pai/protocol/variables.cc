#include "pai/protocol/variables.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::pai {

Variables variables(const Job& job, const Role& role) {
  std::int64_t tasks = 0;
  std::vector<std::string> names, instances;
  for (const Role& each : job.roles) {
    tasks += each.instances;
    names.push_back(each.name);
  }
  Variables out;
  const auto add = [&](std::initializer_list<const char*> keys, const std::string& value) {
    for (const char* key : keys) out.emplace_back(key, value);
  };
  add({"PAI_JOB_NAME", "PAI_FRAMEWORK_NAME"}, job_id(job.user, job.name));
  add({"PAI_USER_NAME", "PAI_USERNAME"}, job.user);
  add({"PAI_VIRTUAL_CLUSTER"}, job.virtual_cluster);
  add({"PAI_DEFAULT_FS_URI"}, "");
  add({"PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"},
      std::to_string(job.roles.size()));
  add({"PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"}, join(names, ","));
  add({"PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"}, std::to_string(tasks));
  for (const Role& each : job.roles) {
    out.emplace_back("PAI_TASK_ROLE_TASK_COUNT_" + each.name, std::to_string(each.instances));
    out.emplace_back("PAI_RESOURCE_" + each.name,
                     fmt::format("{},{},{},{}", each.gpu, each.cpu, each.memory_mb, each.shm_mb));
    out.emplace_back("PAI_MIN_FAILED_TASK_COUNT_" + each.name, std::to_string(each.min_failed));
    out.emplace_back("PAI_MIN_SUCCEEDED_TASK_COUNT_" + each.name,
                     std::to_string(each.min_succeeded));
  }
  add({"PAI_CURRENT_TASK_ROLE_NAME"}, role.name);
  add({"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"}, "$(FC_TASK_INDEX)");
  return out;
}

}  // namespace muster::pai
