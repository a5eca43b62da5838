#include "controllers/common/frame.h"

#include <algorithm>

#include "base/log.h"
#include "base/pace.h"
#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/ssh_key.h"
#include "controllers/common/workload.h"

namespace muster::controllers {
namespace {

constexpr std::size_t kMostAtOnce = 64;
constexpr auto kCacheLagMost = std::chrono::seconds(30);
constexpr auto kQuickPlan = std::chrono::milliseconds(5);
constexpr int kRestFactor = 4;
/// A plan beside the loop is made again when it asked for what its snapshot did not have; if it never
/// has enough, it is made on the loop.
constexpr int kRoundsMost = 4;
constexpr std::size_t kAskedMost = 256;

std::int64_t version_of(const json::Value& object) {
  return parse_int(json::string_at(object, "metadata", "resourceVersion")).value_or(0);
}

bool same_for_placement(const json::Value& a, const json::Value& b) {
  return json::equal(json::at(a, "metadata", "labels"), json::at(b, "metadata", "labels")) &&
         json::equal(json::at(a, "spec"), json::at(b, "spec"));
}

/// Whether the job asks for so many pods that its first plan could be a long one.
bool asks_for_many(const json::Value& value, int depth = 0) {
  constexpr int kDepthMost = 4;
  constexpr std::int64_t kMany = 200;
  if (depth > kDepthMost) return false;
  if (value.is_array()) {
    const auto& items = value.get_array();
    return std::any_of(items.begin(), items.end(), [&](const json::Value& each) {
      return asks_for_many(each, depth + 1);
    });
  }
  if (!value.is_object()) return false;
  for (const auto& member : value.get_object()) {
    const std::string_view key = member.key();
    if (key == "replicas" || key == "parallelism" || key == "taskNumber") {
      if (json::as_int(member.value()) > kMany) return true;
    } else if (key != "template" && asks_for_many(member.value(), depth + 1)) {
      return true;
    }
  }
  return false;
}

/// The job with its kind, which objects of some servers' lists come without.
client::ObjectPtr complete(client::ObjectPtr object, const client::Resource& resource) {
  if (json::string_at(*object, "kind") == resource.kind &&
      json::string_at(*object, "apiVersion") == resource.api_version())
    return object;
  json::Value job = *object;
  job.as_object()["apiVersion"] = resource.api_version();
  job.as_object()["kind"] = resource.kind;
  return std::make_shared<const json::Value>(std::move(job));
}

/// To take a hundred thousand trees apart takes longer than others should wait: it is done on a
/// worker.
template <typename Large>
void let_go(Env& env, Large large) {
  env.offload([kept = std::make_shared<Large>(std::move(large))] {}, [] {});
}

constexpr std::size_t kManyActions = 1000;

/// The job with another status; without a copy of the former one, which may be long.
json::Value with_status(const json::Value& job, const json::Value& status) {
  json::Object object;
  for (const auto& member : job.get_object()) {
    if (member.key() != "status") object[member.key()] = member.value();
  }
  object["status"] = status;
  return json::Value(std::move(object));
}

/// How many of the actions from `first` on are of one kind and verb, at most `most`.
std::size_t run_length(const std::vector<Action>& actions, std::size_t first, std::size_t most) {
  std::size_t n = 1;
  while (first + n < actions.size() && n < most && actions[first + n].verb == actions[first].verb &&
         actions[first + n].kind == actions[first].kind)
    ++n;
  return n;
}

}  // namespace

Frame::Frame(Deps deps, Kind kind, int workers)
    : deps_(deps), kind_(std::move(kind)), jobs_(deps.informers.get(kind_.resource)) {
  client::WorkQueueOptions options;
  options.workers = workers;
  queue_ = client::make_work_queue(
      deps_.env, [this](std::string key) { return work(std::move(key)); }, options);
  for (const auto each : kind_.looks_at) deps_.caches.follow(each);
  deps_.caches.wake_owner(kind_.resource.group,
                          kind_.resource.kind,
                          [this](const std::string& key) { queue_->add(key); });
  if (kind_.follows_nodes) {
    deps_.caches.on_change(
        kinds::kNode, [this](const client::ObjectPtr& old_node, const client::ObjectPtr& new_node) {
          if (old_node && new_node && same_for_placement(*old_node, *new_node)) return;
          for (const auto& [key, object] : jobs_.objects()) queue_->add(key);
        });
  }
  client::InformerHandlers handlers;
  handlers.on_change = [this](const client::ObjectPtr& old_object,
                              const client::ObjectPtr& new_object) {
    queue_->add(client::key_of(new_object ? *new_object : *old_object));
  };
  jobs_.add_handlers(std::move(handlers));
}

void Frame::start() { queue_->start(); }

Task<void> Frame::stop() { co_await queue_->stop(); }

void Frame::record(const json::Value& job, const Event& event) {
  deps_.events.record(job, event.warning ? "Warning" : "Normal", event.reason, event.message);
}

bool Frame::seen(const Written& written) const {
  const auto object =
      written.kind.empty() ? jobs_.find(written.key) : deps_.caches.find(written.kind, written.key);
  if (written.deleted) return !object || uid_of(*object) != written.uid || is_deleting(*object);
  return object && version_of(*object) >= written.version;
}

Task<Result<void>> Frame::work(std::string key) {
  const auto object = jobs_.find(key);
  if (!object) {
    states_.erase(key);
    co_return Result<void>{};
  }
  const client::ObjectPtr whole = complete(object, kind_.resource);
  const json::Value& job = *whole;
  if (kind_.accepts && !kind_.accepts(job)) co_return Result<void>{};
  auto& state = states_[key];
  if (const auto uid = uid_of(job); state.uid != uid) {
    state.uid = uid;
    state.comebacks = {};
    state.last_error.clear();
  }
  const auto now = deps_.env.now();
  if (now < state.not_before) {
    queue_->add_after(key, state.not_before - now);
    co_return Result<void>{};
  }
  // From the newest: while that one is missing the rest need not be looked at, and waiting costs
  // nothing.
  Pace pace(deps_.env, 64);
  bool rested = false;
  while (!state.written.empty() && seen(state.written.back())) {
    state.written.pop_back();
    if (!pace.over()) continue;
    co_await pace.rest();
    rested = true;
  }
  if (rested) {  // the job may be another one by now
    queue_->add(key);
    co_return Result<void>{};
  }
  if (!state.written.empty()) {
    if (now < state.give_up) {
      queue_->add_after(key, state.give_up - now);
      co_return Result<void>{};
    }
    log::warn("controllers",
              "{} {}: the cache has not shown {} of its own writes for {} s, going on without",
              kind_.name,
              key,
              state.written.size(),
              kCacheLagMost.count());
    state.written.clear();
  }
  const bool beside = state.long_plan || asks_for_many(json::at(job, "spec"));
  std::unique_ptr<Snapshot> snapshot;
  Plan plan;
  Duration took{};
  const auto make = [&](const View& view) {
    const auto begun = deps_.env.monotonic();
    plan = kind_.plan(job, view, deps_.settings, now);
    took += deps_.env.monotonic() - begun;
  };
  if (beside) {
    snapshot =
        std::make_unique<Snapshot>(deps_.caches, job, state.last_error, std::move(state.asked));
    for (int round = 0; round < kRoundsMost; ++round) {
      if (round > 0) snapshot->fetch();
      std::function<void()> work = [&] { make(*snapshot); };
      co_await deps_.env.run_on_worker(std::move(work));
      if (snapshot->complete()) break;
    }
    // Names of what is still to be made are asked for once.
    if (snapshot->asked().size() <= kAskedMost) state.asked = snapshot->asked();
  }
  const CacheView cached(deps_.caches, namespace_of(job), state.last_error);
  const bool known = snapshot && snapshot->complete();
  const View& view = known ? static_cast<const View&>(*snapshot) : cached;
  if (!known) make(view);
  // A job of thousands of pods changes thousands of times in a row: it may take a fifth of a
  // worker, not all of it, and of the loop nothing.
  state.long_plan = took > kQuickPlan;
  if (state.long_plan) state.not_before = now + kRestFactor * took;
  if (const auto due = state.comebacks.hold_back(plan, view, now))
    queue_->add_after(key, *due - now);
  if (beside) let_go(deps_.env, std::move(snapshot));
  if (plan.requeue_after)
    queue_->add_after(key, std::max<Duration>(*plan.requeue_after, std::chrono::milliseconds(10)));

  auto applied = co_await apply(whole, std::move(plan.actions), key);
  for (const auto& event : plan.events) record(job, event);
  auto& after = states_[key];
  if (applied && !plan.error.empty()) applied = fail(Code::kConflict, plan.error);
  after.last_error = applied ? "" : applied.error().message;
  if (plan.status && (applied || plan.status_anyway)) {
    const auto written = co_await write_status(whole, std::move(*plan.status), key, beside);
    if (!written && applied) applied = written;
  }
  if (!applied) co_return applied;
  const auto ns = namespace_of(job), name = name_of(job);
  if (plan.job_patch) {
    const auto patched = co_await deps_.client.patch(
        kind_.resource, ns, name, "", client::PatchType::kMerge, *plan.job_patch);
    if (!patched) co_return fail(patched.error());
  }
  if (plan.delete_job) {
    client::DeleteOptions options;
    options.uid = uid_of(job);
    const auto removed = co_await deps_.client.remove(kind_.resource, ns, name, options);
    if (!removed && removed.error().code != Code::kNotFound) co_return removed;
  }
  co_return Result<void>{};
}

Task<Result<void>> Frame::apply(client::ObjectPtr job,
                                std::vector<Action> actions,
                                std::string key) {
  std::size_t most = 1;
  std::optional<Error> refused;
  for (std::size_t first = 0; first < actions.size();) {
    // Ever more side by side: when the server refuses the first, it is not asked a thousand times.
    const auto count = run_length(actions, first, most);
    const auto batch = std::make_shared<Batch>();
    batch->left = count;
    batch->done = deps_.env.make_signal();
    for (std::size_t i = first; i < first + count; ++i)
      deps_.env.spawn(apply_one(job, std::move(actions[i]), batch));
    while (batch->left > 0) co_await batch->done->wait(Duration::zero());
    auto& state = states_[key];
    state.written.insert(state.written.end(), batch->written.begin(), batch->written.end());
    state.give_up = deps_.env.now() + kCacheLagMost;
    refused = batch->error;
    if (refused) break;
    first += count;
    most = std::min(kMostAtOnce, most * 2);
  }
  if (actions.size() >= kManyActions) let_go(deps_.env, std::move(actions));
  if (refused) co_return fail(*refused);
  co_return Result<void>{};
}

Task<void> Frame::apply_one(client::ObjectPtr whole, Action action, std::shared_ptr<Batch> batch) {
  const json::Value& job = *whole;
  const auto& resource = resource_of(action.kind);
  const auto ns = namespace_of(job);
  Result<json::Value> answer = json::Value();
  if (action.with_ssh_key) {
    const auto key = make_ssh_key();
    if (key) {
      auto& data = json::make_object(action.body, {"data"});
      data["ssh-privatekey"] = base64_encode(key->private_pem);
      data["ssh-publickey"] = base64_encode(key->public_line);
    } else {
      answer = fail(key.error());
    }
  }
  if (answer && action.verb == Action::Verb::kDelete) {
    client::DeleteOptions options;
    options.uid = action.uid;
    options.grace_s = action.grace_s;
    const auto removed = co_await deps_.client.remove(resource, ns, action.name, options);
    // Gone already, or another object by now: either way the one we meant is no more.
    if (!removed && removed.error().code != Code::kNotFound &&
        removed.error().code != Code::kConflict)
      answer = fail(removed.error());
  } else if (answer && action.verb == Action::Verb::kCreate) {
    answer = co_await deps_.client.create(resource, ns, std::move(action.body));
  } else if (answer) {
    const std::string subresource = action.verb == Action::Verb::kStatus ? "status" : "";
    answer = co_await deps_.client.patch(
        resource, ns, action.name, subresource, client::PatchType::kMerge, std::move(action.body));
  }
  if (answer) {
    Written written{
        action.kind, ns + "/" + action.name, action.uid, 0, action.verb == Action::Verb::kDelete};
    if (!written.deleted) {
      const auto created = name_of(*answer);
      written.key = ns + "/" + created;
      written.version = version_of(*answer);
      for (auto& event : action.events)
        event.message = replace_all(event.message, kCreatedName, created);
    }
    batch->written.push_back(std::move(written));
    for (const auto& event : action.events) record(job, event);
  } else {
    if (!action.failed_reason.empty())
      record(job, {true, action.failed_reason, action.failed_prefix + answer.error().message});
    batch->error = answer.error();
  }
  --batch->left;
  batch->done->notify();
}

Task<Result<void>> Frame::write_status(client::ObjectPtr whole,
                                       json::Value status,
                                       std::string key,
                                       bool beside) {
  const json::Value& job = *whole;
  auto& state = states_[key];
  const auto version = json::text_at(job, "metadata", "resourceVersion");
  bool same = false;
  json::Value next;
  const auto compare = [&] {
    same = json::equal(json::at(job, "status"), status) ||
           (state.sent_version == version && json::equal(state.sent_status, status));
    if (!same) next = with_status(job, status);
  };
  if (beside)
    co_await deps_.env.run_on_worker(compare);
  else
    compare();
  if (same) co_return Result<void>{};
  auto answer = co_await deps_.client.update_status(kind_.resource, std::move(next));
  if (!answer &&
      (answer.error().code == Code::kNotFound || answer.error().code == Code::kMethodNotAllowed)) {
    // A version without the status subresource (v1alpha1), or the job has gone meanwhile.
    answer = co_await deps_.client.update(kind_.resource, with_status(job, status));
    if (!answer && answer.error().code == Code::kNotFound) co_return Result<void>{};
  }
  if (!answer) co_return fail(answer.error());
  std::swap(state.sent_status, status);
  state.sent_version = json::text_at(*answer, "metadata", "resourceVersion");
  state.written.push_back({"", key, "", version_of(*answer), false});
  state.give_up = deps_.env.now() + kCacheLagMost;
  if (beside) let_go(deps_.env, std::pair(std::move(status), std::move(*answer)));
  co_return Result<void>{};
}

}  // namespace muster::controllers
