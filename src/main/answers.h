/// The answers of this process: records of jobs and what is asked about them, the same for
/// `muster up` and `muster run`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/accuracy.h"
#include "answers/live/expected_starts.h"
#include "answers/live/sayings.h"
#include "answers/records/recorder.h"
#include "answers/service.h"
#include "apiserver/server.h"
#include "client/client.h"
#include "client/informer.h"
#include "command/flags.h"
#include "main/drafts.h"
#include "scheduler/scheduler.h"

namespace muster {

struct AnswersOptions {
  std::optional<answers::HistoryLimits> history;  // absent: no records are kept
  std::string history_dir;
  double cpu_share = 0.1;      // of a core, for forecasts
  bool queues_closed = false;  // who uses a queue needs a permission
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
          std::function<scheduler::Scheduler*()> scheduler);

  /// What the scheduler tells is kept, too.
  void listen_to(scheduler::Options& options);
  /// Who makes pods of jobs here, for questions about jobs that are not submitted; `sign` as in
  /// Drafts::Parts.
  void draft_with(std::function<const controllers::Controllers*()> controllers,
                  std::function<void(net::Request&)> sign = nullptr);
  void start();
  Task<void> stop();
  [[nodiscard]] bool idle() const { return !recorder_ || recorder_->idle(); }

  Task<net::Response> answer(apiserver::AnswersCall call);
  /// Those that have jobs, now or on record.
  [[nodiscard]] std::vector<std::string> namespaces() const;
  /// What forecasts cost, and how old they are.
  void add_metrics(prometheus::Page& page);
  [[nodiscard]] answers::Service& service() { return *service_; }
  [[nodiscard]] answers::Live& live() { return *live_; }
  /// What the engine holds for whom, as it said last, and how often it has said so.
  [[nodiscard]] const std::vector<engine::Reservation>& reservations() const {
    return reservations_;
  }
  [[nodiscard]] std::uint64_t reservations_said() const { return reservations_said_; }

 private:
  void was_said(const answers::Tracked& job);
  void learn_from_starts();
  [[nodiscard]] std::function<bool(std::string_view, std::string_view)> uses() const;

  std::unique_ptr<answers::Recorder> recorder_;  // null: none are kept
  answers::Accuracy accuracy_;
  bool accuracy_read_ = false;                 // what records of earlier say
  std::unique_ptr<answers::Sayings> sayings_;  // likewise
  std::unique_ptr<answers::ExpectedStarts> expected_starts_;
  std::unique_ptr<answers::Live> live_;
  std::unique_ptr<answers::Service> service_;
  std::unique_ptr<Drafts> drafts_;
  std::vector<engine::Reservation> reservations_;
  std::uint64_t reservations_said_ = 0;
  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  std::function<scheduler::Scheduler*()> scheduler_;
  bool queues_closed_ = false;
};

}  // namespace muster
