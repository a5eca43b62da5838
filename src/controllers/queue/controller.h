/// Keeps Volcano's Queues: their state, on the word of bus.volcano.sh Commands, and how many groups
/// they have in which phase. Volcano itself has given the counters up; people still look for them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/queue/plan.h"

namespace muster::controllers::queue {

class Controller {
 public:
  Controller(Env& env, client::Client& client, client::Informers& informers);
  void start() { work_->start(); }
  Task<void> stop();

 private:
  struct Command {
    std::string action;
    std::string key;  ///< Of the Command object; empty: its parent queue said so.
  };
  void group_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void command_seen(const client::ObjectPtr& command);
  Task<Result<void>> work(std::string name);
  Task<Result<void>> obey(std::string name, Decision decision);

  client::Client& client_;
  client::Informer& queues_;
  std::unique_ptr<client::EventRecorder> events_;
  std::map<std::string, Counts> counts_;
  std::map<std::string, Command> commands_;  ///< Queue -> what it was told last.
  std::unique_ptr<client::WorkQueue> work_;
};

}  // namespace muster::controllers::queue
