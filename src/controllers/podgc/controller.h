/// Deletes the pods of nodes that are no more, by force: nobody is left to end them.
///
/// The embedded cluster's only: a real one has Kubernetes' own. Lives on the loop.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env.h"
#include "client/client.h"
#include "client/work_queue.h"
#include "controllers/common/caches.h"

namespace muster::controllers::podgc {

class Controller {
 public:
  Controller(Env& env, client::Client& client, Caches& caches);
  void start() { queue_->start(); }
  Task<void> stop() { co_await queue_->stop(); }
  [[nodiscard]] bool idle() const { return queue_->idle(); }

 private:
  void pod_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  Task<Result<void>> work(std::string node);
  Task<Result<void>> remove(client::ObjectPtr pod);

  Env& env_;
  client::Client& client_;
  Caches& caches_;
  std::map<std::string, std::set<std::string>> pods_;  // node -> keys of the pods on it
  std::map<std::string, Time> missing_;                // nodes that are no more, since when
  std::unique_ptr<client::WorkQueue> queue_;
};

}  // namespace muster::controllers::podgc
