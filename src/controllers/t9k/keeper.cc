#include "controllers/t9k/keeper.h"

#include <fmt/core.h>

#include "base/log.h"
#include "kube/names.h"

namespace muster::controllers::t9k {
namespace {

/// An owner has so long to end its pods before it is told again.
constexpr Duration kPatience = std::chrono::minutes(1);
constexpr std::size_t kToldMax = 10'000;

client::Resource resource_of_stop(const Stop& stop) {
  const auto slash = stop.api_version.find('/');
  return {stop.api_version.substr(0, slash),
          stop.api_version.substr(slash + 1),
          stop.plural,
          stop.kind,
          true};
}

json::Value named(const Stop& stop, const std::string& ns) {
  return json::Object{{"apiVersion", stop.api_version},
                      {"kind", stop.kind},
                      {"metadata",
                       json::Object{{"name", stop.name},
                                    {"namespace", ns},
                                    {"uid", stop.kind == "Deployment" ? "" : stop.uid}}}};
}

}  // namespace

Keeper::Keeper(Env& env, client::Client& client, client::Informers& informers, Caches& caches)
    : env_(env),
      client_(client),
      caches_(caches),
      queues_(informers.get(client::resources::kT9kQueues)),
      events_(client::make_event_recorder(env, client, "duration-keeper", "")) {
  work_ = client::make_work_queue(
      env, [this](std::string key) { return work(std::move(key)); }, client::WorkQueueOptions{});
  caches_.on_change(kinds::kPod, [this](const auto& old_object, const auto& new_object) {
    pod_changed(old_object, new_object);
  });
  client::InformerHandlers queues;
  queues.on_change = [this](const client::ObjectPtr& old_object,
                            const client::ObjectPtr& new_object) {
    const auto found = pods_.find(name_of(new_object ? *new_object : *old_object));
    if (found == pods_.end()) return;
    for (const std::string& key : found->second) work_->add(key);
  };
  queues_.add_handlers(std::move(queues));
}

void Keeper::pod_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object) {
  const auto before = old_object ? queue_of(*old_object) : "";
  const auto after = new_object ? queue_of(*new_object) : "";
  if (before == after) return;
  const auto key = client::key_of(new_object ? *new_object : *old_object);
  if (const auto found = pods_.find(before); found != pods_.end()) {
    found->second.erase(key);
    if (found->second.empty()) pods_.erase(found);
  }
  if (after.empty()) return;
  pods_[after].insert(key);
  work_->add(key);
}

client::ObjectPtr Keeper::find_queue(const std::string& name) const {
  return queues_.find("t9k-system/" + name);
}

Task<Result<void>> Keeper::work(std::string key) {
  const auto pod = caches_.find(kinds::kPod, key);
  const auto name = pod ? queue_of(*pod) : "";
  const auto queue = name.empty() ? nullptr : find_queue(name);
  if (!queue) co_return Result<void>{};
  const auto over = time_over(*pod, *queue);
  if (!over) co_return Result<void>{};
  if (env_.now() < *over) {
    work_->add_after(key, *over - env_.now());
    co_return Result<void>{};
  }
  const auto ended = co_await end(pod, name);
  if (ended) work_->add_after(key, kPatience);
  co_return ended;
}

Task<Result<void>> Keeper::end(client::ObjectPtr pod, std::string queue) {
  const auto ns = namespace_of(*pod);
  const auto message = fmt::format(
      "pod {} has been in queue {} for longer than its maxDuration", name_of(*pod), queue);
  const auto stop = stop_of_owner(*pod);
  if (!stop) {
    client::DeleteOptions options;
    options.uid = uid_of(*pod);
    const auto gone =
        co_await client_.remove(client::resources::kPods, ns, name_of(*pod), std::move(options));
    if (!gone && gone.error().code != Code::kNotFound && gone.error().code != Code::kConflict)
      co_return gone;
    events_->record(*pod, "Warning", "MaxDurationExceeded", message);
    log::info("controllers", "{}: the pod is deleted", message);
    co_return Result<void>{};
  }
  if (const auto told = told_.find(stop->uid);
      told != told_.end() && env_.now() - told->second < kPatience)
    co_return Result<void>{};
  if (told_.size() >= kToldMax) told_.clear();
  told_[stop->uid] = env_.now();
  const auto patched = co_await client_.patch(resource_of_stop(*stop),
                                              ns,
                                              stop->name,
                                              "",
                                              client::PatchType::kMerge,
                                              stop->patch,
                                              client::Answer::kNone);
  if (!patched && patched.error().code != Code::kNotFound) {
    told_.erase(stop->uid);
    co_return fail(patched.error());
  }
  events_->record(named(*stop, ns), "Warning", "MaxDurationExceeded", message);
  log::info("controllers", "{}: {} {}/{} is stopped", message, stop->kind, ns, stop->name);
  co_return Result<void>{};
}

Task<void> Keeper::stop() {
  co_await work_->stop();
  co_await events_->flush();
}

}  // namespace muster::controllers::t9k
