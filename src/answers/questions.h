/// How many questions that cost CPU time are worked on at once, and the answers of those that take
/// longer than a request should. On the loop.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/result.h"
#include "json/json.h"

namespace muster::answers {

class Questions {
 public:
  static constexpr std::size_t kMost = 4;
  /// Answers that nobody has fetched yet, and how long they are kept.
  static constexpr std::size_t kKept = 64;
  static constexpr Duration kKeptFor = std::chrono::minutes(10);

  /// A question that is being worked on, until its end.
  class Slot {
   public:
    Slot() = default;
    Slot(Questions& all, std::string user);
    Slot(Slot&& other) noexcept { *this = std::move(other); }
    Slot& operator=(Slot&& other) noexcept;
    ~Slot() { leave(); }

   private:
    void leave();
    Questions* all_ = nullptr;
    std::string user_;
  };

  explicit Questions(Env& env) : env_(env), left_(env.make_signal()) {}

  /// One a user, four in all; waits so long for others to end, then it is TooManyRequests. Muster's
  /// own components ask for many people, and only count in all.
  Task<Result<Slot>> enter(std::string user, Duration patience);

  /// An answer that is fetched later, by who asked.
  struct Later {
    std::string id, user;
    Duration since{};
    bool done = false;
    Result<json::Value> answer = json::Value();
    std::unique_ptr<Signal> ended;
  };
  std::shared_ptr<Later> begin(std::string user);
  /// Null: there is none, or it is somebody else's.
  [[nodiscard]] std::shared_ptr<Later> find(const std::string& id, const std::string& user);
  void forget(const std::string& id) { later_.erase(id); }

 private:
  [[nodiscard]] bool full(const std::string& user) const;

  Env& env_;
  std::map<std::string, int> asking_;  // by user
  std::size_t total_ = 0;
  std::unique_ptr<Signal> left_;
  std::map<std::string, std::shared_ptr<Later>> later_;  // by id
};

}  // namespace muster::answers
