/// The answers, to whoever asks: the HTTP group of the API server and the portal call the same
/// functions. Each takes who asks and gives a JSON value or an error; whoever may not look into a
/// namespace sees its jobs as numbers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answers/live/live.h"
#include "answers/records/recorder.h"
#include "base/env.h"
#include "base/result.h"
#include "json/json.h"
#include "net/http/http.h"

namespace muster::answers {

struct Visitor {
  std::string user;
  std::vector<std::string> groups;
  /// Whether they may do this to a resource of the group; `ns` empty: in the whole cluster.
  std::function<bool(std::string_view verb, std::string_view resource, std::string_view ns)> may;

  [[nodiscard]] bool sees(std::string_view ns) const { return may("get", "records", ns); }
};

/// What other teams' jobs, users and namespaces are called.
inline constexpr std::string_view kOthers = "(others)";
inline constexpr std::string_view kAnothersJob = "another team's job";

class Service {
 public:
  Service(Env& env, Recorder* recorder, Live* live) : env_(env), recorder_(recorder), live_(live) {}

  /// When what waits starts: {items, others{jobs}}, next of each queue first. What is empty does not
  /// matter; `alternatives` are tried for the first one that is shown.
  struct WhenAsk {
    std::string ns, queue, kind, name;
    std::size_t limit = 100;
    bool alternatives = false;
  };
  Task<Result<json::Value>> when(Visitor visitor, WhenAsk ask);
  /// Bars of what runs and will run, in the middle course.
  Task<Result<json::Value>> gantt(Visitor visitor);

  /// {items, others{jobs, gpus}}; the query as in the path's parameters: user, queue, state,
  /// namespace, kind, name, since, until, limit.
  [[nodiscard]] Result<json::Value> records(const Visitor& visitor, const net::Target& query);
  [[nodiscard]] Result<json::Value> record(const Visitor& visitor, const std::string& uid);
  [[nodiscard]] Result<json::Value> timeline(const Visitor& visitor, const std::string& uid);
  /// by, from, to, step=day.
  [[nodiscard]] Result<json::Value> usage(const Visitor& visitor, const net::Target& query);
  /// Quantiles of how long jobs waited, by the same fields.
  [[nodiscard]] Result<json::Value> waits(const Visitor& visitor, const net::Target& query);
  /// How good what was foretold turned out to be.
  [[nodiscard]] Result<json::Value> accuracy(const Visitor& visitor, const net::Target& query);

 private:
  [[nodiscard]] Result<Recorder*> recorder() const;
  /// "ns/kind/name" of a gang, or "another team's job".
  [[nodiscard]] std::string name_for(const Visitor& visitor, std::string_view gang) const;

  Env& env_;
  Recorder* recorder_;  // null: nothing is kept
  Live* live_;          // null: nothing is decided here
};

/// The timeline of one record: each wait with its reason, what was foretold, runs and their ends, in
/// order. Pure.
json::Value timeline_json(const Record& record,
                          const std::function<bool(std::string_view ns)>& sees);

}  // namespace muster::answers
