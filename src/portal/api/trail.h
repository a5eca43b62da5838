/// Who did what through the portal: every request that changes something, or would have, with its
/// result. Beside the cluster's own audit log, which does not know what OpenPAI's rules refuse, nor
/// who signs in. One line of JSON each, in a file where there is one. On the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/env.h"

namespace muster::portal {

struct Deed {
  std::string user, from;    // empty user: nobody was signed in
  std::string verb, object;  // "POST", "jobs"
  int code = 0;
  std::string text;  // what was made, or why not
};

class Trail {
 public:
  /// `file` empty: the last ones are kept in memory alone.
  Trail(Env& env, std::string file) : env_(env), file_(std::move(file)) {}

  void note(const Deed& deed);
  [[nodiscard]] const std::string& file() const { return file_; }
  /// What is not in a file, oldest first.
  [[nodiscard]] std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  /// The file is put aside, once, when it has grown so large.
  static constexpr std::int64_t kFileMax = 16 * 1024 * 1024;
  static constexpr std::size_t kLinesMax = 5000;

  Env& env_;
  std::string file_;
  std::deque<std::string> lines_;
  std::uint64_t count_ = 0;
};

}  // namespace muster::portal
