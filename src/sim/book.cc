#include "sim/book.h"

#include <algorithm>

namespace muster::sim {

Book::Book(const std::vector<Job>& jobs, const Policy& policy)
    : jobs_(jobs), policy_(policy), state_(jobs.size()) {
  outcome_.policy = policy.name;
  outcome_.jobs.resize(jobs.size());
  std::map<std::string, std::size_t> queues;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    outcome_.jobs[i].submit = jobs[i].submit;
    outcome_.jobs[i].gpus = jobs[i].gpus_total();
    outcome_.jobs[i].queue = jobs[i].queue;
    const auto [it, fresh] = queues.try_emplace(jobs[i].queue, outcome_.queues.size());
    if (fresh) outcome_.queues.push_back(jobs[i].queue);
    state_[i].queue = it->second;
    state_[i].left = jobs[i].duration;
  }
  used_by_queue_.resize(outcome_.queues.size());
}

Outcome Book::run(const std::function<void(double)>& progress) {
  std::size_t next = 0, ended = 0, reported = 0;
  while (next < jobs_.size() || !completions_.empty() || wake()) {
    Duration now = next < jobs_.size() ? jobs_[next].submit : Duration::max();
    if (!completions_.empty()) now = std::min(now, completions_.top().at);
    if (const auto again = wake()) {
      // With nothing arriving or ending, a wake-up can change nothing but reservations; it ends the
      // replay at last.
      if (next >= jobs_.size() && completions_.empty() &&
          *again > last_ + std::chrono::hours(24 * 365))
        break;
      now = std::min(now, std::max(last_, *again));
    }
    last_ = now;
    while (!completions_.empty() && completions_.top().at <= now) {
      const Completion completion = completions_.top();
      completions_.pop();
      JobState& state = state_[completion.job];
      if (completion.run != state.run || !state.running) continue;
      release(completion.job, true);
      state.running = false;
      outcome_.jobs[completion.job].end = now;
      sample(now);
      ++ended;
    }
    advance(now);
    for (; next < jobs_.size() && jobs_[next].submit <= now; ++next) {
      ++waiting_;
      submit(next);
    }
    decide(now);
    if (progress && ended >= reported + 500) {
      reported = ended;
      progress(static_cast<double>(ended) / static_cast<double>(jobs_.size()));
    }
  }
  outcome_.makespan = last_;
  return std::move(outcome_);
}

void Book::start(std::size_t job, Duration now) {
  JobState& state = state_[job];
  ++state.run;
  state.running = true;
  state.started = now;
  --waiting_;
  JobResult& result = outcome_.jobs[job];
  if (!result.started) result.start = now;
  result.started = true;
  completions_.push({now + state.left, job, state.run});
}

void Book::evict(std::size_t job, Duration now) {
  JobState& state = state_[job];
  ++outcome_.jobs[job].evictions;
  ++outcome_.evictions;
  if (state.running) {
    if (policy_.resume)
      state.left = std::max<Duration>(std::chrono::seconds(1), state.left - (now - state.started));
    ++waiting_;
  }
  release(job, false);
  state.running = false;
}

void Book::use(std::size_t job, std::int64_t gpu_milli) {
  used_milli_ += gpu_milli;
  used_by_queue_[state_[job].queue] += gpu_milli;
}

void Book::sample(Duration now) {
  // A report needs hundreds of points, not one for each job.
  if (!outcome_.samples.empty() && now - outcome_.samples.back().at < std::chrono::seconds(300))
    return;
  Sample sample;
  sample.at = now;
  sample.gpu_milli_used = used_milli_;
  sample.jobs_waiting = waiting_;
  sample.by_queue = used_by_queue_;
  measure(sample);
  outcome_.samples.push_back(std::move(sample));
}

}  // namespace muster::sim
