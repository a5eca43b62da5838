#include "answers/forecast.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "answers/quantiles.h"
#include "answers/rehearsal.h"

namespace muster::answers {
namespace {

using Ix = sim::Course::Ix;

constexpr std::size_t kWaitsForMax = 5;

}  // namespace

class Courses::Played {
 public:
  Played(const engine::Engine& engine, Time now, const Lasting& lasting, Ask ask)
      : now_(now),
        lasting_(lasting),
        ask_(std::move(ask)),
        cast_(std::make_shared<const sim::Cast>(engine)) {
    settings_.quantum = ask_.quantum;
    settings_.grace = ask_.grace;
    settings_.breathe = ask_.breathe;
    known_.revision = engine.digest();
    choose(engine);
    if (asked_.empty()) return;
    begin_.emplace(engine.rehearsal());
    // Where every end is settled all courses are one, and it may be played to the second.
    certain_ = std::all_of(cast_->gangs.begin(), cast_->gangs.end(), [&](const auto& g) {
      const Duration age = g.started ? std::max(Duration{}, now_ - g.started) : Duration{};
      return lasting_.draw(g, age, 0).certain;
    });
    if (certain_) settings_.quantum = Duration{};
  }

  void play(std::int32_t draws) {
    while (!over() && known_.draws < draws) {
      if (ask_.go_on && !ask_.go_on()) {
        known_.cut = true;
        break;
      }
      Rehearsal course(*begin_, cast_, now_, settings_, lasting_, known_.draws, asked_);
      course.play(now_ + ask_.horizon);
      do {
        note(course);
        ++known_.draws;
      } while (certain_ && known_.draws < ask_.draws);
    }
  }

  [[nodiscard]] std::int32_t played() const { return known_.draws; }
  [[nodiscard]] bool over() const {
    return asked_.empty() || known_.cut || known_.draws >= ask_.draws;
  }

  [[nodiscard]] Forecasts told() const {
    Forecasts out = known_;
    for (std::size_t i = 0; i < asked_.size(); ++i) conclude(i, out.jobs[job_of_[i]]);
    for (const Forecast& one : out.jobs) {
      const bool said = one.start.basis != Basis::kNone && one.start.range.p50;
      if (one.state == State::kWaits && !said) ++out.unanswered;
    }
    if (ask_.gantt && out.draws > 0) draw_gantt(out);
    return out;
  }

 private:
  /// Of a gang in one course.
  struct Stretch {
    Time start, end;
    Drawn drawn;
  };
  struct Noted {
    std::vector<Time> starts, ends;
    std::array<double, 3> ended_before{};  ///< Shares of the courses' GPU time, by Source.
    std::map<Ix, std::int32_t> after;      ///< In how many courses.
  };

  /// Who waits, by queue and gang.
  using Lines = std::map<std::string, std::map<std::string, engine::WaitView>>;

  /// Who is asked about, and what is known without a course.
  void choose(const engine::Engine& engine) {
    Lines lines;
    std::vector<std::string> keys = ask_.jobs;
    if (keys.empty()) {
      for (const engine::GangView& g : cast_->gangs) {
        if (g.waiting) keys.push_back(g.key);
      }
    }
    for (const std::string& key : keys) {
      Forecast f;
      f.job = key;
      f.asked = now_;
      f.revision = known_.revision;
      f.start.horizon = now_ + ask_.horizon;
      const auto found = cast_->by_key.find(key);
      if (found == cast_->by_key.end()) {
        f.start.because = "nothing of it waits or runs";
        known_.jobs.push_back(std::move(f));
        continue;
      }
      const engine::GangView& g = cast_->gangs[found->second];
      f.queue = g.queue;
      f.since = g.created;
      f.state = g.waiting ? State::kWaits : State::kRuns;
      if (g.waiting) {
        describe_wait(engine, g, lines, f);
        if (f.start.because.empty()) {
          asked_.push_back(found->second);
          job_of_.push_back(known_.jobs.size());
        }
      } else {
        f.start.because = "it runs";
      }
      known_.jobs.push_back(std::move(f));
    }
    noted_.resize(asked_.size());
  }

