#include "answers/score.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "answers/calibration.h"
#include "answers/durations.h"
#include "answers/forecast.h"
#include "answers/rehearsal.h"
#include "sim/trace_world.h"

namespace muster::answers {
namespace {

using sim::Job;
using Ix = sim::Course::Ix;

constexpr Duration kTick = std::chrono::seconds(7200);
constexpr std::int64_t kEverySubmission = 20;
constexpr std::size_t kAskedATick = 3;
constexpr std::int64_t kLarge = 8;

double seconds_of(Duration d) { return static_cast<double>(d.count()) / 1e6; }

using Said = SaidWait;

struct Moment {
  std::size_t job = 0;
  Time at;
  bool at_submission = false;
  bool scored = false;
  std::map<std::string_view, Said> said;
  std::map<std::string_view, double> cpu_s;
  Basis basis = Basis::kNone;
  Quantiles range;        ///< As said by the shared draws, for the calibration.
  Quantiles independent;  ///< Likewise by the independent ones.
};

/// How long each job of the trace really takes.
class TrueDurations : public Lasting {
 public:
  explicit TrueDurations(const sim::TraceWorld& world) : world_(world) {}
  [[nodiscard]] Drawn draw(const engine::GangView& gang, Duration, std::int32_t) const override {
    return {world_.jobs()[world_.job_named(gang.key)].duration, Source::kDeclared, 0, true};
  }

 private:
  const sim::TraceWorld& world_;
};

/// The middle of the last 50 ends of its team and size that lasted longer than it has run.
class OneNumber : public Lasting {
 public:
  OneNumber(const engine::Engine& engine, bool median)
      : history_(engine.shared_history()), median_(median) {}
  [[nodiscard]] Drawn draw(const engine::GangView& gang,
                           Duration age,
                           std::int32_t) const override {
    if (gang.declared > age) return {gang.declared, Source::kDeclared, 0, true};
    std::int64_t us = engine::History::kUnknown;
    if (median_) {
      const auto levels = history_->levels(gang.kind);
      for (std::size_t i = 2; i < levels.size() && us == engine::History::kUnknown; ++i)
        us = median_of_last(levels[i], age.count());
    } else {
      us = history_->estimate(gang.kind, age.count(), 500);
    }
    if (us == engine::History::kUnknown)
      us = std::max<std::int64_t>(age.count() * 2, 3'600'000'000);
    return {Duration(us), Source::kLearned, 0, true};
  }

 private:
  std::int64_t median_of_last(std::uint32_t level, std::int64_t age) const {
    if (level == engine::History::kNone) return engine::History::kUnknown;
    std::vector<std::int64_t> last = history_->last_ended(level, 50);
    std::erase_if(last, [&](std::int64_t us) { return us <= age; });
    if (last.empty()) return engine::History::kUnknown;
    std::nth_element(
        last.begin(), last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2), last.end());
    return last[last.size() / 2];
  }
  std::shared_ptr<const engine::History> history_;
  bool median_;
};

/// Waits of jobs that started, by size.
class PastWaits {
 public:
  void add(std::int64_t gpus, double wait_s) {
    auto& last = waits_[band(gpus)];
    last.push_back(wait_s);
    if (last.size() > 100) last.pop_front();
  }
  [[nodiscard]] Said last(std::int64_t gpus, double waited_s, double horizon_s) const {
    const auto& all = waits_[band(gpus)];
    if (all.empty()) return none(horizon_s);
    const double left = std::max(0.0, all.back() - waited_s);
    return {left, left, left, true, false};
  }
  [[nodiscard]] Said quantiles(std::int64_t gpus, double waited_s, double horizon_s) const {
    std::vector<double> longer;
    for (const double w : waits_[band(gpus)]) {
      if (w > waited_s) longer.push_back(w - waited_s);
    }
    if (longer.size() < 5) return none(horizon_s);
    std::sort(longer.begin(), longer.end());
    const auto at = [&](double p) {
      return longer[static_cast<std::size_t>(p * static_cast<double>(longer.size() - 1) + 0.5)];
    };
    return {at(0.1), at(0.5), at(0.9), true, true};
  }
  static Said none(double horizon_s) { return {0, 3600, horizon_s, false, true}; }

 private:
  static std::size_t band(std::int64_t gpus) {
    return gpus <= 1 ? 0 : gpus <= 4 ? 1 : gpus <= 8 ? 2 : 3;
  }
  std::array<std::deque<double>, 4> waits_;
};

/// The replay, with a decision every two hours whatever happens.
class Ticking : public sim::TraceWorld {
 public:
  using sim::TraceWorld::TraceWorld;

