#include "machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace muster::bottle {

using namespace agent;  // whose machine it is

namespace {

constexpr int kKilled = 137, kTerminated = 143;

Error gone(const std::string& what) { return {Code::kNotFound, what + " is not there"}; }

}  // namespace

Machine::Machine(SimWorld& world, std::uint64_t seed, std::string directory)
    : world_(world), env_(world), random_(seed), directory_(std::move(directory)) {}

void Machine::end(const std::string& sandbox_id,
                  const std::string& container_id,
                  int code,
                  const char* reason) {
  const auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox == sandboxes_.end()) return;
  const auto found = sandbox->second.containers.find(container_id);
  if (found == sandbox->second.containers.end()) return;
  ContainerStatus& status = found->second.status;
  if (status.state == ContainerState::kExited) return;
  status.state = ContainerState::kExited;
  status.finished = status.started + (world_.now() - found->second.begun);
  status.exit_code = code;
  status.reason = reason;
  tell({sandbox_id, container_id, status});
}

void Machine::end_later(const std::string& sandbox,
                        const std::string& container,
                        Duration span,
                        int code) {
  const std::uint64_t run = sandboxes_.at(sandbox).containers.at(container).run;
  env_.later(span, [this, sandbox, container, run, code] {
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return;
    const auto one = found->second.containers.find(container);
    if (one == found->second.containers.end() || one->second.run != run) return;
    end(sandbox, container, code, code == 0 ? "Completed" : "Error");
  });
}

void Machine::lose_power() {
  sandboxes_.clear();
  watcher_ = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(directory_ + "/run", ignored);
}

std::string Machine::break_something() {
  if (sandboxes_.empty()) return "";
  const auto sandbox =
      std::next(sandboxes_.begin(), static_cast<std::ptrdiff_t>(random_.below(sandboxes_.size())));
  const std::string id = sandbox->first;
  if (random_.chance(40)) {
    ++counts_.sandboxes_lost;
    sandboxes_.erase(sandbox);
    tell({id, "", {}});
    return "a sandbox is lost";
  }
  for (const auto& [container, one] : sandbox->second.containers) {
    if (one.status.state != ContainerState::kRunning) continue;
    ++counts_.killed;
    end(id, container, kKilled, "OOMKilled");
    return "a container takes too much memory";
  }
  return "";
}

// ------------------------------------------------------------------------------------- the runtime

