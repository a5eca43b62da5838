#include "apiserver/housekeeping/events.h"

#include <algorithm>

#include "apiserver/registry/writer.h"
#include "kube/meta.h"

namespace muster::apiserver {
namespace {

constexpr auto kKept = std::chrono::hours(1);
constexpr auto kHistoryKept = std::chrono::minutes(5);

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

void Events::start() { core_.env.spawn(expire()); }

Task<void> Events::expire() {
  const Gate::Pass pass(core_.gate);
  const auto signal = core_.env.make_signal();
  const Gate::Sleeper sleeper(core_.gate, *signal);
  const ResourcePtr resource = core_.resources.get("", "v1", "events");
  // The same clock tick forgets the store's history of more than five minutes ago.
  std::vector<std::pair<Time, Revision>> marks;
  while (!core_.gate.closed()) {
    const Time now = core_.env.now();
    std::vector<std::pair<std::string, std::string>> old;
    for (const auto& [key, stored] : core_.image.collection("events").objects()) {
      if (now - last_seen(stored->object) > kKept) old.emplace_back(stored->ns(), stored->name());
    }
    for (const auto& [ns, name] : old) {
      DeleteRequest request;
      const auto gone = co_await core_.writer->remove(resource, ns, name, request);
      if (!gone || core_.gate.closed()) break;
    }
    marks.emplace_back(now, core_.image.revision());
    const auto keep = std::find_if(marks.begin(), marks.end(), [&](const auto& mark) {
      return now - mark.first <= kHistoryKept;
    });
    if (keep != marks.begin()) {
      core_.store.compact(std::prev(keep)->second);
      marks.erase(marks.begin(), keep);
    }
    co_await signal->wait(std::chrono::minutes(1));
  }
}

}  // namespace muster::apiserver