 protected:
  void tick_from(Time first, Time last) {
    next_tick_ = first;
    last_tick_ = last;
  }
  [[nodiscard]] std::optional<Time> next_change() const override {
    auto next = TraceWorld::next_change();
    // Ticks go on while jobs arrive.
    if (next && next_tick_ < last_tick_) next = std::min(*next, next_tick_);
    return next;
  }
  void change() override {
    TraceWorld::change();
    while (next_tick_ <= now()) {
      next_tick_ = next_tick_ + kTick;
      ticked();
    }
  }
  virtual void ticked() {}

 private:
  Time next_tick_, last_tick_;
};

/// The replay, which stops at moments to ask.
class Scorer : public Ticking {
 public:
  Scorer(const std::vector<Job>& jobs,
         const std::vector<engine::Node>& nodes,
         const sim::Policy& policy,
         const ScoreSettings& settings,
         const std::function<double()>& seconds)
      : Ticking(
            jobs, nodes, policy, [&](std::size_t i) { return is_told(settings.told, jobs[i]); }),
        settings_(settings),
        seconds_(seconds),
        starts_(jobs.size()) {
    if (settings_.to.count() == 0) settings_.to = Duration::max();
    settings_.warm_up = std::min(settings_.warm_up, settings_.from);
    const bool to_the_end = settings_.to == Duration::max();
    tick_from(kBegin + settings_.from - settings_.warm_up,
              to_the_end ? Time{std::numeric_limits<std::int64_t>::max()} : kBegin + settings_.to);
  }

  Score run() {
    play(Time{std::numeric_limits<std::int64_t>::max() / 2});
    return conclude();
  }

 protected:
  static bool is_told(Told told, const Job& job) {
    if (told != Told::kHalf) return told == Told::kAll;
    return (static_cast<std::uint64_t>(job.id) * 2654435761ULL & 0xffffffffULL) < 0x80000000ULL;
  }

  void change() override {
    const std::size_t first = next_job();
    Ticking::change();
    for (std::size_t i = first; i < next_job(); ++i) submitted_.push_back(i);
  }
  void ticked() override { ticked_ = true; }
  void started(Ix gang) override {
    const std::size_t job = job_of(gang);
    if (!starts_[job]) starts_[job] = now();
    waiting_.erase(job);
    past_.add(jobs()[job].gpus_total(), seconds_of(now() - (kBegin + jobs()[job].submit)));
    judge(job);
  }
  void ended(Ix gang) override {
    (void)gang;
    ++ended_;
  }
  void decided() override {
    std::vector<std::pair<std::size_t, bool>> asked;
    for (const std::size_t job : submitted_) {
      const Duration submit = jobs()[job].submit;
      if (starts_[job]) continue;
      waiting_.insert(job);
      if (submit >= settings_.from - settings_.warm_up && submit < settings_.to &&
          jobs()[job].id % kEverySubmission == 0)
        asked.emplace_back(job, true);
    }
    submitted_.clear();
    if (ticked_) {
      std::vector<std::pair<std::uint64_t, std::size_t>> order;
      const auto tick = static_cast<std::uint64_t>((now() - kBegin) / kTick);
      for (const std::size_t job : waiting_)
        order.emplace_back(engine::hash_name(fmt::format("{}/{}", jobs()[job].id, tick)), job);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < std::min(order.size(), kAskedATick); ++i)
        asked.emplace_back(order[i].second, false);
    }
    ticked_ = false;
    // All are asked, so that ranges learn from all; some are scored.
    const bool warm = now() >= kBegin + settings_.from;
    std::vector<std::pair<std::size_t, bool>> scored;
    std::erase_if(asked, [&](const auto& moment) {
      if (!warm || ++seen_ % settings_.every != 0) return false;
      scored.push_back(moment);
      return true;
    });
    if (!asked.empty()) ask(asked, false);
    if (!scored.empty()) ask(scored, true);
  }

 private:
  template <typename F>
  double timed(F&& f) {
    const double before = seconds_ ? seconds_() : 0;
    f();
    return seconds_ ? seconds_() - before : 0;
  }

