/// What happened lately: the cluster's events, newest first, a bounded number of them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "client/informer.h"
#include "portal/jobs/row.h"

namespace muster::portal {

struct EventFacts {
  std::string id, type, reason, message, kind, ns, name, uid, node, source;
  Millis at = 0, first = 0;
  std::int64_t count = 1;
  std::uint64_t version = 0;
};
EventFacts event_facts(const json::Value& event);

class Events {
 public:
  explicit Events(client::Informers& informers) : informers_(informers) {}
  void begin();
  /// By time and id.
  using ByTime = std::map<std::pair<Millis, std::string>, EventFacts>;
  [[nodiscard]] const ByTime& all() const { return events_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  std::function<void()> on_change;
  /// Something is wrong with a pod.
  std::function<void(const EventFacts&)> on_warning;

 private:
  static constexpr std::size_t kMax = 20'000;
  client::Informers& informers_;
  bool begun_ = false;
  ByTime events_;
  std::map<std::string, Millis> times_;  // by id
  std::uint64_t version_ = 1;
};

}  // namespace muster::portal
