#include "agent/node/node_info.h"

#include <sys/utsname.h>

#include <fstream>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

using json::at;

std::string first_line(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

json::Value condition(const json::Value& node,
                      const char* type,
                      bool value,
                      const char* reason,
                      const char* message,
                      Time now) {
  const char* status = value ? "True" : "False";
  const auto& old = kube::condition(node, type);
  const bool same =
      json::string_at(old, "status") == status && !at(old, "lastTransitionTime").is_null();
  return json::Object{
      {"type", type},
      {"status", status},
      {"lastHeartbeatTime", format_time(now)},
      {"lastTransitionTime", same ? json::text_at(old, "lastTransitionTime") : format_time(now)},
      {"reason", reason},
      {"message", message}};
}

}  // namespace

std::string architecture() {
  utsname name{};
  uname(&name);
  const std::string machine = name.machine;
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

json::Value node_info(const std::string& runtime_version) {
  utsname name{};
  uname(&name);
  std::string os = "Linux";
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with("PRETTY_NAME=")) os = replace_all(line.substr(12), "\"", "");
  }
  const auto machine = first_line("/etc/machine-id");
  return json::Object{{"machineID", machine},
                      {"systemUUID", machine},
                      {"bootID", first_line("/proc/sys/kernel/random/boot_id")},
                      {"kernelVersion", name.release},
                      {"osImage", os},
                      {"containerRuntimeVersion", runtime_version},
                      {"kubeletVersion", kube::kKubernetesVersion},
                      {"kubeProxyVersion", ""},
                      {"operatingSystem", "linux"},
                      {"architecture", architecture()}};
}

json::Array ready_conditions(const json::Value& node, Time now) {
  return json::Array{
      condition(node,
                "MemoryPressure",
                false,
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
                now),
      condition(node,
                "DiskPressure",
                false,
                "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure",
                now),
      condition(node,
                "PIDPressure",
                false,
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
                now),
      condition(node, "Ready", true, "KubeletReady", "kubelet is posting ready status", now)};
}

}  // namespace muster::agent
