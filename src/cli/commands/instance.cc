#include "cli/commands/instance.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/view/tabwriter.h"

namespace muster::cli {
namespace {

std::string listing(const Job& job) {
  Rows rows;
  rows.add({"NAME", "STATUS", "AGE", "NODE"});
  for (const Instance& instance : job.instances) {
    rows.add({instance.name, instance.status, short_human_duration(instance.age), instance.node});
  }
  return fmt::format(
      "There are several instances of {}, please choose one with -i:\n\n{}", job.name, rows.text());
}

std::string no_instances(const Session& session, const Job& job) {
  std::string text =
      fmt::format("not found instances of the job {}, it is {}", job.name, job.status);
  if (!job.finished()) text += fmt::format("; see '{} explain {}'", session.program, job.name);
  return text;
}

std::string unknown_instance(const Job& job, const std::string& name) {
  std::vector<std::string> names;
  for (const Instance& instance : job.instances) names.push_back(instance.name);
  return fmt::format(
      "invalid instance name {} of the job {}, it has: {}", name, job.name, join(names, ", "));
}

}  // namespace

Task<std::optional<Chosen>> choose_instance(Invocation& call) {
  Session& session = call.session;
  const auto type = type_flag(session, call.values);
  if (!type) {
    session.failed(type.error());
    co_return std::nullopt;
  }
  auto fetched = co_await fetch_job(session, call.values.args[0], *type);
  if (!fetched) {
    session.failed(fetched.error());
    co_return std::nullopt;
  }
  Chosen chosen;
  chosen.snapshot = std::move(*fetched);
  chosen.job = &chosen.snapshot->jobs[0];
  chosen.container = call.values.text("container");
  const std::vector<Instance>& instances = chosen.job->instances;
  const std::string name = call.values.text("instance");
  const auto found = std::find_if(instances.begin(), instances.end(), [&](const Instance& each) {
    return name.empty() ? each.chief : each.name == name;
  });
  if (found != instances.end()) {
    chosen.instance = &*found;
  } else if (instances.empty()) {
    session.failed(no_instances(session, *chosen.job));
    co_return std::nullopt;
  } else if (!name.empty()) {
    session.failed(unknown_instance(*chosen.job, name));
    co_return std::nullopt;
  } else if (instances.size() == 1) {
    chosen.instance = &instances[0];
  } else {
    session.console.out(listing(*chosen.job));
    co_return std::nullopt;
  }
  co_return std::optional<Chosen>(std::move(chosen));
}

std::string container_or_first(const Chosen& chosen) {
  if (!chosen.container.empty()) return chosen.container;
  const json::Array& containers = json::array_at(*chosen.instance->pod, "spec", "containers");
  return containers.empty() ? "" : json::text_at(containers[0], "name");
}

}  // namespace muster::cli
