#include "apiserver/housekeeping/events.h"

#include <algorithm>

#include "apiserver/registry/writer.h"
#include "kube/meta.h"

namespace muster::apiserver {
namespace {

constexpr auto kKept = std::chrono::hours(1);
constexpr std::size_t kMost = 10'000;
constexpr std::size_t kBytesMost = 16 * 1024 * 1024;
/// So many are removed side by side: they share commits.
constexpr std::size_t kBatch = 64;

constexpr auto kHistoryKept = std::chrono::minutes(5);
constexpr Revision kHistoryMost = 100'000;
constexpr std::uint64_t kHistoryBytesMost = 64 * 1024 * 1024;

constexpr auto kLook = std::chrono::seconds(10);
constexpr auto kGather = std::chrono::milliseconds(20);

Time last_seen(const json::Value& event) {
  Time latest = kube::creation_time(event);
  for (const json::Value* value : {&json::at(event, "lastTimestamp"),
                                   &json::at(event, "eventTime"),
                                   &json::at(event, "series", "lastObservedTime")}) {
    const auto time = parse_time(json::as_string(*value));
    if (time && *time > latest) latest = *time;
  }
  return latest;
}

}  // namespace

Revision HistoryMarks::take_forgettable() {
  if (marks_.empty()) return 0;
  const Mark& newest = marks_.back();
  Revision forgettable = 0;
  while (marks_.size() > 1) {
    const Mark& oldest = marks_.front();
    const bool needed = newest.time - oldest.time <= kHistoryKept &&
                        newest.revision - oldest.revision <= kHistoryMost &&
                        newest.bytes - oldest.bytes <= kHistoryBytesMost;
    if (needed) break;
    forgettable = oldest.revision;
    marks_.pop_front();
  }
  return forgettable;
}

void Events::start() {
  wake_ = core_.env.make_signal();
  for (const auto& [key, stored] : core_.image.collection("events").objects()) know(*stored);
  core_.env.spawn(keep_bounds());
}

void Events::observe(const Collection& collection, const Change& change) {
  written_ += change.after->object.text_size();
  if (collection.storage() != "events" || !wake_) return;
  if (change.deleted)
    forget(change.after->key);
  else
    know(*change.after);
  if (too_many()) wake_->notify();
}

void Events::know(const Stored& event) {
  forget(event.key);
  const Known known{last_seen(event.object), event.object.text_size()};
  bytes_ += known.bytes;
  by_age_.emplace(known.seen, event.key);
  known_.emplace(event.key, known);
}

void Events::forget(const std::string& key) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  bytes_ -= found->second.bytes;
  by_age_.erase({found->second.seen, key});
  known_.erase(found);
}

bool Events::too_many() const { return known_.size() > kMost || bytes_ > kBytesMost; }

std::vector<std::string> Events::due(Time now) const {
  std::vector<std::string> keys;
  std::size_t left = known_.size(), bytes = bytes_;
  for (const auto& [seen, key] : by_age_) {
    const bool over = left > kMost || bytes > kBytesMost;
    if (keys.size() == kBatch || (!over && now - seen <= kKept)) break;
    keys.push_back(key);
    --left;
    bytes -= known_.at(key).bytes;
  }
  return keys;
}

/// False: none was due, or the store takes no deletions at present.
Task<bool> Events::remove_due() {
  const auto keys = due(core_.env.now());
  if (keys.empty()) co_return false;
  struct Batch {
    std::size_t left = 0;
    bool failed = false;
    std::unique_ptr<Signal> done;
  };
  const auto batch = std::make_shared<Batch>();
  batch->left = keys.size();
  batch->done = core_.env.make_signal();
  const auto remove = [](Core& core, std::string key, std::shared_ptr<Batch> of) -> Task<void> {
    const Gate::Pass pass(core.gate);
    const ResourcePtr resource = core.resources.get("", "v1", "events");
    const auto slash = key.find('/');
    const auto gone = co_await core.writer->remove(
        resource, key.substr(0, slash), key.substr(slash + 1), DeleteRequest());
    of->failed = of->failed || (!gone && gone.error().code != Code::kNotFound);
    if (--of->left == 0) of->done->notify();
  };
  for (const std::string& key : keys) core_.env.spawn(remove(core_, key, batch));
  while (batch->left > 0) co_await batch->done->wait(Duration::zero());
  co_return !batch->failed;
}

Task<void> Events::keep_bounds() {
  const Gate::Pass pass(core_.gate);
  const Gate::Sleeper sleeper(core_.gate, *wake_);
  Time looked;
  while (!core_.gate.closed()) {
    while (!core_.gate.closed()) {
      const bool more = co_await remove_due();
      if (!more) break;
    }
    const Time now = core_.env.now();
    if (now - looked >= kLook || now < looked) {
      looked = now;
      history_.note(now, core_.image.revision(), written_);
      if (const Revision revision = history_.take_forgettable(); revision > 0)
        core_.store.compact(revision);
    }
    // What comes meanwhile is removed together, and a store that takes no deletions is not asked
    // without a pause.
    if (!core_.gate.closed()) co_await core_.env.sleep(kGather);
    if (!core_.gate.closed()) co_await wake_->wait(kLook);
  }
}

}  // namespace muster::apiserver
