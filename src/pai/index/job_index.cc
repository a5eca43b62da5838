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

constexpr unsigned bit(JobOrder order) { return 1U << static_cast<unsigned>(order); }
constexpr unsigned kAllOrders = ~0U;

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

const std::vector<std::uint32_t>& Words::ranks() const {
  if (ranks_.size() == texts_.size()) return ranks_;
  std::vector<std::uint32_t> sorted(texts_.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::sort(sorted.begin(), sorted.end(), [this](std::uint32_t a, std::uint32_t b) {
    return texts_[a] < texts_[b];
  });
  ranks_.resize(texts_.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) ranks_[sorted[i]] = i;
  return ranks_;
}

JobIndex::JobIndex()
    : by_time_(newest_first()),
      by_name_([this](std::uint32_t a, std::uint32_t b) {
        const int compared = names_[a].compare(names_[b]);
        return compared != 0 ? compared < 0 : newer(a, b);
      }),
      by_completion_([this](std::uint32_t a, std::uint32_t b) {
        const auto first = rows_[a].completed_ms, second = rows_[b].completed_ms;
        return first != second ? first < second : newer(a, b);
      }) {}

bool JobIndex::newer(std::uint32_t a, std::uint32_t b) const {
  if (rows_[a].submitted_us != rows_[b].submitted_us)
    return rows_[a].submitted_us > rows_[b].submitted_us;
  return jobs_[a]->framework < jobs_[b]->framework;
}

Ranked JobIndex::newest_first() const {
  return Ranked([this](std::uint32_t a, std::uint32_t b) { return newer(a, b); });
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

const ListedJob* JobIndex::find(std::string_view framework) const {
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
  jobs_.push_back(std::make_unique<ListedJob>());
  rows_.emplace_back();
  names_.emplace_back();
  fill(jobs_.size() - 1, object);
}

void JobIndex::fill(std::size_t slot, const client::ObjectPtr& object) {
  const json::Value summary = job_summary(*object);
  const auto at = static_cast<std::uint32_t>(slot);
  ListedJob& job = *jobs_[slot];
  const bool fresh = job.framework.empty();
  const std::string user = json::text_at(summary, "username");
  const std::string_view priority = json::string_at(summary, "jobPriority");
  const Row row = {.submitted_us = submitted(*object).us,
                   .completed_ms = json::int_at(summary, "completedTime"),
                   .retries = small(json::at(summary, "retries")),
                   .tasks = small(json::at(summary, "totalTaskNumber")),
                   .gpus = small(json::at(summary, "totalGpuNumber")),
                   .user = words_.number(user),
                   .vc = words_.number(json::string_at(summary, "virtualCluster")),
                   .state = words_.number(json::string_at(summary, "state")),
                   .priority = words_.number(priority.empty() ? kNoClass : priority)};
  std::string name = json::text_at(summary, "name");
  unsigned moved = fresh ? kAllOrders : moved_in(rows_[slot], row);
  if (name != names_[slot]) moved |= bit(JobOrder::kName);
  if (!fresh) unlink(at, moved);
  rows_[slot] = row;
  names_[slot] = name;
  job.user = user;
  job.name = std::move(name);
  job.framework = std::string(kube::name_of(*object));
  job.tags = strings_of(json::at(summary, "tags"));
  job.summary = json::dump(summary);
  job.object = object;
  link(at, moved);
}

/// The orders in which a job has another place.
unsigned JobIndex::moved_in(const Row& a, const Row& b) {
  if (a.submitted_us != b.submitted_us) return kAllOrders;
  unsigned moved = 0;
  if (a.completed_ms != b.completed_ms) moved |= bit(JobOrder::kCompleted);
  if (a.retries != b.retries) moved |= bit(JobOrder::kRetries);
  if (a.tasks != b.tasks) moved |= bit(JobOrder::kTasks);
  if (a.gpus != b.gpus) moved |= bit(JobOrder::kGpus);
  if (a.user != b.user) moved |= bit(JobOrder::kUser);
  if (a.vc != b.vc) moved |= bit(JobOrder::kVc);
  if (a.state != b.state) moved |= bit(JobOrder::kState);
  if (a.priority != b.priority) moved |= bit(JobOrder::kPriority);
  return moved;
}

void JobIndex::link(std::uint32_t slot, unsigned orders) {
  const Row& row = rows_[slot];
  const auto into = [&](Ranked& list, JobOrder order) {
    if ((orders & bit(order)) != 0) list.insert(slot);
  };
  const auto among = [&](auto& facet, const auto& key, JobOrder order) {
    if ((orders & bit(order)) != 0)
      facet.try_emplace(key, newest_first()).first->second.insert(slot);
  };
  into(by_time_, JobOrder::kSubmitted);
  into(by_name_, JobOrder::kName);
  into(by_completion_, JobOrder::kCompleted);
  among(users_, words_.text(row.user), JobOrder::kUser);
  among(vcs_, words_.text(row.vc), JobOrder::kVc);
  among(states_, words_.text(row.state), JobOrder::kState);
  among(priorities_, words_.text(row.priority), JobOrder::kPriority);
  among(retries_, row.retries, JobOrder::kRetries);
  among(tasks_, row.tasks, JobOrder::kTasks);
  among(gpus_, row.gpus, JobOrder::kGpus);
}

void JobIndex::unlink(std::uint32_t slot, unsigned orders) {
  const Row& row = rows_[slot];
  const auto from = [&](Ranked& list, JobOrder order) {
    if ((orders & bit(order)) != 0) list.erase(slot);
  };
  const auto among = [&](auto& facet, const auto& key, JobOrder order) {
    if ((orders & bit(order)) == 0) return;
    const auto found = facet.find(key);
    found->second.erase(slot);
    if (found->second.size() == 0) facet.erase(found);
  };
  from(by_time_, JobOrder::kSubmitted);
  from(by_name_, JobOrder::kName);
  from(by_completion_, JobOrder::kCompleted);
  among(users_, words_.text(row.user), JobOrder::kUser);
  among(vcs_, words_.text(row.vc), JobOrder::kVc);
  among(states_, words_.text(row.state), JobOrder::kState);
  among(priorities_, words_.text(row.priority), JobOrder::kPriority);
  among(retries_, row.retries, JobOrder::kRetries);
  among(tasks_, row.tasks, JobOrder::kTasks);
  among(gpus_, row.gpus, JobOrder::kGpus);
}

/// The last takes the free place.
void JobIndex::erase(std::size_t slot) {
  unlink(static_cast<std::uint32_t>(slot), kAllOrders);
  slots_.erase(jobs_[slot]->framework);
  const std::size_t last = jobs_.size() - 1;
  if (slot != last) {
    unlink(static_cast<std::uint32_t>(last), kAllOrders);
    jobs_[slot] = std::move(jobs_[last]);
    rows_[slot] = rows_[last];
    names_[slot] = std::move(names_[last]);
    slots_[jobs_[slot]->framework] = slot;
    link(static_cast<std::uint32_t>(slot), kAllOrders);
  }
  jobs_.pop_back();
  rows_.pop_back();
  names_.pop_back();
}

}  // namespace muster::pai
