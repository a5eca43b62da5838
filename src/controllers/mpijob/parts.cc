#include "controllers/mpijob/parts.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::mpijob {

bool asks_for_gpu(const json::Value& pod_template) {
  for (const auto& container : json::array_at(pod_template, "spec", "containers")) {
    for (const auto& [name, amount] : json::object_at(container, "resources", "limits")) {
      if (std::string_view(name.data(), name.size()).find("gpu") != std::string_view::npos)
        return true;
    }
  }
  return false;
}

std::string worker_name(const json::Value& job, int index) {
  return fmt::format("{}-worker-{}", name_of(job), index);
}

std::string kubexec_script(std::string_view container) {
  return fmt::format(
      "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${{POD_NAME}}{} -- /bin/sh -c \"$*\"",
      container.empty() ? "" : fmt::format(" --container {}", container));
}

json::Value config_volume(const json::Value& job,
                          const std::vector<std::pair<std::string, int>>& items) {
  json::Array list;
  for (const auto& [key, mode] : items)
    list.push_back(json::Object{{"key", key}, {"path", key}, {"mode", mode}});
  return json::Object{
      {"name", "mpi-job-config"},
      {"configMap", json::Object{{"name", name_of(job) + "-config"}, {"items", list}}}};
}

json::Value mount(std::string_view volume, std::string_view path) {
  return json::Object{{"name", volume}, {"mountPath", path}};
}

json::Value labelled_child(const json::Value& job,
                           std::string_view api_version,
                           std::string_view kind,
                           std::string_view name) {
  auto object = make_child(job, api_version, kind, name);
  set_label(object, "app", name_of(job));
  return object;
}

bool ensure(Plan& plan,
            const json::Value& job,
            const View& view,
            std::string_view kind,
            json::Value wanted,
            std::initializer_list<std::string_view> fields) {
  const auto name = name_of(wanted);
  const auto* found = view.find(kind, name);
  if (found == nullptr) {
    plan.actions.push_back(create(kind, std::move(wanted)));
    return true;
  }
  if (!is_controlled_by(*found, job)) {
    refuse_foreign(plan, name, kind, json::string_at(job, "kind"));
    return false;
  }
  json::Object changes;
  for (const auto field : fields) {
    if (!json::equal(json::at(*found, field), json::at(wanted, field)))
      changes[field] = json::at(wanted, field);
  }
  if (!changes.empty()) plan.actions.push_back(patch(kind, name, std::move(changes)));
  return true;
}

json::Array exec_verbs(const Settings& settings) {
  return settings.exec_over_websocket ? json::Array{"create", "get"} : json::Array{"create"};
}

bool ensure_account(Plan& plan,
                    const json::Value& job,
                    const View& view,
                    const std::string& account) {
  // An account that somebody prepared for the launcher is used as it is.
  if (view.find(kinds::kServiceAccount, account) == nullptr) {
    plan.actions.push_back(
        create(kinds::kServiceAccount, labelled_child(job, "v1", "ServiceAccount", account)));
  }
  return true;
}

bool ensure_role(Plan& plan,
                 const json::Value& job,
                 const View& view,
                 const LauncherAccess& access) {
  const auto name = name_of(job) + "-launcher";
  auto role = labelled_child(job, kube::resources::kRoles.api_version(), "Role", name);
  role.as_object()["rules"] = access.rules;
  if (!ensure(plan, job, view, kinds::kRole, std::move(role), {"rules"})) return false;
  auto binding = labelled_child(job, kube::resources::kRoles.api_version(), "RoleBinding", name);
  binding.as_object()["subjects"] = json::Array{json::Object{
      {"kind", "ServiceAccount"}, {"name", access.account}, {"namespace", namespace_of(job)}}};
  binding.as_object()["roleRef"] =
      json::Object{{"apiGroup", kube::groups::kRbac}, {"kind", "Role"}, {"name", name}};
  return ensure(plan, job, view, kinds::kRoleBinding, std::move(binding), {});
}

json::Value kubectl_delivery(const json::Value& job, const Settings& settings, bool with_hostfile) {
  json::Array variables{env("TARGET_DIR", "/opt/kube")};
  json::Array mounts{mount("mpi-job-kubectl", "/opt/kube")};
  json::Value container = json::Object{{"name", "kubectl-delivery"},
                                       {"image", settings.kubectl_delivery_image},
                                       {"imagePullPolicy", "IfNotPresent"}};
  if (with_hostfile) {
    variables.push_back(env("NAMESPACE", namespace_of(job)));
    mounts.push_back(mount("mpi-job-config", "/etc/mpi"));
    const json::Object amounts{{"cpu", "100m"}, {"memory", "512Mi"}, {"ephemeral-storage", "5Gi"}};
    container.as_object()["resources"] = json::Object{{"limits", amounts}, {"requests", amounts}};
  }
  container.as_object()["env"] = std::move(variables);
  container.as_object()["volumeMounts"] = std::move(mounts);
  return container;
}

Objects running(const Objects& pods) {
  Objects result;
  for (const auto* pod : pods) {
    if (phase_of(*pod) == "Running") result.push_back(pod);
  }
  return result;
}

}  // namespace muster::controllers::mpijob
