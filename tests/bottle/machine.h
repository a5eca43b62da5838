/// The machine that pods run on in some seeds: what containers do, in virtual time, and whether their
/// images can be had.
///
/// It is there whatever becomes of the agent: containers run on while no agent looks, and the next one
/// finds them. Only lost power ends them all. A container lasts as long as its pod's annotations say
/// for hollow nodes; agents see it through SimRuntime and SimImages.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/image/pulls.h"
#include "agent/runtime.h"
#include "base/random.h"
#include "sim_env.h"

namespace muster::bottle {

class Machine {
 public:
  /// What the program of a container does.
  struct Program {
    std::optional<Duration> lasts;  // absent: for ever
    Duration stops{};               // when asked to
    int exit_code = 0;
  };
  struct Counts {
    std::uint64_t sandboxes_refused = 0, starts_failed = 0, pulls = 0, pulls_failed = 0, killed = 0,
                  sandboxes_lost = 0, adopted = 0;
  };

  /// `directory`: a folder of the real disk for the small files of pods.
  Machine(SimWorld& world, std::uint64_t seed, std::string directory);

  // What goes wrong.
  void lose_power();
  /// Something of it at random; what it was, or "" if nothing runs.
  std::string break_something();
  void set_registry(bool there) { registry_ = there; }
  [[nodiscard]] bool registry() const { return registry_; }
  /// So many of 1000 sandboxes and containers do not start.
  void set_trouble(std::uint64_t per_mille) { trouble_ = per_mille; }
  void forget_images() { images_.clear(); }

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  friend class SimRuntime;
  friend class SimImages;
  struct Container {
    agent::ContainerStatus status;
    Program program;
    Time begun;             // by the world's clock
    std::uint64_t run = 0;  // tells its end from that of another one
  };
  struct Sandbox {
    std::string pod;  // its key
    std::string address;
    std::map<std::string, Container> containers;  // by id
  };
  void end(const std::string& sandbox, const std::string& container, int code, const char* reason);
  void end_later(const std::string& sandbox, const std::string& container, Duration span, int code);
  void tell(agent::RuntimeEvent event) {
    if (watcher_) watcher_(std::move(event));
  }

  SimWorld& world_;
  SimEnv env_;  // of what runs; never crashes
  Random random_;
  const std::string directory_;
  std::map<std::string, Sandbox> sandboxes_;  // by id
  std::set<std::string> images_;
  std::function<void(agent::RuntimeEvent)> watcher_;
  bool registry_ = true;
  std::uint64_t trouble_ = 0;
  std::uint64_t runs_ = 0, addresses_ = 0;
  Counts counts_;
};

/// An agent's view of it.
class SimRuntime final : public agent::Runtime {
 public:
  using ProgramOf = std::function<Machine::Program(const std::string& pod_key,
                                                   const std::string& container_name)>;
  SimRuntime(SimEnv& env, Machine& machine, ProgramOf program_of)
      : env_(env), machine_(machine), program_of_(std::move(program_of)) {}

  [[nodiscard]] std::string version() const override { return "simulated://1"; }
  [[nodiscard]] std::string id_scheme(const std::string&) const override { return "simulated"; }
  [[nodiscard]] std::vector<std::string> shortcomings() const override { return {}; }
  Task<Result<std::vector<agent::SandboxStatus>>> start(
      std::function<void(agent::RuntimeEvent)> on_event) override;
  Task<void> stop(bool clean) override;
  Task<Result<agent::SandboxStatus>> run_sandbox(agent::SandboxConfig config) override;
  Task<Result<void>> remove_sandbox(std::string sandbox_id) override;
  Task<Result<agent::ContainerStatus>> start_container(std::string sandbox_id,
                                                       agent::ContainerConfig config) override;
  Task<Result<void>> stop_container(std::string sandbox_id,
                                    std::string container_id,
                                    Duration grace) override;
  Task<Result<void>> update_limits(std::string, std::string, agent::Limits) override;
  Task<Result<std::unique_ptr<agent::Session>>> exec(std::string,
                                                     std::string,
                                                     agent::ExecConfig) override;
  Task<Result<std::unique_ptr<agent::Session>>> attach(std::string,
                                                       std::string,
                                                       agent::ExecConfig) override;
  Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string, int) override;
  Task<Result<std::map<std::string, agent::Usage>>> usage(std::string sandbox_id) override;
  [[nodiscard]] std::string gateway() const override { return ""; }
  [[nodiscard]] bool hides_devices() const override { return false; }
  [[nodiscard]] bool translates_addresses() const override { return false; }
  Task<Result<void>> set_virtual_ports(std::vector<agent::VirtualPort>) override;
  Task<Result<void>> set_fences(std::vector<agent::Fence>) override;

 private:
  Task<void> take_time();
  [[nodiscard]] bool troubled() { return machine_.random_.below(1000) < machine_.trouble_; }

  SimEnv& env_;
  Machine& machine_;
  ProgramOf program_of_;
};

/// Its images: pulled from a registry that is not always there.
class SimImages final : public agent::image::PulledImages, public agent::image::Source {
 public:
  SimImages(SimEnv& env, Machine& machine)
      : env_(env), machine_(machine), pulls_(env, *this, {machine.directory(), 3, {}}) {}

  Task<Result<std::optional<agent::image::StoredImage>>> find(std::string name) override;
  Task<Result<agent::image::LoadedImage>> load(agent::image::StoredImage image) override;
  Task<Result<void>> pull(std::string name, agent::image::Login login) override;
  Task<Result<std::vector<agent::image::Download>>> downloads() override;

  Task<void> wait_ready() override;
  agent::image::Pulls& pulls() override { return pulls_; }
  [[nodiscard]] const json::Array& node_images() const override { return none_; }

 private:
  SimEnv& env_;
  Machine& machine_;
  agent::image::Pulls pulls_;
  json::Array none_;
};

}  // namespace muster::bottle
