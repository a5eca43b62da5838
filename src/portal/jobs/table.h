/// All rows, and views of them: which rows a query has, in its order. A view that somebody looks at
/// follows each change of a row by itself (a search and a move of one number), so that what a change
/// costs does not grow with the number of people who look.
///
/// On the loop. Slots are dense and reused; what a query answers depends on the rows alone.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "portal/jobs/order.h"
#include "portal/jobs/query.h"
#include "portal/jobs/row.h"
#include "portal/jobs/words.h"

namespace muster::portal {

class Table;

/// Which three letters in a row a text has, a bit for each: a text that lacks one of another's does not
/// contain it. Most rows are told apart from what somebody looks for without a look at their texts.
struct Letters {
  std::uint64_t low = 0, high = 0;
  static Letters of(std::string_view text);
  [[nodiscard]] bool cover(const Letters& other) const {
    return (other.low & ~low) == 0 && (other.high & ~high) == 0;
  }
};

/// Everything that matches but for its state, in ascending order of the sort field; ties by id.
class View {
 public:
  View(const Table& table, JobQuery query, Visible visible);

  [[nodiscard]] const std::vector<Slot>& order() const { return order_; }
  [[nodiscard]] const std::array<std::int32_t, kStates>& counts() const { return counts_; }
  /// Grows with each change of a row that is in it, before or after.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] bool matches(Slot slot) const;

 private:
  friend class Table;
  void build(const View* base);
  [[nodiscard]] std::vector<SortItem> items(const std::vector<char>& in) const;
  void add(Slot slot);
  void remove(Slot slot, State state);
  void touch(State before, State after);
  [[nodiscard]] bool less(Slot a, Slot b) const;
  [[nodiscard]] bool text_less(Slot a, Slot b) const;

  const Table& table_;
  JobQuery query_;
  Visible visible_;
  // The lists of the query as numbers.
  std::vector<Word> users_, vcs_, queues_, prio_classes_;
  std::vector<std::int32_t> prio_numbers_;
  std::uint32_t kinds_ = 0;
  std::vector<Word> namespaces_;
  Letters letters_;  // of the text that is looked for
  std::vector<Slot> order_;
  std::array<std::int32_t, kStates> counts_{};
  std::uint64_t version_ = 0;
  Millis built_ = 0;
};
using ViewPtr = std::shared_ptr<View>;

/// A window of a view, cut by state.
struct Page {
  std::size_t total = 0;
  Window window;
  std::vector<Slot> rows;
};

struct GroupRow {
  std::string value;
  std::int64_t jobs = 0, gpus = 0;
  std::array<std::int64_t, kStates> states{};
};

class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;  // by_id_ and by_name_ look into it
  Table& operator=(const Table&) = delete;

  /// The slot of a job that is new.
  Slot add(Keys keys, Texts texts);
  /// False when nothing changed.
  bool set(Slot slot, const Keys& keys, Texts texts);
  void remove(Slot slot);

  [[nodiscard]] const Keys& keys(Slot slot) const { return keys_[slot]; }
  [[nodiscard]] const Texts& texts(Slot slot) const { return texts_[slot]; }
  /// Changes with each change of the row, and is never reused.
  [[nodiscard]] std::uint64_t version(Slot slot) const { return versions_[slot]; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] std::size_t slots() const { return keys_.size(); }
  [[nodiscard]] Words& words() { return words_; }
  [[nodiscard]] const Words& words() const { return words_; }

  /// Shared by all who ask the same. Recent ones are kept, so that pages follow cheaply.
  ViewPtr view(const JobQuery& query, const Visible& visible);
  [[nodiscard]] Page page(const View& view, const JobQuery& query, Window window) const;
  [[nodiscard]] std::vector<GroupRow> groups(const View& view, const JobQuery& query) const;

  /// What is foretold, by slot, as rows were at version `since`: those that have changed meanwhile
  /// keep what was foretold of them before. Views sorted by start are put in order anew.
  void expect(std::vector<Ahead> ahead, std::uint64_t since);

  /// Asked for by queries with nodes: does a task of the job run there?
  std::function<bool(Slot, const std::string& node)> runs_on;
  /// The clock, for durations.
  std::function<Millis()> now;

 private:
  friend class View;
  void change(Slot slot, const Keys& keys, Texts texts);
  void make_searchable(Slot slot);
  template <typename Each>
  void each_view(Each each);

  static constexpr std::size_t kKept = 6;
  /// What runs grows longer against what has ended: after so long that order is made anew.
  static constexpr Millis kDurationsFor = 5000;

  std::vector<Keys> keys_;
  std::vector<Texts> texts_;
  std::vector<std::string> search_;  // id, name and tags in lower case
  std::vector<Letters> letters_;     // of search_
  std::vector<std::uint64_t> versions_;
  std::vector<Ahead> ahead_;  // of those that wait
  std::vector<Slot> free_;
  std::size_t used_ = 0;
  std::uint64_t version_ = 1;
  Words words_;
  mutable KeptOrder by_id_{[this](Slot a, Slot b) { return texts_[a].id < texts_[b].id; }};
  mutable KeptOrder by_name_{[this](Slot a, Slot b) {
    const int order = texts_[a].name.compare(texts_[b].name);
    return order != 0 ? order < 0 : texts_[a].id < texts_[b].id;
  }};
  std::map<std::string, std::weak_ptr<View>> views_;
  std::list<ViewPtr> kept_;  // newest first
};

}  // namespace muster::portal
