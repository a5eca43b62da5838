/// What an answer says: plain values, the same for the command line, HTTP and the portal.
///
/// A time that cannot be told is absent; nothing is ever filled in to look complete.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/model/event.h"
#include "engine/model/reason.h"

namespace muster::answers {

/// What a time rests on.
enum class Basis : std::uint8_t {
  kNone,     ///< Too little is known: no time is told.
  kLearned,  ///< Runs like those that must end before.
  kKnown,    ///< Their owners declared how long they last.
};
std::string_view basis_name(Basis basis);  ///< "none", "learned", "known"

/// A quantile that lies beyond the horizon is absent.
struct Quantiles {
  std::optional<Time> p10, p50, p90;

  bool operator==(const Quantiles&) const = default;
};

/// Whose word the GPU time rests on that ends before the start; shares of 1.
struct Support {
  double declared = 0;
  double learned = 0;
  double guessed = 0;

  bool operator==(const Support&) const = default;
};

struct FirstSaid {
  Time at;
  Time p50;

  bool operator==(const FirstSaid&) const = default;
};

struct Start {
  Quantiles range;
  Basis basis = Basis::kNone;
  std::string because;             ///< Why nothing can be told; empty when it can.
  std::optional<Time> not_before;  ///< Known even when the start is not.
  Time horizon;                    ///< The end of what was looked at.
  double beyond = 0;               ///< Probability that it starts later than that.
  std::int32_t draws = 0;          ///< Courses played; too few give no range.
  Support support;
  std::vector<std::string> assumes;
  std::optional<FirstSaid> first_said;  ///< Kept by whoever keeps what was said.

  bool operator==(const Start&) const = default;
};

/// One whose end most often set the start.
struct WaitsFor {
  std::string job;
  std::int64_t gpu_milli = 0;
  Quantiles end;
  Basis basis = Basis::kNone;
  std::int32_t runs = 0;  ///< Runs like it that have ended.
  double share = 0;       ///< In how many of the courses.

  bool operator==(const WaitsFor&) const = default;
};

enum class Verdict : std::uint8_t { kStarts, kEarlier, kEvicts };
std::string_view verdict_name(Verdict verdict);  ///< "starts", "earlier", "evicts"

struct Seat {
  std::string task;
  std::string node;
  std::vector<std::int32_t> gpus;

  bool operator==(const Seat&) const = default;
};

/// A change that was tried on a copy and found to help.
struct Alternative {
  std::string change;              ///< "workers", "queue", "duration" …
  std::string flag;                ///< "--workers=3"; empty where none does it.
  std::string text;                ///< With {} for each of those that it is about.
  std::vector<std::string> about;  ///< Keys of gangs.
  Verdict verdict = Verdict::kStarts;
  std::optional<Time> start;  ///< With kEarlier.
  std::vector<Seat> placement;
  std::vector<std::string> victims;  ///< Keys of pods.

  bool operator==(const Alternative&) const = default;
};

enum class State : std::uint8_t { kWaits, kRuns, kUnknown };

struct Forecast {
  std::string job;  ///< Key of the gang.
  Time asked;       ///< When the state was looked at.
  State state = State::kUnknown;
  std::string queue;
  Time since;              ///< When it was submitted.
  std::int32_t place = 0;  ///< 1: next in its queue; 0: it does not wait.
  std::int32_t of = 0;
  engine::Refusal refusal;
  Start start;
  Quantiles end;
  std::vector<WaitsFor> waits_for;  ///< At most 5.
  std::vector<Alternative> alternatives;
  std::uint64_t revision = 0;  ///< Digest of the state that was asked.
};

/// One stretch of a gang in the course whose starts are nearest to the middle.
struct Bar {
  std::string job;
  std::string queue;
  std::int64_t gpu_milli = 0;
  Time start, end;
  bool running = false;  ///< It runs already.
};

/// One set of courses answers for all that wait.
struct Forecasts {
  std::vector<Forecast> jobs;  ///< In the order of the engine's gangs.
  std::vector<Bar> gantt;
  std::int32_t draws = 0;
  std::uint64_t revision = 0;
  bool cut = false;             ///< The budget ended before the last course.
  std::int32_t unanswered = 0;  ///< Jobs that wait and of which no start can be said.
};

// --------------------------------------------------------------------------------------- what if

enum class ChangeKind : std::uint8_t {
  kAddNodes,
  kRemoveNodes,
  kDrain,
  kStop,
  kSubmit,
  kPriority,
  kLasts,
  kQueue,
  kHived,
  kPolicy,
};

/// A change, resolved to what the engine is told. What of it is text (a selector, a manifest) was
/// read by whoever asks.
struct Change {
  ChangeKind kind = ChangeKind::kStop;
  Duration at{};                      ///< From now.
  std::vector<std::string> names;     ///< Nodes or jobs.
  std::vector<engine::Event> events;  ///< kAddNodes, kSubmit, kQueue, kPolicy: said as they are.
  std::int32_t priority = 0;          ///< kPriority
  Duration lasts{};                   ///< kLasts; also of what is submitted, when not zero.
  std::string text;                   ///< kHived: the configuration.
  std::string title;                  ///< As it is spoken of.
};

struct Moved {
  std::string job;
  Quantiles before, after;
  bool evicted = false;
  Quantiles end_before, end_after;
};

struct QueueMoved {
  std::string queue;
  double wait_before_s = 0, wait_after_s = 0;  ///< Mean over its waiting jobs.
  double gpus_before = 0, gpus_after = 0;      ///< Mean use over the horizon.
};

struct WhatIf {
  std::uint64_t revision = 0;
  Duration horizon{};
  std::int32_t draws = 0;
  double cpu_s = 0;
  std::string summary;
  std::vector<Moved> jobs;
  std::vector<QueueMoved> queues;
  std::vector<std::string> warnings;
  std::string cut;  ///< What is missing because the budget ended; empty: nothing.
};

// ------------------------------------------------------------------------------------------- ask

struct Ask {
  std::vector<std::string> jobs;  ///< Keys of gangs; empty: all that wait.
  Duration horizon = std::chrono::hours(24 * 7);
  std::int32_t draws = 40;
  bool gantt = false;
  /// Asked before each course; false ends the work, and fewer draws are made. Null: never.
  std::function<bool()> go_on;
  /// As in sim::Course::Settings.
  std::function<void()> breathe;
  Duration quantum = std::chrono::seconds(1);
  Duration grace = std::chrono::seconds(30);
};

}  // namespace muster::answers
