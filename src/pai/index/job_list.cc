/// What JobIndex::list answers, from the orders that job_index.cc keeps.
#include <algorithm>
#include <set>

#include "pai/index/job_index.h"
#include "pai/people/records.h"

namespace muster::pai {
namespace {

/// The first eight bytes as a number that is in the same order.
std::int64_t head_of(std::string_view text) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < 8; ++i)
    head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0U);
  return static_cast<std::int64_t>(head >> 1);
}

/// By time, name or completion: a list of all jobs, not one for each word or number.
bool has_own_list(JobOrder order) {
  return order == JobOrder::kSubmitted || order == JobOrder::kName || order == JobOrder::kCompleted;
}

/// The newest first is how jobs are kept by time; names and ends are kept ascending.
bool reads_backwards(const JobQuery& query) {
  if (query.order == JobOrder::kSubmitted) return query.ascending;
  return has_own_list(query.order) && !query.ascending;
}

/// The lists of a facet, in the order of its words or numbers.
template <class Facet>
std::vector<const Ranked*> sorted(const Facet& facet, bool ascending) {
  std::vector<const Ranked*> lists;
  for (const auto& [key, list] : facet) lists.push_back(&list);
  if (!ascending) std::reverse(lists.begin(), lists.end());
  return lists;
}

/// The same of some words only.
template <class Facet>
std::vector<const Ranked*> named(const Facet& facet,
                                 const std::vector<std::string>& wanted,
                                 bool ascending) {
  std::set<std::string> words(wanted.begin(), wanted.end());
  std::vector<const Ranked*> lists;
  for (const std::string& word : words)
    if (const auto found = facet.find(word); found != facet.end()) lists.push_back(&found->second);
  if (!ascending) std::reverse(lists.begin(), lists.end());
  return lists;
}

}  // namespace

/// For each number of a word, whether a job with it may fit.
struct JobIndex::Filter {
  Filter(const Words& words, const std::vector<std::string>& wanted)
      : all(wanted.empty()), fits(words.size(), wanted.empty()) {
    for (const std::string& text : wanted)
      if (const auto number = words.find(text)) fits[*number] = true;
  }
  bool all;
  std::vector<char> fits;
};

std::vector<std::uint32_t> JobIndex::matching(const JobQuery& query) const {
  const Filter users(words_, query.users), vcs(words_, query.vcs), states(words_, query.states),
      priorities(words_, query.priorities);
  std::vector<char> has_keyword(words_.size(), query.keyword.empty());
  if (!query.keyword.empty())
    for (std::uint32_t i = 0; i < words_.size(); ++i)
      has_keyword[i] = words_.text(i).find(query.keyword) != std::string::npos;
  const auto tagged = [&](std::size_t slot, const std::vector<std::string>& wanted) {
    const auto& tags = jobs_[slot]->tags;
    return std::any_of(
        wanted.begin(), wanted.end(), [&](const std::string& tag) { return contains(tags, tag); });
  };
  std::vector<std::uint32_t> slots;
  const auto look = [&](std::uint32_t i) {
    const Row& row = rows_[i];
    if (!users.fits[row.user] || !vcs.fits[row.vc] || !states.fits[row.state] ||
        !priorities.fits[row.priority])
      return true;
    if (!has_keyword[row.user] && !has_keyword[row.vc] &&
        names_[i].find(query.keyword) == std::string::npos)
      return true;
    if (!query.tags_any.empty() && !tagged(i, query.tags_any)) return true;
    if (!query.tags_none.empty() && tagged(i, query.tags_none)) return true;
    slots.push_back(i);
    return true;
  };
  if (const auto few = candidates(query)) {
    for (const Ranked* list : *few) list->walk(0, false, look);
  } else {
    for (std::uint32_t i = 0; i < rows_.size(); ++i) look(i);
  }
  return slots;
}

std::optional<JobIndex::Parts> JobIndex::candidates(const JobQuery& query) const {
  std::optional<Parts> best;
  std::size_t fewest = rows_.size();
  const auto weigh = [&](const auto& facet, const std::vector<std::string>& wanted) {
    if (wanted.empty()) return;
    Parts parts = named(facet, wanted, true);
    std::size_t jobs = 0;
    for (const Ranked* list : parts) jobs += list->size();
    if (jobs >= fewest) return;
    fewest = jobs;
    best = std::move(parts);
  };
  weigh(users_, query.users);
  weigh(vcs_, query.vcs);
  weigh(states_, query.states);
  weigh(priorities_, query.priorities);
  return best;
}

JobIndex::Parts JobIndex::all_in_order(const JobQuery& query) const {
  switch (query.order) {
    case JobOrder::kSubmitted:
      return {&by_time_};
    case JobOrder::kName:
      return {&by_name_};
    case JobOrder::kCompleted:
      return {&by_completion_};
    case JobOrder::kUser:
      return sorted(users_, query.ascending);
    case JobOrder::kVc:
      return sorted(vcs_, query.ascending);
    case JobOrder::kState:
      return sorted(states_, query.ascending);
    case JobOrder::kPriority:
      return sorted(priorities_, query.ascending);
    case JobOrder::kRetries:
      return sorted(retries_, query.ascending);
    case JobOrder::kTasks:
      return sorted(tasks_, query.ascending);
    case JobOrder::kGpus:
      return sorted(gpus_, query.ascending);
  }
  return {};
}

