/// Ended jobs, ready to be listed: one short row for each record of the sealed pages, and the pages
/// themselves for whoever wants all of it. Pure; on the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "answers/records/page.h"
#include "answers/records/record.h"

namespace muster::answers {

/// What lists show of a record.
struct Summary {
  std::string uid, job;
  const std::string *ns = nullptr, *kind = nullptr, *user = nullptr, *queue = nullptr,
                    *state = nullptr, *priority = nullptr, *model = nullptr;
  std::int64_t milli = 0, tasks = 0, attempts = 0, preempted = 0;
  std::int64_t held = 0;  // thousandths of a GPU times seconds
  Time submitted, started, ended;
  std::int64_t page = 0;  // 0: of none yet
};

struct RecordQuery {
  std::string user, queue, state, ns, kind, name;  // empty: any
  Time since, until;                               // of the end, or of the start of what runs
  std::size_t limit = 100;

  [[nodiscard]] bool matches(const Summary& row) const;
};

class Archive {
 public:
  /// Its words live as long as the archive.
  Summary summary_of(const Record& record, std::int64_t page, Time now);

  /// The page's records must be those of the page.
  void add(Page page, const std::vector<Record>& records);
  /// Forgets the oldest page; its number.
  std::optional<std::int64_t> drop_oldest();

  [[nodiscard]] bool holds(std::string_view uid) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const std::map<std::int64_t, Page>& pages() const { return pages_; }
  [[nodiscard]] std::int64_t last_number() const { return last_number_; }

  /// Newest first, until `each` returns false.
  void newest_first(const std::function<bool(const Summary&)>& each) const;
  /// The whole record; absent when there is none, or its page is broken.
  [[nodiscard]] std::optional<Record> find(std::string_view uid) const;

 private:
  const std::string* word(const std::string& text) { return &*words_.insert(text).first; }

  std::unordered_set<std::string> words_;  // nodes do not move
  std::deque<Summary> rows_;               // oldest page first
  std::unordered_set<std::uint64_t> uids_;
  std::map<std::int64_t, Page> pages_;
  std::int64_t last_number_ = 0;
};

json::Value summary_json(const Summary& row);

}  // namespace muster::answers
