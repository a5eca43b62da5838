/// The answers, to whoever asks: the HTTP group of the API server and the portal call the same
/// functions. Each takes who asks and gives a JSON value or an error; whoever may not look into a
/// namespace sees its jobs as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/draft.h"
#include "answers/live/live.h"
#include "answers/questions.h"
#include "answers/records/recorder.h"
#include "answers/visitor.h"
#include "base/env.h"
#include "base/result.h"
#include "json/json.h"
#include "net/http/http.h"

namespace muster::answers {

class Service {
 public:
  Service(Env& env, Recorder* recorder, Live* live)
      : env_(env), recorder_(recorder), live_(live), questions_(env), gate_(env) {}

  /// What the cluster knows and this room does not; what is missing is not offered.
  struct Cluster {
    Drafting draft;
    /// PriorityClasses and their values.
    std::function<std::map<std::string, std::int32_t>()> priorities;
    std::function<Result<engine::Config>(std::string_view text)> parse_policy;
    /// What another configuration of cells does to whom, a sentence each.
    std::function<Task<Result<std::vector<std::string>>>(std::string text)> preview_cells;
  };
  void know(Cluster cluster) { cluster_ = std::move(cluster); }
  [[nodiscard]] Env& env() { return env_; }
  Task<void> stop();

  /// When what waits starts: {items, others{jobs}}, next of each queue first. What is empty does not
  /// matter; `alternatives` are tried for the first one that is shown. Whoever asks for a name is told of
  /// no others.
  struct WhenAsk {
    std::string ns, queue, kind, name;
    std::size_t limit = 100;
    bool alternatives = false;
  };
  Task<Result<json::Value>> when(Visitor visitor, WhenAsk ask);
  /// Bars of what runs and will run, in the middle course.
  Task<Result<json::Value>> gantt(Visitor visitor);

  /// What would become of a job that is submitted now (decision_json); nothing is stored.
  struct CheckWish {
    /// Only its shape matters, so it may as well have fewer or other tasks.
    bool shape = false;
    /// Only whether it starts and where, whom it evicts or why it waits: neither when it would start
    /// nor what else would, which takes courses and trials.
    bool quick = false;
    /// CPU seconds that it may take, if that is less than the visitor may ask for; 0: as much.
    double cpu_s = 0;
  };
  Task<Result<json::Value>> check(Visitor visitor,
                                  std::string ns,
                                  json::Value manifest,
                                  CheckWish wish);
  /// A change tried on a copy: {changes, horizon, jobs}. 200 with the answer, or 202 with an id when
  /// it takes longer.
  struct Answered {
    int status = 200;
    json::Value body;
  };
  Task<Result<Answered>> what_if(Visitor visitor, json::Value question);
  [[nodiscard]] Result<Answered> find_what_if(const Visitor& visitor, const std::string& id);

  /// {items, others{jobs, gpus}}; the query as in the path's parameters: user, queue, state,
  /// namespace, kind, name, since, until, limit.
  Task<Result<json::Value>> records(Visitor visitor, net::Target query);
  Task<Result<json::Value>> record(Visitor visitor, std::string uid);
  Task<Result<json::Value>> timeline(Visitor visitor, std::string uid);
  /// by, from, to, step=day.
  Task<Result<json::Value>> usage(Visitor visitor, net::Target query);
  /// Quantiles of how long jobs waited, by the same fields.
  Task<Result<json::Value>> waits(Visitor visitor, net::Target query);
  /// How good what was foretold turned out to be.
  Task<Result<json::Value>> accuracy(Visitor visitor, net::Target query);

 private:
  [[nodiscard]] Result<Recorder*> recorder() const;
  /// Those of the shelf in which the visitor may get the resource.
  Task<std::set<std::string>> namespaces_for(Visitor visitor, std::string resource, ShelfPtr shelf);
  /// "ns/kind/name" of a gang, or "another team's job".
  [[nodiscard]] std::string name_for(const Visitor& visitor, std::string_view gang) const;
  /// "ns/kind/name" of a gang, or "ns/name" where nothing is known of its job.
  [[nodiscard]] std::string job_of(std::string_view gang) const;
  /// What people call a job whose object has another name, as OpenPAI's have; empty: the same.
  [[nodiscard]] std::string called(std::string_view job) const;

  /// Which forecasts of an outlook are about jobs of a name, in their order.
  struct Names {
    std::weak_ptr<const Outlook> of;  // which is not kept for its names
    std::unordered_map<std::string, std::vector<std::uint32_t>>
        by_name;  // looked up, never iterated
  };
  /// Made at the first question with a name, in turns, and good for all that follow.
  Task<std::shared_ptr<const Names>> names_in(OutlookPtr outlook);

  /// What the visitor may change about a job of that namespace.
  [[nodiscard]] Asker asker_of(const Visitor& visitor,
                               const std::string& ns,
                               const std::string& own,
                               const std::vector<engine::QueueView>& queues) const;
  Task<void> work_out(std::shared_ptr<Questions::Later> later,
                      Questions::Slot slot,
                      Visitor visitor,
                      json::Value question);
  Task<Result<json::Value>> try_changes(Visitor visitor, json::Value question);
  /// Gangs of jobs as questions name them.
  Task<Result<std::map<std::string, std::vector<std::string>>>> gangs_of(
      const Visitor& visitor, std::vector<std::string> jobs);

  Env& env_;
  Recorder* recorder_;  // null: nothing is kept
  Live* live_;          // null: nothing is decided here
  Cluster cluster_;
  Questions questions_;
  Gate gate_;
  /// Answers to what was asked lately, by the state and the question: the same again is the same.
  struct Known {
    Time at;
    json::Value answer;
  };
  std::map<std::string, std::shared_ptr<const Known>> known_;
  std::shared_ptr<const Names> names_;  // of the last outlook that was asked by name
};

/// The timeline of one record: each wait with its reason, what was foretold, runs and their ends, in
/// order. Pure.
json::Value timeline_json(const Record& record,
                          const std::function<bool(std::string_view ns)>& sees);

}  // namespace muster::answers
