#include "pai/runtime/spec.h"

#include <algorithm>

namespace muster::pai {
namespace {

constexpr std::string_view kPlugins = "com.microsoft.pai.runtimeplugin";

json::Array lines(const std::vector<std::string>& commands) {
  json::Array out;
  for (const std::string& each : commands) out.push_back(json::Value(each));
  return out;
}

json::Array hooks(const std::vector<Hook>& from) {
  json::Array out;
  for (const Hook& hook : from)
    out.push_back(json::Object{{"commands", lines(hook.commands)}, {"mayFail", hook.may_fail}});
  return out;
}

}  // namespace

bool wants_ssh(const Job& job) {
  const json::Array& plugins = json::array_at(*job.protocol, "extras", kPlugins);
  return std::any_of(plugins.begin(), plugins.end(), [](const json::Value& each) {
    return json::string_at(each, "plugin") == "ssh";
  });
}

json::Value runtime_spec(const Job& job, const Facts& facts) {
  json::Array roles;
  for (const Role& role : job.roles) {
    json::Object ports;
    for (const auto& [label, count] : role.ports) ports[label] = count;
    roles.push_back(json::Object{{"name", role.name},
                                 {"pods", role.in_pods},
                                 {"ports", std::move(ports)},
                                 {"commands", lines(role.commands)},
                                 {"starts", hooks(role.starts)},
                                 {"succeeds", hooks(role.succeeds)}});
  }
  return json::Object{{"gang", job.gang},
                      {"roles", std::move(roles)},
                      {"plugins", json::array_at(*job.protocol, "extras", kPlugins)},
                      {"sshKeys", lines(facts.ssh_keys)}};
}

}  // namespace muster::pai
