/// What the MPIJob controllers of all versions build alike: hostfile volume, kubectl delivery,
/// access of the launcher.
#pragma once

#include <string>
#include <vector>

#include "controllers/common/objects.h"
#include "controllers/common/plan.h"

namespace muster::controllers::mpijob {

/// A container that asks for GPUs.
bool asks_for_gpu(const json::Value& pod_template);
std::string worker_name(const json::Value& job, int index);
/// kubectl exec into the pod named by the first argument; `container` may be empty.
std::string kubexec_script(std::string_view container);
/// A volume of the job's ConfigMap with these (key, mode) items.
json::Value config_volume(const json::Value& job,
                          const std::vector<std::pair<std::string, int>>& items);
json::Value mount(std::string_view volume, std::string_view path);

/// Creates it, or patches `fields` when they differ, or refuses an object of that name that is not
/// the job's. False when refused (plan.error is set).
bool ensure(Plan& plan,
            const json::Value& job,
            const View& view,
            std::string_view kind,
            json::Value wanted,
            std::initializer_list<std::string_view> fields);

struct LauncherAccess {
  std::string account;  // ServiceAccount name
  json::Array rules;
};
/// The verbs on pods/exec.
json::Array exec_verbs(const Settings& settings);
bool ensure_account(Plan& plan,
                    const json::Value& job,
                    const View& view,
                    const std::string& account);
bool ensure_role(Plan& plan,
                 const json::Value& job,
                 const View& view,
                 const LauncherAccess& access);

/// The init container that brings kubectl into the launcher.
json::Value kubectl_delivery(const json::Value& job, const Settings& settings, bool with_hostfile);
/// {apiVersion …} with label app=<job>, as all objects but pods carry it.
json::Value labelled_child(const json::Value& job,
                           std::string_view api_version,
                           std::string_view kind,
                           std::string_view name);

/// Pods that are running now, by name.
Objects running(const Objects& pods);

}  // namespace muster::controllers::mpijob