/// Quick mostly, now and then not.
Task<void> SimRuntime::take_time() {
  const bool slow = machine_.random_.chance(3);
  const auto us = static_cast<std::int64_t>(machine_.random_.below(slow ? 8'000'000 : 60'000));
  co_await env_.sleep(Duration(us));
}

Task<Result<std::vector<SandboxStatus>>> SimRuntime::start(
    std::function<void(RuntimeEvent)> on_event) {
  // In the agent's process, which may be dead or stopped by then.
  machine_.watcher_ = [this, on_event = std::move(on_event)](RuntimeEvent event) {
    env_.post([on_event, event = std::move(event)] { on_event(event); });
  };
  std::vector<SandboxStatus> out;
  for (const auto& [id, sandbox] : machine_.sandboxes_) {
    SandboxStatus status{id, sandbox.address, true, {}};
    for (const auto& [name, container] : sandbox.containers)
      status.containers.push_back(container.status);
    // The last attempt of a container is the one that counts.
    std::stable_sort(status.containers.begin(),
                     status.containers.end(),
                     [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
    out.push_back(std::move(status));
  }
  machine_.counts_.adopted += out.size();
  co_return out;
}

Task<void> SimRuntime::stop(bool) {
  machine_.watcher_ = nullptr;
  co_return;
}

Task<Result<SandboxStatus>> SimRuntime::run_sandbox(SandboxConfig config) {
  co_await take_time();
  if (troubled()) {
    ++machine_.counts_.sandboxes_refused;
    co_return fail(Code::kInternal, "no network for it");
  }
  Machine::Sandbox& made = machine_.sandboxes_[config.id];
  made = {};
  const std::uint64_t number = ++machine_.addresses_;
  made.address = fmt::format("10.1.{}.{}", number / 250 % 250, number % 250 + 1);
  made.pod = config.pod_namespace + "/" + config.pod_name;
  SandboxStatus status{config.id, made.address, true, {}};
  co_await take_time();
  co_return status;
}

Task<Result<void>> SimRuntime::remove_sandbox(std::string sandbox_id) {
  co_await take_time();
  machine_.sandboxes_.erase(sandbox_id);
  co_await take_time();
  co_return Result<void>();
}

Task<Result<ContainerStatus>> SimRuntime::start_container(std::string sandbox_id,
                                                          ContainerConfig config) {
  co_await take_time();
  const auto sandbox = machine_.sandboxes_.find(sandbox_id);
  if (sandbox == machine_.sandboxes_.end()) co_return fail(gone("sandbox " + sandbox_id));
  if (troubled()) {
    ++machine_.counts_.starts_failed;
    co_return fail(Code::kInternal, "no room for its files");
  }
  Machine::Container made;
  made.run = ++machine_.runs_;
  made.begun = machine_.world_.now();
  made.status.id = config.id;
  made.status.name = config.name;
  made.status.attempt = config.attempt;
  made.status.created = made.status.started = env_.now();
  made.status.state = ContainerState::kRunning;
  made.program = program_of_(sandbox->second.pod, config.name);
  const Machine::Program program = made.program;
  sandbox->second.containers[config.id] = std::move(made);
  if (program.lasts) machine_.end_later(sandbox_id, config.id, *program.lasts, program.exit_code);
  co_await take_time();
  // It may have ended meanwhile, or all of it may be gone.
  const auto still = machine_.sandboxes_.find(sandbox_id);
  if (still == machine_.sandboxes_.end()) co_return fail(gone("sandbox " + sandbox_id));
  co_return still->second.containers[config.id].status;
}

Task<Result<void>> SimRuntime::stop_container(std::string sandbox_id,
                                              std::string container_id,
                                              Duration grace) {
  co_await take_time();
  const auto sandbox = machine_.sandboxes_.find(sandbox_id);
  if (sandbox == machine_.sandboxes_.end()) co_return Result<void>();
  const auto found = sandbox->second.containers.find(container_id);
  if (found == sandbox->second.containers.end()) co_return Result<void>();
  const Duration wanted = found->second.program.stops;
  machine_.end_later(
      sandbox_id, container_id, std::min(wanted, grace), wanted <= grace ? kTerminated : kKilled);
  co_return Result<void>();
}

Task<Result<void>> SimRuntime::update_limits(std::string, std::string, Limits) {
  co_return Result<void>();
}

Task<Result<std::unique_ptr<Session>>> SimRuntime::exec(std::string, std::string, ExecConfig) {
  co_return fail(gone("exec"));
}

Task<Result<std::unique_ptr<Session>>> SimRuntime::attach(std::string, std::string, ExecConfig) {
  co_return fail(gone("attach"));
}

Task<Result<std::unique_ptr<net::ByteStream>>> SimRuntime::connect(std::string, int) {
  co_return fail(gone("a port"));
}

Task<Result<std::map<std::string, Usage>>> SimRuntime::usage(std::string) {
  co_return std::map<std::string, Usage>();
}

Task<Result<void>> SimRuntime::set_virtual_ports(std::vector<VirtualPort>) {
  co_return Result<void>();
}

Task<Result<void>> SimRuntime::set_fences(std::vector<Fence>) { co_return Result<void>(); }

// -------------------------------------------------------------------------------------- its images

Task<Result<std::optional<image::StoredImage>>> SimImages::find(std::string name) {
  co_await env_.sleep(std::chrono::milliseconds(1));
  std::optional<image::StoredImage> out;
  if (machine_.images_.contains(name)) {
    out.emplace();
    out->id = "sha256:" + name;
    out->repo_tags = {name};
    out->size_bytes = 1 << 20;
  }
  co_return out;
}

Task<Result<image::LoadedImage>> SimImages::load(image::StoredImage stored) {
  if (!machine_.images_.contains(stored.repo_tags.at(0))) co_return fail(gone("image"));
  image::LoadedImage out;
  out.config.command = {"/program"};
  out.layers = {machine_.directory()};
  out.stored = std::move(stored);
  co_return out;
}

Task<Result<void>> SimImages::pull(std::string name, image::Login) {
  ++machine_.counts_.pulls;
  co_await env_.sleep(Duration(static_cast<std::int64_t>(machine_.random_.below(20'000'000))));
  if (!machine_.registry_ || machine_.random_.below(1000) < machine_.trouble_) {
    ++machine_.counts_.pulls_failed;
    co_return fail(Code::kUnavailable, "RegistryUnavailable: connection refused");
  }
  machine_.images_.insert(name);
  co_return Result<void>();
}

Task<Result<std::vector<image::Download>>> SimImages::downloads() {
  co_return std::vector<image::Download>();
}

Task<void> SimImages::wait_ready() { co_return; }

}  // namespace muster::bottle
