#include "agent/pod/pod_workers.h"

#include <filesystem>

#include "agent/files.h"
#include "base/log.h"
#include "kube/meta.h"

namespace muster::agent {

namespace fs = std::filesystem;

constexpr int kKilledCode = 137;

void PodWorkers::adopt(std::vector<SandboxStatus> found) {
  for (auto& sandbox : found) {
    // Before any pod that is new asks for some.
    context_.gpus.restore(sandbox.id,
                          read_file(gpu_file(pod_directories(context_.directory, sandbox.id))));
    adopted_[sandbox.id] = std::move(sandbox);
  }
}

void PodWorkers::update(const client::ObjectPtr& pod) {
  const std::string uid(kube::uid_of(*pod));
  if (const auto worker = find(uid); worker) {
    worker->update(pod);
    return;
  }
  std::optional<SandboxStatus> adopted;
  if (const auto known = adopted_.find(uid); known != adopted_.end()) {
    adopted = std::move(known->second);
    adopted_.erase(known);
  }
  auto worker = std::make_shared<PodWorker>(
      context_, pod, std::move(adopted), [this](const std::string& done) {
        workers_.erase(done);
        on_gone_();
      });
  workers_[uid] = worker;
  worker->start();
}

void PodWorkers::removed(const std::string& uid) {
  if (const auto worker = find(uid); worker) worker->removed();
}

void apply(const RuntimeEvent& event, Time now, SandboxStatus& found) {
  if (event.container_id.empty()) {
    found.alive = false;
    for (ContainerStatus& container : found.containers) {
      if (container.state != ContainerState::kRunning) continue;
      container.state = ContainerState::kExited;
      container.exit_code = kKilledCode;
      container.reason = "Error";
      container.finished = now;
    }
    return;
  }
  for (ContainerStatus& container : found.containers) {
    if (container.id == event.container_id) container = event.status;
  }
}

void PodWorkers::on_event(const RuntimeEvent& event) {
  if (const auto worker = find(event.sandbox_id); worker) {
    worker->on_event(event);
  } else if (const auto known = adopted_.find(event.sandbox_id); known != adopted_.end()) {
    apply(event, context_.loop.now(), known->second);
  }
}

void PodWorkers::object_changed(const std::string& kind, const json::Value& object) {
  const ObjectRef ref(kind, std::string(kube::name_of(object)));
  for (const auto& [uid, worker] : workers_) {
    if (kube::namespace_of(*worker->pod()) == kube::namespace_of(object))
      worker->object_changed(ref);
  }
}

Task<void> PodWorkers::remove_orphans() {
  const auto orphans = std::move(adopted_);
  adopted_.clear();
  for (const auto& [uid, sandbox] : orphans) {
    log::info("agent", "pod {} is gone from the API; its processes are stopped", uid);
    (void)co_await context_.runtime.remove_sandbox(uid);
    context_.gpus.release(uid);
  }
  // Listed first and looked up then: what a pod makes that comes meanwhile is not in the list.
  std::vector<fs::path> found;
  const auto base = context_.directory;
  const auto list = [&found, base] {
    for (const auto* place : {"/pods", "/run"}) {
      std::error_code error;
      for (fs::directory_iterator item(base + place, error), end; !error && item != end;
           item.increment(error))
        found.push_back(item->path());
    }
  };
  co_await context_.loop.run_on_worker(list);
  std::erase_if(found, [this](const fs::path& path) {
    const auto name = path.filename().string();
    return workers_.contains(name.substr(0, name.find('.')));  // see root_folder
  });
  const auto remove = [&found] {
    std::error_code ignored;
    for (const fs::path& path : found) fs::remove_all(path, ignored);
  };
  co_await context_.loop.run_on_worker(remove);
}

Task<void> PodWorkers::settle(Duration limit) {
  const auto deadline = context_.loop.monotonic() + limit;
  for (const auto& worker : all()) co_await worker->say_until(deadline);
}

std::vector<std::string> PodWorkers::detach_all() {
  std::vector<std::string> out;
  const auto workers = std::move(workers_);
  workers_.clear();
  for (const auto& [uid, worker] : workers) {
    worker->detach();
    out.push_back(uid);
  }
  return out;
}

std::shared_ptr<PodWorker> PodWorkers::find(const std::string& uid) const {
  const auto found = workers_.find(uid);
  return found == workers_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<PodWorker>> PodWorkers::all() const {
  std::vector<std::shared_ptr<PodWorker>> out;
  for (const auto& [uid, worker] : workers_) out.push_back(worker);
  return out;
}

}  // namespace muster::agent
