/// Simulations that people start from the portal: each is `muster sim` in a process of its own, one
/// at a time and below everything else in priority, so that a long trace holds nobody up. Traces and
/// results are files in a folder, and stay over a restart. On the loop.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "json/json.h"
#include "net/loop/descriptor.h"
#include "net/loop/loop.h"

namespace muster::portal {

/// What is simulated: texts of files, never names of files of this machine.
struct SimAsk {
  std::string name, trace;
  std::string nodes;                  // "64x8", or a CSV
  std::string hived;                  // cells instead of nodes
  std::vector<std::string> policies;  // by name
  std::string policy_file;            // YAML
  std::string from, to, speed;
  std::int64_t limit = 0;
  bool tenants = false, resume = false;
};
/// Refuses what is missing, too much or not known, and says what is wanted.
Result<SimAsk> read_sim_ask(const json::Value& value);

class Simulations {
 public:
  /// Kept at once, and waiting of one person.
  static constexpr std::size_t kKept = 50, kWaiting = 5;

  Simulations(net::Loop& loop, std::string program, std::string folder)
      : loop_(loop), program_(std::move(program)), folder_(std::move(folder)) {}
  ~Simulations() { stop(); }

  [[nodiscard]] bool offered() const { return !program_.empty() && !folder_.empty(); }
  /// Its id. It runs when those before it are over.
  Result<std::string> start(const std::string& user, const SimAsk& ask);

  struct Run {
    std::string id, name, user;
    enum class State { kWaiting, kRunning, kDone, kFailed } state = State::kWaiting;
    std::int64_t began_ms = 0, ended_ms = 0;
    std::string text;  // what went wrong
    std::vector<std::string> words;
  };
  /// The newest first.
  [[nodiscard]] std::vector<const Run*> all();
  [[nodiscard]] const Run* find(const std::string& id);
  /// Of a run that is done: "json" or "html".
  [[nodiscard]] Result<std::string> result(const std::string& id, const std::string& kind) const;
  void remove(const std::string& id);
  void stop();

 private:
  [[nodiscard]] std::string place(const std::string& id) const { return folder_ + "/" + id; }
  /// Reads what was kept, once.
  void load();
  void note(const Run& run) const;
  void next();
  Result<void> spawn(Run& run);
  Task<void> await_end(std::shared_ptr<net::Descriptor> process);
  void take_end();
  void end_process();

  net::Loop& loop_;
  std::string program_, folder_;
  bool loaded_ = false;
  std::map<std::string, Run> runs_;
  std::deque<std::string> waiting_;
  std::string running_;
  pid_t process_ = -1;
  std::shared_ptr<net::Descriptor> ends_;  // readable when the process is over
};

std::string_view sim_state_name(Simulations::Run::State state);

}  // namespace muster::portal
