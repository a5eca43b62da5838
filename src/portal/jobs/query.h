/// What a list of jobs is asked for: filters, an order, a window.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "net/http/http.h"
#include "portal/jobs/row.h"

namespace muster::portal {

enum class SortField : std::uint8_t {
  kSubmitted,
  kName,
  kUser,
  kDuration,
  kVc,
  kQueue,
  kKind,
  kRetries,
  kTasks,
  kGpus,
  kPrio,
  kState,
  kStart,
  kEnded,
};
enum class GroupField : std::uint8_t { kNone, kUser, kVc, kQueue, kState, kPrio, kKind, kTag };

/// Which namespaces somebody may look into.
struct Visible {
  bool all = false;
  bool openpai = false;  // every OpenPAI job, wherever it lives
  std::set<std::string, std::less<>> namespaces;
  bool changes_all = false;
  std::set<std::string, std::less<>> changes;  // where they may stop what runs
  [[nodiscard]] bool sees(std::string_view ns) const { return all || namespaces.contains(ns); }
  [[nodiscard]] bool may_change(std::string_view ns) const {
    return changes_all || changes.contains(ns);
  }
  bool operator==(const Visible&) const = default;
};

struct JobQuery {
  std::string text;  // lower case
  std::vector<std::string> users, vcs, queues, prios, kinds, tags, nodes;
  std::uint8_t states = 0;  // one bit each; 0: all
  Millis from = 0, to = 0;  // submitted; 0: open
  SortField sort = SortField::kSubmitted;
  bool descending = true;
  GroupField group = GroupField::kNone;

  /// The same for equal queries of people who see the same; states do not count, as they are
  /// filtered from the view of all.
  [[nodiscard]] std::string key(const Visible& visible) const;
};

/// Rows [first, end).
struct Window {
  std::size_t first = 0, end = 100;
  static constexpr std::size_t kMax = 500;
};

/// `user` is who "me" means. Unknown keys and values are refused.
Result<JobQuery> parse_job_query(const json::Value& query, std::string_view user);
Result<Window> parse_window(const json::Value& window);

/// The same from the query string of a GET: lists are separated by commas, offset and limit are the
/// window. The other parameters as an object of texts and lists.
json::Value query_of_target(const net::Target& target);
Result<Window> window_of_target(const net::Target& target);

}  // namespace muster::portal
