/// Two runtimes as one: pods are processes of ours, or belong to a container runtime, as each one's
/// configuration says. The machine's network, names and services are the process runtime's for
/// both.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/runtime.h"

namespace muster::agent {

class Runtimes final : public Runtime {
 public:
  Runtimes(Env& env, std::unique_ptr<Runtime> process)
      : process_(std::move(process)), added_(env.make_signal()) {}

  /// From now on there is a container runtime, too. What it found running, as start() tells it.
  Task<Result<std::vector<SandboxStatus>>> add_cri(std::unique_ptr<Runtime> cri);
  [[nodiscard]] bool has_cri() const { return cri_ != nullptr; }
  /// The node's version is that of the runtime which most pods have.
  void prefer_cri() { prefers_cri_ = true; }

  [[nodiscard]] std::string version() const override;
  [[nodiscard]] std::string id_scheme(const std::string& sandbox_id) const override {
    return under_cri_.contains(sandbox_id) ? cri_->id_scheme(sandbox_id)
                                           : process_->id_scheme(sandbox_id);
  }
  [[nodiscard]] std::vector<std::string> shortcomings() const override;
  Task<Result<std::vector<SandboxStatus>>> start(
      std::function<void(RuntimeEvent)> on_event) override;
  Task<void> stop(bool clean) override;
  Task<Result<SandboxStatus>> run_sandbox(SandboxConfig config) override;
  Task<Result<void>> remove_sandbox(std::string sandbox_id) override;
  Task<Result<ContainerStatus>> start_container(std::string sandbox_id,
                                                ContainerConfig config) override;
  Task<Result<void>> stop_container(std::string sandbox_id,
                                    std::string container_id,
                                    Duration grace) override;
  Task<Result<void>> update_limits(std::string sandbox_id,
                                   std::string container_id,
                                   Limits limits) override;
  Task<Result<std::unique_ptr<Session>>> exec(std::string sandbox_id,
                                              std::string container_id,
                                              ExecConfig config) override;
  Task<Result<std::unique_ptr<Session>>> attach(std::string sandbox_id,
                                                std::string container_id,
                                                ExecConfig config) override;
  Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string sandbox_id, int port) override;
  Task<Result<std::map<std::string, Usage>>> usage(std::string sandbox_id) override;
  [[nodiscard]] std::string gateway() const override { return process_->gateway(); }
  [[nodiscard]] bool hides_devices() const override { return process_->hides_devices(); }
  [[nodiscard]] bool translates_addresses() const override {
    return process_->translates_addresses();
  }
  Task<Result<void>> set_virtual_ports(std::vector<VirtualPort> ports) override;
  Task<Result<void>> set_fences(std::vector<Fence> fences) override;

 private:
  Runtime& of(const std::string& sandbox_id) {
    return under_cri_.contains(sandbox_id) ? *cri_ : *process_;
  }

  std::unique_ptr<Runtime> process_;
  std::unique_ptr<Runtime> cri_;     // null: none
  std::set<std::string> under_cri_;  // sandboxes that are its
  std::function<void(RuntimeEvent)> on_event_;
  bool adding_ = false;            // somebody waits for its first answer
  std::unique_ptr<Signal> added_;  // or it is known that there is none
  bool prefers_cri_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // outlives us in add_cri()
};

}  // namespace muster::agent
