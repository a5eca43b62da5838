#include "agent/runtimes.h"

namespace muster::agent {

Task<Result<std::vector<SandboxStatus>>> Runtimes::add_cri(std::unique_ptr<Runtime> cri) {
  adding_ = true;
  const auto alive = alive_;
  auto found = co_await cri->start(on_event_);
  if (!*alive) co_return fail(Code::kUnavailable, "the agent ends");
  adding_ = false;
  if (found) cri_ = std::move(cri);
  added_->notify();
  if (!found) co_return found;
  for (const auto& sandbox : *found) under_cri_.insert(sandbox.id);
  co_return found;
}

std::string Runtimes::version() const {
  return cri_ && prefers_cri_ ? cri_->version() : process_->version();
}

std::vector<std::string> Runtimes::shortcomings() const {
  auto out = process_->shortcomings();
  if (cri_) {
    for (auto& line : cri_->shortcomings()) out.push_back(std::move(line));
  }
  return out;
}

Task<Result<std::vector<SandboxStatus>>> Runtimes::start(
    std::function<void(RuntimeEvent)> on_event) {
  on_event_ = std::move(on_event);
  return process_->start(on_event_);
}

Task<void> Runtimes::stop(bool clean) {
  *alive_ = false;
  if (cri_) co_await cri_->stop(clean);
  co_await process_->stop(clean);
}

Task<Result<SandboxStatus>> Runtimes::run_sandbox(SandboxConfig config) {
  if (!config.under_cri) {
    auto made = co_await process_->run_sandbox(std::move(config));
    co_return made;
  }
  while (adding_) co_await added_->wait(Duration::zero());
  if (!cri_)
    co_return fail(
        Code::kUnavailable,
        "there is no container runtime on this node; start muster with --runtime cri, or "
        "with --image-source containerd where runc is installed");
  const auto id = config.id;
  under_cri_.insert(id);
  auto made = co_await cri_->run_sandbox(std::move(config));
  if (!made) under_cri_.erase(id);
  co_return made;
}

Task<Result<void>> Runtimes::remove_sandbox(std::string sandbox_id) {
  auto removed = co_await of(sandbox_id).remove_sandbox(sandbox_id);
  if (removed) under_cri_.erase(sandbox_id);
  co_return removed;
}

Task<Result<ContainerStatus>> Runtimes::start_container(std::string sandbox_id,
                                                        ContainerConfig config) {
  auto& runtime = of(sandbox_id);
  return runtime.start_container(std::move(sandbox_id), std::move(config));
}

Task<Result<void>> Runtimes::stop_container(std::string sandbox_id,
                                            std::string container_id,
                                            Duration grace) {
  auto& runtime = of(sandbox_id);
  return runtime.stop_container(std::move(sandbox_id), std::move(container_id), grace);
}

Task<Result<void>> Runtimes::update_limits(std::string sandbox_id,
                                           std::string container_id,
                                           Limits limits) {
  auto& runtime = of(sandbox_id);
  return runtime.update_limits(std::move(sandbox_id), std::move(container_id), limits);
}

Task<Result<std::unique_ptr<Session>>> Runtimes::exec(std::string sandbox_id,
                                                      std::string container_id,
                                                      ExecConfig config) {
  auto& runtime = of(sandbox_id);
  return runtime.exec(std::move(sandbox_id), std::move(container_id), std::move(config));
}

Task<Result<std::unique_ptr<Session>>> Runtimes::attach(std::string sandbox_id,
                                                        std::string container_id,
                                                        ExecConfig config) {
  auto& runtime = of(sandbox_id);
  return runtime.attach(std::move(sandbox_id), std::move(container_id), std::move(config));
}

Task<Result<std::unique_ptr<net::ByteStream>>> Runtimes::connect(std::string sandbox_id, int port) {
  auto& runtime = of(sandbox_id);
  return runtime.connect(std::move(sandbox_id), port);
}

Task<Result<std::map<std::string, Usage>>> Runtimes::usage(std::string sandbox_id) {
  auto& runtime = of(sandbox_id);
  return runtime.usage(std::move(sandbox_id));
}

Task<Result<void>> Runtimes::set_virtual_ports(std::vector<VirtualPort> ports) {
  return process_->set_virtual_ports(std::move(ports));
}

Task<Result<void>> Runtimes::set_fences(std::vector<Fence> fences) {
  return process_->set_fences(std::move(fences));
}

}  // namespace muster::agent
