/// T9k's Duration Keeper: ends what has been in a queue for longer than the queue's maxDuration.
/// Lives on the loop.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/common/caches.h"
#include "controllers/t9k/duration.h"

namespace muster::controllers::t9k {

class Keeper {
 public:
  Keeper(Env& env, client::Client& client, client::Informers& informers, Caches& caches);
  void start() { work_->start(); }
  Task<void> stop();

 private:
  void pod_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  [[nodiscard]] client::ObjectPtr find_queue(const std::string& name) const;
  Task<Result<void>> work(std::string key);
  /// Stops the highest owner that is known here, or deletes the pod.
  Task<Result<void>> end(client::ObjectPtr pod, std::string queue);

  Env& env_;
  client::Client& client_;
  Caches& caches_;
  client::Informer& queues_;
  std::unique_ptr<client::EventRecorder> events_;
  std::map<std::string, std::set<std::string>> pods_;  // queue -> keys of its pods
  std::map<std::string, Time> told_;                   // owner's uid -> when it was told to stop
  std::unique_ptr<client::WorkQueue> work_;
};

}  // namespace muster::controllers::t9k
