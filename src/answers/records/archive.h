/// Ended jobs, ready to be listed: one short row for each record of the sealed pages, and the pages
/// themselves for whoever wants all of it. Pure; on the loop. A sealed page is shared and never
/// changes, so that workers look through it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

/// Its words are the record's own.
[[nodiscard]] Summary summary_of(const Record& record, std::int64_t page, Time now);

struct Sealed {
  Page page;
  std::vector<Summary> rows;  // its words are the archive's
};
using SealedPtr = std::shared_ptr<const Sealed>;
using Pages = std::map<std::int64_t, SealedPtr>;  // by number: the oldest first

struct RecordQuery {
  std::string user, queue, state, ns, kind, name;  // empty: any
  Time since, until;                               // of the end, or of the start of what runs
  std::size_t limit = 100;

  [[nodiscard]] bool matches(const Summary& row) const;
};

class Archive {
 public:
  /// The page's records must be those of the page.
  void add(Page page, const std::vector<Record>& records);
  /// Forgets the oldest page; its number.
  std::optional<std::int64_t> drop_oldest();

  [[nodiscard]] bool holds(std::string_view uid) const;
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Pages& pages() const { return pages_; }
  /// Of all records that ever were in it.
  [[nodiscard]] const std::set<std::string>& namespaces() const { return namespaces_; }
  [[nodiscard]] std::int64_t last_number() const { return last_number_; }

  /// The page of the record; null: there is none.
  [[nodiscard]] SealedPtr page_of(std::string_view uid) const;

 private:
  const std::string* word(const std::string& text) { return &*words_.insert(text).first; }

  std::unordered_set<std::string> words_;  // nodes do not move
  std::set<std::string> namespaces_;
  std::unordered_set<std::uint64_t> uids_;
  Pages pages_;
  std::size_t size_ = 0;
  std::int64_t last_number_ = 0;
};

/// Newest first, until `each` returns false.
void newest_first(const Pages& pages, const std::function<bool(const Summary&)>& each);
/// The whole record; absent when there is none, or the page is broken.
[[nodiscard]] std::optional<Record> find_in(const Sealed& sealed, std::string_view uid);

json::Value summary_json(const Summary& row);

}  // namespace muster::answers
