/// What is kept of a job after it: whose it was, what it waited for, when it ran on what, and how it
/// ended. Names, the image and a hash of the command; never an environment, arguments or secrets.
/// Plain values, and their JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/json.h"

namespace muster::answers {

/// So many thousandths of GPUs, held from `start` to `end`. Whole seconds, as the API server has them.
struct Part {
  Time start, end;  // end zero: held still
  std::int64_t milli = 0;

  bool operator==(const Part&) const = default;
};

/// From the first task that is bound to the last that is gone.
struct Run {
  Time start, end;         // end zero: it goes on
  std::int64_t milli = 0;  // the most GPUs it held at once, in thousandths
  std::vector<std::string> nodes;
  std::string how;  // succeeded, failed, stopped, evicted, lost; empty: it goes on
  std::string by;   // who got the room of one that was evicted
  bool opportunistic = false;
  std::vector<Part> parts;

  bool operator==(const Run&) const = default;
};

struct Waited {
  std::string reason, subject, text;
  Time from, to;  // to zero: it waits still

  bool operator==(const Waited&) const = default;
};

/// A start that was foretold.
struct Foretold {
  Time at, p10, p50, p90;  // zero: absent
  std::string basis, because;

  bool operator==(const Foretold&) const = default;
};

struct Record {
  static constexpr std::size_t kWaitsMax = 200, kSaidMax = 20, kNodesMax = 1000;

  std::string job, uid, ns, kind;
  std::string user, queue, vc, stem, priority;
  /// Whose they are and what they are called, as its pods say, by which durations are learned; empty:
  /// the same.
  std::string pods_user, pods_stem;
  std::int64_t tasks = 0, milli = 0;  // what it asks for
  std::string model, image, command;  // command: a hash of it
  bool model_asked = false;           // the model is one that it asks for, not one that it got
  Duration declared{};                // zero: it does not say
  Time submitted, ended;              // ended zero: it lives
  std::string state;                  // WAITING, RUNNING, SUCCEEDED, FAILED, STOPPED, …
  std::int32_t exit = 0;
  bool has_exit = false;
  std::string exit_phrase;
  std::vector<Run> runs;
  std::vector<Waited> waits;
  std::vector<Foretold> said;

  [[nodiscard]] bool over() const { return ended.us != 0; }
  [[nodiscard]] Time started() const { return runs.empty() ? Time{} : runs.front().start; }

  bool operator==(const Record&) const = default;
};

/// The same time without its fraction: what objects say has none.
inline Time whole_seconds(Time time) { return Time::from_seconds(time.seconds()); }

json::Value record_json(const Record& record);
/// What is absent stays as a fresh record has it.
Record parse_record(const json::Value& value);

}  // namespace muster::answers
