/// The one loop that turns plans into writes, the same for every kind.
///
/// A job is worked on when it or something it controls changed, or when its plan asked for it. The
/// plan is made from the caches, beside the loop if it is long; its actions go to the server in order (runs of the same verb and
/// kind side by side, ever more at a time), then the status if it differs. A pass never starts
/// before the caches show what the last pass wrote, so a stale cache cannot create anything twice.
/// Whatever the server refuses is recorded as an event and tried again with back-off.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/common/caches.h"
#include "controllers/common/comebacks.h"
#include "controllers/common/kind.h"

namespace muster::controllers {

class Frame {
 public:
  struct Deps {
    Env& env;
    client::Client& client;
    client::Informers& informers;
    Caches& caches;
    client::EventRecorder& events;
    const Settings& settings;
  };
  Frame(Deps deps, Kind kind, int workers);

  /// The informers must be in step with the server first.
  void start();
  Task<void> stop();
  [[nodiscard]] const std::string& name() const { return kind_.name; }
  [[nodiscard]] bool idle() const { return queue_->idle(); }

 private:
  /// Something written that the caches must show before the next plan.
  struct Written {
    std::string kind;  // empty: the job itself
    std::string key, uid;
    std::int64_t version = 0;
    bool deleted = false;
  };
  struct State {
    std::string uid;  // of the job; another one of its name begins anew
    std::vector<Written> written;
    Time give_up;     // when to stop waiting for the caches
    Time not_before;  // the last plan was long: rest until then
    bool long_plan = false;
    Snapshot::Questions asked;  // what its last long plan looked at beside its own objects
    std::string last_error;
    Comebacks comebacks;  // pods that fail again and again
    /// What the last status write sent, and the version it made: a server that drops a field must
    /// not be told about it for ever.
    json::Value sent_status;
    std::string sent_version;
  };
  struct Batch {
    std::size_t left = 0;
    std::unique_ptr<Signal> done;
    std::optional<Error> error;
    std::vector<Written> written;
  };

  Task<Result<void>> work(std::string key);
  Task<Result<void>> apply(client::ObjectPtr job, std::vector<Action> actions, std::string key);
  Task<void> apply_one(client::ObjectPtr whole, Action action, std::shared_ptr<Batch> batch);
  Task<Result<void>> write_status(client::ObjectPtr whole,
                                  json::Value status,
                                  std::string key,
                                  bool beside);
  [[nodiscard]] bool seen(const Written& written) const;
  void record(const json::Value& job, const Event& event);

  Deps deps_;
  Kind kind_;
  client::Informer& jobs_;
  std::unique_ptr<client::WorkQueue> queue_;
  std::map<std::string, State> states_;
};

}  // namespace muster::controllers
