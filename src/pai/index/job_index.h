/// Every OpenPAI job in memory, ready to be listed: filtered, sorted and cut to a page without
/// touching a Framework. What a query looks at for each job stands in one array, the text of its
/// summary is made when the job changes. Jobs are kept in order by time, name and completion, and by
/// time within each user, virtual cluster, state and so on: a page of all jobs, or of those of one
/// user or state, costs its own length. Other filters look at the jobs of the rarest word they name.
/// On the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/informer.h"
#include "pai/index/ranked.h"

namespace muster::pai {

/// Small numbers for texts that many jobs share.
class Words {
 public:
  std::uint32_t number(std::string_view text);
  /// Nothing for a text that no job has.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view text) const;
  [[nodiscard]] const std::string& text(std::uint32_t number) const { return texts_[number]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  /// The place of each number when all texts are sorted; made anew only after a text has come.
  [[nodiscard]] const std::vector<std::uint32_t>& ranks() const;

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  mutable std::vector<std::uint32_t> ranks_;
};

/// A job as lists show it.
struct ListedJob {
  std::string user, name;
  std::string framework;  // its name
  std::vector<std::string> tags;
  std::string summary;  // JSON text
  client::ObjectPtr object;
};

enum class JobOrder {
  kSubmitted,
  kName,
  kUser,
  kVc,
  kRetries,
  kTasks,
  kGpus,
  kState,
  kCompleted,
  kPriority,
};

struct JobQuery {
  // Empty: all. One of the list must fit.
  std::vector<std::string> users, vcs, states, priorities;
  std::string keyword;  // part of the user, the job's name or the virtual cluster
  std::vector<std::string> tags_any, tags_none;
  JobOrder order = JobOrder::kSubmitted;
  bool ascending = false;
  std::size_t offset = 0;
  std::size_t limit = 5000;
};

struct JobPage {
  std::size_t total = 0;  // of all that fit
  std::vector<const ListedJob*> jobs;
};

class JobIndex {
 public:
  JobIndex();
  JobIndex(const JobIndex&) = delete;
  JobIndex& operator=(const JobIndex&) = delete;

  void follow(client::Informers& informers, const std::string& ns);
  /// What the server answered to a write, so that whoever wrote finds it.
  void wrote(const json::Value& framework);

  [[nodiscard]] const ListedJob* find(std::string_view framework) const;
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] JobPage list(const JobQuery& query) const;

  /// `old_job` null: new. `new_job` null: gone.
  using Told =
      std::function<void(const client::ObjectPtr& old_job, const client::ObjectPtr& new_job)>;
  void on_change(Told told) { told_.push_back(std::move(told)); }

  /// Adds, replaces or, with a null object, removes.
  void put(const std::string& framework, const client::ObjectPtr& object);

 private:
  struct Row {
    std::int64_t submitted_us = 0, completed_ms = 0;
    std::int32_t retries = 0, tasks = 0, gpus = 0;
    std::uint32_t user = 0, vc = 0, state = 0, priority = 0;
  };
  /// Jobs with the same word or number, the newest first.
  template <class Key>
  using Facet = std::map<Key, Ranked, std::less<>>;
  /// Lists that hold everything a query may find.
  using Parts = std::vector<const Ranked*>;
  struct Filter;

  [[nodiscard]] bool newer(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] Ranked newest_first() const;
  static unsigned moved_in(const Row& a, const Row& b);

  /// Puts the job at `slot` into some orders, or takes it out: a bit for each JobOrder.
  void link(std::uint32_t slot, unsigned orders);
  void unlink(std::uint32_t slot, unsigned orders);

  /// The lists that are the answer, one behind the other; nothing if jobs must be looked at.
  [[nodiscard]] std::optional<Parts> answer_of(const JobQuery& query) const;
  [[nodiscard]] Parts all_in_order(const JobQuery& query) const;
  /// The fewest jobs among which all that fit are; nothing if that is every job.
  [[nodiscard]] std::optional<Parts> candidates(const JobQuery& query) const;
  [[nodiscard]] std::vector<std::uint32_t> matching(const JobQuery& query) const;
  void order(std::vector<std::uint32_t>& slots, const JobQuery& query) const;
  void fill(std::size_t slot, const client::ObjectPtr& object);
  void erase(std::size_t slot);

  Words words_;
  std::vector<Row> rows_;
  std::vector<std::string> names_;  // of jobs, beside rows_
  std::vector<std::unique_ptr<ListedJob>> jobs_;
  std::unordered_map<std::string, std::size_t> slots_;  // by the Framework's name
  // Each holds every job once. Comparisons read rows_, names_ and jobs_, so a job is taken out before
  // those change.
  Ranked by_time_, by_name_, by_completion_;
  Facet<std::string> users_, vcs_, states_, priorities_;
  Facet<std::int32_t> retries_, tasks_, gpus_;
  std::vector<Told> told_;
};

}  // namespace muster::pai