  void ask(const std::vector<std::pair<std::size_t, bool>>& asked, bool scored) {
    std::vector<Moment> moments;
    Ask question;
    question.horizon = settings_.horizon;
    question.draws = settings_.draws;
    for (const auto& [job, at_submission] : asked) {
      Moment m;
      m.job = job;
      m.at = now();
      m.at_submission = at_submission;
      m.scored = scored;
      moments.push_back(std::move(m));
      question.jobs.push_back(jobs()[job].name);
    }
    by_courses(kShared, SharedDraws(engine(), now(), {0, 600, settings_.draws}), question, moments);
    if (scored && settings_.baselines) {
      by_courses(kIndependent, SharedDraws(engine(), now(), {0, 0}), question, moments);
      Ask one = question;
      one.draws = 1;
      by_courses(kOneEstimate, OneNumber(engine(), false), one, moments);
      by_courses(kOneMedian, OneNumber(engine(), true), one, moments);
      by_courses(kTrue, TrueDurations(*this), one, moments);
      for (Moment& m : moments) {
        const std::int64_t gpus = jobs()[m.job].gpus_total();
        const double waited = seconds_of(now() - (kBegin + jobs()[m.job].submit));
        m.said[kLastWait] = past_.last(gpus, waited, seconds_of(settings_.horizon));
        m.said[kPastWaits] = past_.quantiles(gpus, waited, seconds_of(settings_.horizon));
      }
    }
    if (scored && settings_.check_harness) check_harness(moments);
    for (Moment& m : moments) {
      open_[m.job].push_back(moments_.size());
      moments_.push_back(std::move(m));
    }
  }

  void by_courses(std::string_view name,
                  const Lasting& lasting,
                  const Ask& question,
                  std::vector<Moment>& moments) {
    Forecasts answers;
    const double cpu = timed([&] { answers = forecast_all(engine(), now(), lasting, question); });
    for (std::size_t i = 0; i < moments.size(); ++i) {
      const Start& start = answers.jobs[i].start;
      Moment& m = moments[i];
      m.cpu_s[name] = cpu / static_cast<double>(moments.size());
      Quantiles range = start.range;
      if (name == kShared) {
        range = calibration_.widen({start.basis, now(), waited(m), range});
        m.basis = start.basis;
        m.range = range;
      }
      if (name == kIndependent) {
        m.independent = independent_.widen({Basis::kLearned, now(), waited(m), range});
        m.said[kCalibrated] = said_of(m.independent, question.draws);
      }
      if (name == kShared && start.basis == Basis::kNone) {
        m.said[name] = PastWaits::none(seconds_of(settings_.horizon));
        continue;
      }
      m.said[name] = said_of(range, question.draws);
    }
  }

  [[nodiscard]] Said said_of(const Quantiles& range, std::int32_t draws) const {
    const auto in_s = [&](const std::optional<Time>& at) {
      return at ? seconds_of(*at - now()) : seconds_of(settings_.horizon);
    };
    Said said;
    said.p50 = in_s(range.p50);
    said.range = draws > 1;
    said.p10 = said.range ? in_s(range.p10) : said.p50;
    said.p90 = said.range ? in_s(range.p90) : said.p50;
    return said;
  }

  /// With the rest of the trace in hand the course must be the replay itself.
  void check_harness(std::vector<Moment>& moments);

  [[nodiscard]] Duration waited(const Moment& m) const {
    return m.at - (kBegin + jobs()[m.job].submit);
  }

  void judge(std::size_t job) {
    const auto open = open_.find(job);
    if (open == open_.end()) return;
    for (const std::size_t i : open->second) {
      const Moment& m = moments_[i];
      calibration_.judge({m.basis, m.at, waited(m), m.range}, now());
      if (m.independent.p50)
        independent_.judge({Basis::kLearned, m.at, waited(m), m.independent}, now());
    }
    open_.erase(open);
  }

  Score conclude();
  Figures figures(std::string_view name, const std::vector<const Moment*>& moments) const;