std::optional<JobIndex::Parts> JobIndex::answer_of(const JobQuery& query) const {
  if (!query.keyword.empty() || !query.tags_any.empty() || !query.tags_none.empty())
    return std::nullopt;
  std::optional<Parts> parts;
  int filters = 0;
  const auto take = [&](const auto& facet, const std::vector<std::string>& wanted, JobOrder own) {
    if (wanted.empty()) return;
    ++filters;
    if (query.order == own || (query.order == JobOrder::kSubmitted && wanted.size() == 1))
      parts = named(facet, wanted, query.ascending);
  };
  take(users_, query.users, JobOrder::kUser);
  take(vcs_, query.vcs, JobOrder::kVc);
  take(states_, query.states, JobOrder::kState);
  take(priorities_, query.priorities, JobOrder::kPriority);
  if (filters == 0) return all_in_order(query);
  return filters == 1 ? parts : std::nullopt;
}

/// Brings the page's jobs to the front, in order: the newest first among equals, then by name of the
/// Framework. What has an order of its own beside the words is read from the other end for the
/// other direction.
void JobIndex::order(std::vector<std::uint32_t>& slots, const JobQuery& query) const {
  const std::vector<std::uint32_t>& ranks = words_.ranks();
  const auto key = [&](const Row& row) -> std::int64_t {
    switch (query.order) {
      case JobOrder::kUser:
        return ranks[row.user];
      case JobOrder::kVc:
        return ranks[row.vc];
      case JobOrder::kState:
        return ranks[row.state];
      case JobOrder::kPriority:
        return ranks[row.priority];
      case JobOrder::kRetries:
        return row.retries;
      case JobOrder::kTasks:
        return row.tasks;
      case JobOrder::kGpus:
        return row.gpus;
      case JobOrder::kCompleted:
        return row.completed_ms;
      case JobOrder::kSubmitted:
        return -row.submitted_us;
      case JobOrder::kName:
        return head_of(names_[static_cast<std::size_t>(&row - rows_.data())]);
    }
    return 0;
  };
  const bool by_name = query.order == JobOrder::kName;
  const bool backwards = reads_backwards(query);
  // Words and small numbers turn around, and the newest stay first among equals.
  const bool turned = !query.ascending && !has_own_list(query.order);
  struct Entry {
    std::int64_t key, submitted;
    std::uint32_t slot;
  };
  std::vector<Entry> entries;
  entries.reserve(slots.size());
  for (const std::uint32_t slot : slots)
    entries.push_back(
        {turned ? -key(rows_[slot]) : key(rows_[slot]), -rows_[slot].submitted_us, slot});
  const auto before = [&](const Entry& one, const Entry& other) {
    const Entry &a = backwards ? other : one, &b = backwards ? one : other;
    if (a.key != b.key) return a.key < b.key;
    if (by_name) {
      const int compared = names_[a.slot].compare(names_[b.slot]);
      if (compared != 0) return compared < 0;
    }
    if (a.submitted != b.submitted) return a.submitted < b.submitted;
    return jobs_[a.slot]->framework < jobs_[b.slot]->framework;
  };
  const std::size_t first = std::min(query.offset, entries.size());
  const std::size_t last = std::min(entries.size() - first, query.limit) + first;
  const auto begin = entries.begin();
  const auto at = [begin](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  if (last < entries.size()) std::nth_element(begin, at(last), entries.end(), before);
  if (first > 0 && first < last) std::nth_element(begin, at(first), at(last), before);
  std::sort(at(first), at(last), before);
  for (std::size_t i = 0; i < entries.size(); ++i) slots[i] = entries[i].slot;
}

JobPage JobIndex::list(const JobQuery& query) const {
  JobPage page;
  if (const auto parts = answer_of(query)) {
    std::size_t skip = query.offset;
    for (const Ranked* list : *parts) {
      page.total += list->size();
      const std::size_t here = std::min(skip, list->size());
      skip -= here;
      if (page.jobs.size() < query.limit && here < list->size())
        list->walk(here, reads_backwards(query), [&](std::uint32_t slot) {
          page.jobs.push_back(jobs_[slot].get());
          return page.jobs.size() < query.limit;
        });
    }
    return page;
  }
  std::vector<std::uint32_t> slots = matching(query);
  page.total = slots.size();
  if (query.offset >= slots.size() || query.limit == 0) return page;
  order(slots, query);
  const std::size_t last = std::min(slots.size() - query.offset, query.limit) + query.offset;
  for (std::size_t i = query.offset; i < last; ++i) page.jobs.push_back(jobs_[slots[i]].get());
  return page;
}

}  // namespace muster::pai