  /// Its place, and whether any end of other work would help it.
  void describe_wait(const engine::Engine& engine,
                     const engine::GangView& g,
                     Lines& lines,
                     Forecast& f) const {
    auto [line, fresh] = lines.try_emplace(g.queue);
    if (fresh) {
      for (engine::WaitView& w : engine.waiting(g.queue, cast_->gangs.size())) {
        std::string key = w.key;
        line->second.emplace(std::move(key), std::move(w));
      }
    }
    f.of = static_cast<std::int32_t>(line->second.size());
    if (const auto wait = line->second.find(g.key); wait != line->second.end()) {
      f.place = wait->second.rank + 1;
      f.refusal = wait->second.refusal;
    } else if (const auto why = engine.why(g.key)) {
      f.refusal = why->refusal;
    }
    if (f.refusal.until) f.start.not_before = f.refusal.until;
    if (engine::is_never(f.refusal.reason)) f.start.because = engine::describe(f.refusal);
  }

  void note(const Rehearsal& course) {
    std::vector<Time> starts;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const Seen& seen = course.seen(asked_[i]);
      starts.push_back(seen.start.value_or(now_ + ask_.horizon));
      Noted& noted = noted_[i];
      if (!seen.start) continue;
      noted.starts.push_back(*seen.start);
      noted.ends.push_back(*seen.end);
      // Each course counts alike: in those in which somebody lasts for ever most GPU time passes, and
      // it is the one thing that they rest on.
      double all = 0;
      for (const double part : seen.ended_before) all += part;
      for (std::size_t s = 0; s < 3 && all > 0; ++s)
        noted.ended_before[s] += seen.ended_before[s] / all;
      for (const Ix gang : seen.after) {
        if (gang < cast_->gangs.size()) ++noted.after[gang];
      }
    }
    starts_.push_back(std::move(starts));
    std::vector<Stretch> gangs;
    gangs.reserve(cast_->gangs.size());
    for (Ix g = 0; g < cast_->gangs.size(); ++g)
      gangs.push_back({course.start_of(g), course.end_of(g), course.drawn(g)});
    stretches_.push_back(std::move(gangs));
  }

  void conclude(std::size_t i, Forecast& f) const {
    const Noted& noted = noted_[i];
    const auto draws = static_cast<std::size_t>(known_.draws);
    f.start.draws = known_.draws;
    if (draws == 0) {
      f.start.because = "there was no time to work it out";
      return;
    }
    f.start.beyond = 1 - static_cast<double>(noted.starts.size()) / static_cast<double>(draws);
    f.start.assumes = {"nothing is submitted later", "jobs that are evicted come back"};
    double all = 0;
    for (const double share : noted.ended_before) all += share;
    if (all > 0) {
      f.start.support = {
          noted.ended_before[2] / all, noted.ended_before[1] / all, noted.ended_before[0] / all};
    } else if (!noted.starts.empty()) {
      f.start.support.declared = 1;  // It waits for nobody.
    }
    const Support& support = f.start.support;
    if (support.declared >= 0.95) {
      f.start.basis = Basis::kKnown;
    } else if (support.declared + support.learned >= 0.8) {
      f.start.basis = Basis::kLearned;
    }
    if (f.start.basis == Basis::kNone) {
      f.start.beyond = 0;
      f.start.because =
          "durations are unknown: those that must end before it declare none, and too few like them "
          "have ended";
      return;
    }
    f.start.range = quantiles(noted.starts, draws);
    f.end = quantiles(noted.ends, draws);
    add_waits_for(noted, f);
  }

