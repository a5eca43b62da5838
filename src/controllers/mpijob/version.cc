#include "controllers/mpijob/version.h"

#include <string_view>

#include "kube/names.h"

namespace muster::controllers::mpijob {
namespace {

bool is_version(std::string_view text) {
  return text == "v1alpha1" || text == "v1" || text == "v2beta1";
}

std::string version_part(std::string_view api_version) {
  const auto slash = api_version.rfind('/');
  return std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1));
}

}  // namespace

std::string version_of(const json::Value& job) {
  const auto chosen = json::text_at(job, "metadata", "annotations", kube::names::kMpiVersion);
  if (is_version(chosen)) return chosen;
  std::string_view oldest;
  std::string created;
  for (const auto& entry : json::array_at(job, "metadata", "managedFields")) {
    const auto time = json::string_at(entry, "time");
    if (!json::string_at(entry, "subresource").empty() || (!created.empty() && time >= oldest))
      continue;
    const auto version = version_part(json::string_at(entry, "apiVersion"));
    if (!is_version(version)) continue;
    created = version;
    oldest = time;
  }
  if (!created.empty()) return created;
  const auto& spec = json::at(job, "spec");
  if (!json::at(spec, "mpiReplicaSpecs").is_object() && json::at(spec, "template").is_object())
    return "v1alpha1";
  for (const std::string_view field :
       {"sshAuthMountPath", "mpiImplementation", "launcherCreationPolicy", "runLauncherAsWorker"}) {
    if (!json::at(spec, field).is_null()) return "v2beta1";
  }
  if (!json::at(spec, "mainContainer").is_null() || !json::at(spec, "cleanPodPolicy").is_null())
    return "v1";
  const auto read = version_part(json::string_at(job, "apiVersion"));
  return is_version(read) ? read : "v1";
}

json::Value in_own_version(const json::Value& job) {
  json::Value copy = job;
  copy.as_object()["apiVersion"] = fmt::format("{}/{}", kube::groups::kKubeflow, version_of(job));
  return copy;
}

}  // namespace muster::controllers::mpijob
