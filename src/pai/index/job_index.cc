#include "pai/index/job_index.h"

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "pai/job/job.h"
#include "pai/people/records.h"

namespace muster::pai {
namespace {

/// How the list calls a job without a priority class.
constexpr std::string_view kNoClass = "default";

std::uint64_t version_of(const json::Value& object) {
  return static_cast<std::uint64_t>(parse_int(kube::resource_version_of(object)).value_or(0));
}

std::int32_t small(const json::Value& value) {
  return static_cast<std::int32_t>(json::as_int(value));
}

/// To the microsecond, where the job says it; what is shown has whole seconds.
Time submitted(const json::Value& framework) {
  const auto said = parse_time(kube::annotation(framework, kube::names::kSubmittedAt));
  return said ? *said : kube::creation_time(framework);
}

/// The first eight bytes as a number that is in the same order.
std::int64_t head_of(std::string_view text) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < 8; ++i)
    head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0U);
  return static_cast<std::int64_t>(head >> 1);
}

/// Frameworks that nobody submitted as a job of OpenPAI are not listed.
bool is_job(const json::Value& framework) {
  return !kube::annotation(framework, kube::names::pai::kJobName).empty() &&
         !kube::label(framework, kube::names::pai::kUserName).empty();
}

}  // namespace

std::uint32_t Words::number(std::string_view text) {
  const auto [found, added] =
      numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return found->second;
}

std::optional<std::uint32_t> Words::find(std::string_view text) const {
  const auto found = numbers_.find(std::string(text));
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> Words::ranks() const {
  std::vector<std::uint32_t> sorted(texts_.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::sort(sorted.begin(), sorted.end(), [this](std::uint32_t a, std::uint32_t b) {
    return texts_[a] < texts_[b];
  });
  std::vector<std::uint32_t> ranks(texts_.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) ranks[sorted[i]] = i;
  return ranks;
}

void JobIndex::follow(client::Informers& informers, const std::string& ns) {
  client::ListOptions where;
  where.ns = ns;
  client::InformerHandlers handlers;
  handlers.on_change = [this](const client::ObjectPtr& old_object,
                              const client::ObjectPtr& new_object) {
    const std::string name(kube::name_of(new_object ? *new_object : *old_object));
    put(name, new_object);
    for (const Told& each : told_) each(old_object, new_object);
  };
  informers.get(kube::resources::kFrameworks, where).add_handlers(std::move(handlers));
}

void JobIndex::wrote(const json::Value& framework) {
  put(std::string(kube::name_of(framework)), std::make_shared<const json::Value>(framework));
}

const Job* JobIndex::find(std::string_view framework) const {
  const auto found = slots_.find(std::string(framework));
  return found == slots_.end() ? nullptr : jobs_[found->second].get();
}

void JobIndex::put(const std::string& framework, const client::ObjectPtr& object) {
  const auto found = slots_.find(framework);
  if (!object || !is_job(*object)) {
    if (found != slots_.end()) erase(found->second);
    return;
  }
  if (found != slots_.end()) {
    const client::ObjectPtr& known = jobs_[found->second]->object;
    if (kube::uid_of(*known) == kube::uid_of(*object) && version_of(*known) > version_of(*object))
      return;
    fill(found->second, object);
    return;
  }
  slots_[framework] = jobs_.size();
  jobs_.push_back(std::make_unique<Job>());
  rows_.emplace_back();
  names_.emplace_back();
  fill(jobs_.size() - 1, object);
}

void JobIndex::fill(std::size_t slot, const client::ObjectPtr& object) {
  const json::Value summary = job_summary(*object);
  Job& job = *jobs_[slot];
  job.user = json::text_at(summary, "username");
  job.name = json::text_at(summary, "name");
  job.framework = std::string(kube::name_of(*object));
  job.tags = strings_of(json::at(summary, "tags"));
  job.summary = json::dump(summary);
  job.object = object;
  names_[slot] = job.name;
  const std::string_view priority = json::string_at(summary, "jobPriority");
  rows_[slot] = {.submitted_us = submitted(*object).us,
                 .completed_ms = json::int_at(summary, "completedTime"),
                 .retries = small(json::at(summary, "retries")),
                 .tasks = small(json::at(summary, "totalTaskNumber")),
                 .gpus = small(json::at(summary, "totalGpuNumber")),
                 .user = words_.number(job.user),
                 .vc = words_.number(json::string_at(summary, "virtualCluster")),
                 .state = words_.number(json::string_at(summary, "state")),
                 .priority = words_.number(priority.empty() ? kNoClass : priority)};
}

/// The last takes the free place.
void JobIndex::erase(std::size_t slot) {
  slots_.erase(jobs_[slot]->framework);
  if (slot + 1 != jobs_.size()) {
    jobs_[slot] = std::move(jobs_.back());
    rows_[slot] = rows_.back();
    names_[slot] = std::move(names_.back());
    slots_[jobs_[slot]->framework] = slot;
  }
  jobs_.pop_back();
  rows_.pop_back();
  names_.pop_back();
}

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
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!users.fits[row.user] || !vcs.fits[row.vc] || !states.fits[row.state] ||
        !priorities.fits[row.priority])
      continue;
    if (!has_keyword[row.user] && !has_keyword[row.vc] &&
        names_[i].find(query.keyword) == std::string::npos)
      continue;
    if (!query.tags_any.empty() && !tagged(i, query.tags_any)) continue;
    if (!query.tags_none.empty() && tagged(i, query.tags_none)) continue;
    slots.push_back(i);
  }
  return slots;
}

/// Brings the page's jobs to the front, in order: the newest first among equals, then by name of the
/// Framework.
void JobIndex::order(std::vector<std::uint32_t>& slots, const JobQuery& query) const {
  const std::vector<std::uint32_t> ranks = words_.ranks();
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
        return row.submitted_us;
      case JobOrder::kName:
        return head_of(names_[static_cast<std::size_t>(&row - rows_.data())]);
    }
    return 0;
  };
  const bool by_name = query.order == JobOrder::kName;
  struct Entry {
    std::int64_t key, submitted;
    std::uint32_t slot;
  };
  std::vector<Entry> entries;
  entries.reserve(slots.size());
  for (const std::uint32_t slot : slots)
    entries.push_back(
        {query.ascending ? key(rows_[slot]) : -key(rows_[slot]), -rows_[slot].submitted_us, slot});
  const auto before = [&](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key < b.key;
    if (by_name) {
      const int compared = names_[a.slot].compare(names_[b.slot]);
      if (compared != 0) return query.ascending ? compared < 0 : compared > 0;
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
  std::vector<std::uint32_t> slots = matching(query);
  page.total = slots.size();
  if (query.offset >= slots.size() || query.limit == 0) return page;
  order(slots, query);
  const std::size_t last = std::min(slots.size() - query.offset, query.limit) + query.offset;
  for (std::size_t i = query.offset; i < last; ++i) page.jobs.push_back(jobs_[slots[i]].get());
  return page;
}

}  // namespace muster::pai