  void add_waits_for(const Noted& noted, Forecast& f) const {
    std::vector<std::pair<std::int32_t, Ix>> order;
    for (const auto& [gang, courses] : noted.after) order.emplace_back(-courses, gang);
    std::sort(order.begin(), order.end());
    if (order.size() > kWaitsForMax) order.resize(kWaitsForMax);
    for (const auto& [negative, gang] : order) {
      WaitsFor w;
      w.job = cast_->gangs[gang].key;
      w.gpu_milli = cast_->gangs[gang].device_milli;
      w.share = static_cast<double>(-negative) / static_cast<double>(known_.draws);
      std::vector<Time> ends;
      std::int32_t guessed = 0, declared = 0;
      for (const auto& course : stretches_) {
        const auto& [start, end, drawn] = course[gang];
        if (end) ends.push_back(end);
        guessed += drawn.source == Source::kGuessed ? 1 : 0;
        declared += drawn.source == Source::kDeclared ? 1 : 0;
        w.runs = std::max(w.runs, drawn.runs);
      }
      w.basis = declared == known_.draws      ? Basis::kKnown
                : guessed * 5 <= known_.draws ? Basis::kLearned
                                              : Basis::kNone;
      if (w.basis != Basis::kNone) w.end = quantiles(std::move(ends), starts_.size());
      f.waits_for.push_back(std::move(w));
    }
  }

  /// The course whose starts are nearest to the middle.
  void draw_gantt(Forecasts& out) const {
    std::vector<Time> middle;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      std::vector<Time> all;
      for (const auto& starts : starts_) all.push_back(starts[i]);
      std::nth_element(
          all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
      middle.push_back(all[all.size() / 2]);
    }
    std::size_t best = 0;
    double least = -1;
    for (std::size_t d = 0; d < starts_.size(); ++d) {
      double off = 0;
      for (std::size_t i = 0; i < middle.size(); ++i)
        off += std::abs(static_cast<double>((starts_[d][i] - middle[i]).count()));
      if (least >= 0 && off >= least) continue;
      least = off;
      best = d;
    }
    for (Ix g = 0; g < cast_->gangs.size(); ++g) {
      const auto& [start, end, drawn] = stretches_[best][g];
      if (!start) continue;
      const engine::GangView& view = cast_->gangs[g];
      out.gantt.push_back({view.key, view.queue, view.device_milli, start, end, view.running});
    }
  }

  Time now_;
  const Lasting& lasting_;
  const Ask ask_;
  std::shared_ptr<const sim::Cast> cast_;
  std::optional<engine::Engine> begin_;  ///< What every course begins with.
  sim::Course::Settings settings_;
  bool certain_ = false;
  Forecasts known_;  ///< What no course has a say in, and how many have been played.
  std::vector<Ix> asked_;
  std::vector<std::size_t> job_of_;  ///< By asked: in known_.jobs.
  std::vector<Noted> noted_;
  std::vector<std::vector<Time>> starts_;        ///< By course and asked.
  std::vector<std::vector<Stretch>> stretches_;  ///< By course and gang.
};

Courses::Courses(const engine::Engine& engine, Time now, const Lasting& lasting, Ask ask)
    : played_(std::make_unique<Played>(engine, now, lasting, std::move(ask))) {}
Courses::~Courses() = default;

void Courses::play(std::int32_t draws) { played_->play(draws); }
std::int32_t Courses::played() const { return played_->played(); }
bool Courses::over() const { return played_->over(); }
Forecasts Courses::told() const { return played_->told(); }

Forecasts forecast_all(const engine::Engine& engine,
                       Time now,
                       const Lasting& lasting,
                       const Ask& ask) {
  Courses courses(engine, now, lasting, ask);
  courses.play(ask.draws);
  return courses.told();
}

Forecast forecast(const engine::Engine& engine, Time now, const Lasting& lasting, const Ask& ask) {
  Forecasts all = forecast_all(engine, now, lasting, ask);
  return all.jobs.empty() ? Forecast{} : std::move(all.jobs.front());
}

}  // namespace muster::answers
