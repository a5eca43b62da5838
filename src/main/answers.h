/// The answers of this process: records of jobs and what is asked about them, the same for
/// `muster up` and `muster run`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/records/recorder.h"
#include "answers/service.h"
#include "apiserver/server.h"
#include "client/client.h"
#include "client/informer.h"
#include "command/flags.h"
#include "scheduler/scheduler.h"

namespace muster {

struct AnswersOptions {
  std::optional<answers::HistoryLimits> history;  // absent: no records are kept
  std::string history_dir;
};

std::vector<command::Flag> answers_flags(const char* history);
Result<AnswersOptions> answers_options(const command::Values& values);

class Answers {
 public:
  /// `scheduler` gives null while there is none.
  Answers(Env& env,
          client::Client& client,
          client::Informers& informers,
          AnswersOptions options,
          std::function<const scheduler::Scheduler*()> scheduler);

  /// What the scheduler tells is kept, too.
  void listen_to(scheduler::Options& options);
  void start();
  Task<void> stop();
  [[nodiscard]] bool idle() const { return !recorder_ || recorder_->idle(); }

  Task<net::Response> answer(apiserver::AnswersCall call);
  /// What forecasts cost, and how old they are.
  void add_metrics(prometheus::Page& page);
  [[nodiscard]] answers::Service& service() { return *service_; }

 private:
  std::unique_ptr<answers::Recorder> recorder_;  // null: none are kept
  std::unique_ptr<answers::Live> live_;
  std::unique_ptr<answers::Service> service_;
  Env& env_;
};

}  // namespace muster