  ScoreSettings settings_;
  std::function<double()> seconds_;
  std::vector<std::optional<Time>> starts_;
  std::set<std::size_t> waiting_;
  std::vector<std::size_t> submitted_;
  PastWaits past_;
  Calibration calibration_, independent_;
  std::vector<Moment> moments_;
  std::map<std::size_t, std::vector<std::size_t>> open_;  ///< Moments by job that waits.
  bool ticked_ = false;
  std::int64_t seen_ = 0, ended_ = 0;
  std::vector<std::pair<std::size_t, Time>> harness_;  ///< Starts that the check foretold.
};

void Scorer::check_harness(std::vector<Moment>& moments) {
  class Future : public Ticking {
   public:
    Future(const Scorer& now, const std::set<std::size_t>& asked)
        : Ticking(now), asked_(asked), left_(asked.size()) {}
    std::map<std::size_t, Time> starts;

   protected:
    void started(Ix gang) override {
      const std::size_t job = job_of(gang);
      if (asked_.contains(job) && starts.emplace(job, now()).second) --left_;
    }
    [[nodiscard]] bool over() const override { return left_ == 0; }

   private:
    const std::set<std::size_t>& asked_;
    std::size_t left_;
  };
  std::set<std::size_t> asked;
  for (const Moment& m : moments) asked.insert(m.job);
  Future future(*this, asked);
  future.play(now() + std::chrono::hours(24 * 365));
  for (const auto& [job, start] : future.starts) harness_.emplace_back(job, start);
}

Figures Scorer::figures(std::string_view name, const std::vector<const Moment*>& moments) const {
  Tally tally;
  for (const Moment* m : moments) {
    const auto said = m->said.find(name);
    if (said == m->said.end()) continue;
    const auto cpu = m->cpu_s.find(name);
    tally.add(said->second,
              seconds_of(*starts_[m->job] - m->at),
              cpu == m->cpu_s.end() ? 0 : cpu->second);
  }
  return tally.figures(std::string(name));
}

Score Scorer::conclude() {
  Score out;
  std::vector<const Moment*> sets[4];
  for (const Moment& m : moments_) {
    if (!starts_[m.job] || !m.scored) continue;
    const bool large = jobs()[m.job].gpus_total() > kLarge;
    sets[m.at_submission ? 0 : 1].push_back(&m);
    if (large) sets[m.at_submission ? 2 : 3].push_back(&m);
    if (seconds_of(*starts_[m.job] - m.at) < 60) {
      ++out.soon_moments;
      out.soon += m.said.at(kShared).p50 < 60 ? 1 : 0;
    }
  }
  if (out.soon_moments > 0) out.soon /= static_cast<double>(out.soon_moments);
  const char* names[] = {"S", "L", "S, above 8 GPUs", "L, above 8 GPUs"};
  for (std::size_t i = 0; i < 4; ++i) {
    Scored scored{names[i], {}};
    for (const std::string_view name : {kLastWait,
                                        kPastWaits,
                                        kOneEstimate,
                                        kOneMedian,
                                        kIndependent,
                                        kCalibrated,
                                        kShared,
                                        kTrue}) {
      Figures f = figures(name, sets[i]);
      if (f.moments > 0) scored.rows.push_back(std::move(f));
    }
    out.sets.push_back(std::move(scored));
  }
  for (const auto& [job, start] : harness_) {
    const double wait = seconds_of(*starts_[job] - (kBegin + jobs()[job].submit));
    out.worst_harness = std::max(
        out.worst_harness, std::abs(seconds_of(*starts_[job] - start)) / std::max(wait, 60.0));
  }
  return out;
}

}  // namespace

Score score(const std::vector<sim::Job>& jobs,
            const std::vector<engine::Node>& nodes,
            const sim::Policy& policy,
            const ScoreSettings& settings,
            const std::function<double()>& seconds) {
  return Scorer(jobs, nodes, policy, settings, seconds).run();
}

std::string score_table(const Score& score) {
  std::string out =
      fmt::format("{:<18} {:<30} {:>5} {:>6} {:>6} {:>5} {:>6} {:>7} {:>6} {:>8} {:>9}\n",
                  "MOMENTS",
                  "FORECAST",
                  "N",
                  "ERR",
                  "P75",
                  "X2",
                  "HOLDS",
                  "WIDTH",
                  "LP",
                  "ANSWERED",
                  "CPU MS");
  for (const Scored& set : score.sets) {
    for (const Figures& f : set.rows) {
      const std::string holds = f.holds < 0 ? "-" : fmt::format("{:.0f}%", f.holds * 100);
      const std::string width = f.holds < 0 ? "-" : fmt::format("{:.1f}", f.width);
      out += fmt::format(
          "{:<18} {:<30} {:>5} {:>6.2f} {:>6.2f} {:>4.0f}% {:>6} {:>7} {:>6.2f} {:>7.0f}% {:>9.1f}\n",
          set.moments,
          f.name,
          f.moments,
          f.err,
          f.err75,
          f.x2 * 100,
          holds,
          width,
          f.loss,
          f.answered * 100,
          f.cpu_s * 1000);
    }
  }
  if (score.soon_moments > 0)
    out += fmt::format("started within a minute: {} moments, {:.0f}% were forecast to\n",
                       score.soon_moments,
                       score.soon * 100);
  return out;
}

json::Value score_json(const Score& score) {
  json::Array sets;
  for (const Scored& set : score.sets) {
    json::Array rows;
    for (const Figures& f : set.rows) {
      json::Object row{{"forecast", f.name},
                       {"moments", f.moments},
                       {"err", f.err},
                       {"errP75", f.err75},
                       {"x2", f.x2},
                       {"loss", f.loss},
                       {"answered", f.answered},
                       {"cpuSeconds", f.cpu_s}};
      if (f.holds >= 0) row["holds"] = f.holds;
      if (f.holds >= 0) row["width"] = f.width;
      rows.push_back(std::move(row));
    }
    sets.push_back(json::Object{{"moments", set.moments}, {"rows", std::move(rows)}});
  }
  return json::Object{{"sets", std::move(sets)},
                      {"soon", json::Object{{"moments", score.soon_moments}, {"told", score.soon}}},
                      {"worstHarness", score.worst_harness}};
}

}  // namespace muster::answers
