#include "answers/whatif.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "answers/quantiles.h"
#include "answers/rehearsal.h"
#include "hived/config.h"

namespace muster::answers {
namespace {

using Ix = sim::Course::Ix;

constexpr Duration kMovedLeast = std::chrono::minutes(5);

/// A course in which the changes are made.
class Changed : public Rehearsal {
 public:
  Changed(const engine::Engine& engine,
          const std::shared_ptr<const sim::Cast>& cast,
          Time now,
          const Settings& settings,
          const Lasting& lasting,
          std::int32_t draw,
          const std::vector<Ix>& asked,
          const std::vector<Change>& changes)
      : Rehearsal(engine, cast, now, settings, lasting, draw, asked),
        changes_(changes),
        began_(now) {
    for (std::size_t i = 0; i < changes.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return changes_[a].at < changes_[b].at;
    });
  }
  [[nodiscard]] const std::set<Ix>& victims() const { return victims_; }
  /// What has run in it lasts as long in every other course.
  [[nodiscard]] bool certain() const { return certain_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  [[nodiscard]] std::optional<Time> next_change() const override {
    if (next_ >= order_.size()) return std::nullopt;
    return began_ + changes_[order_[next_]].at;
  }
  void change() override {
    for (; next_ < order_.size() && began_ + changes_[order_[next_]].at <= now(); ++next_)
      make(changes_[order_[next_]]);
  }
  Duration lasts(Ix gang, Duration age) override {
    const Duration lasts = Rehearsal::lasts(gang, age);
    const auto said = said_.find(view(gang).key);
    if (said != said_.end()) return std::max(age, said->second);
    certain_ = certain_ && drawn(gang).certain;
    return lasts;
  }
  void evicted(Ix gang) override {
    victims_.insert(gang);
    Rehearsal::evicted(gang);
  }

 private:
  void make(const Change& change) {
    switch (change.kind) {
      case ChangeKind::kAddNodes:
      case ChangeKind::kQueue:
      case ChangeKind::kPolicy:
        for (const engine::Event& event : change.events) apply(event);
        return;
      case ChangeKind::kSubmit:
        for (const engine::Event& event : change.events) apply(event);
        if (change.lasts.count() > 0) {
          for (const std::string& job : change.names) said_[job] = change.lasts;
        }
        return;
      case ChangeKind::kRemoveNodes:
      case ChangeKind::kDrain:
        empty_nodes(change);
        return;
      case ChangeKind::kStop:
        for (const std::string& job : change.names) stop(job);
        return;
      case ChangeKind::kPriority:
        for (const std::string& job : change.names) set_priority(job, change.priority);
        return;
      case ChangeKind::kLasts:
        for (const std::string& job : change.names) {
          said_[job] = change.lasts;
          if (const Ix gang = find(job); gang != kNobody) let_last(gang, change.lasts);
        }
        return;
      case ChangeKind::kHived:
        set_cells(change);
        return;
    }
  }

  void empty_nodes(const Change& change) {
    for (engine::Node& node : playing().nodes_as_told()) {
      if (std::find(change.names.begin(), change.names.end(), node.name) == change.names.end())
        continue;
      const auto there = playing().node(node.name);
      node.unschedulable = true;
      apply(engine::NodeUpsert{node});
      for (const std::string& pod : there->pods) drive_out(pod);
      if (change.kind == ChangeKind::kRemoveNodes) apply(engine::NodeRemove{node.name});
    }
  }

  void stop(const std::string& job) {
    const Ix gang = find(job);
    if (gang == kNobody) {
      warnings_.push_back(fmt::format("{}: nothing of it waits or runs", job));
    } else if (!gone(gang)) {
      end(gang);
    }
  }

  void set_priority(const std::string& job, std::int32_t priority) {
    const auto gang = playing().gang(job);
    if (!gang) {
      warnings_.push_back(fmt::format("{}: nothing of it waits or runs", job));
      return;
    }
    if (auto group = playing().group(job)) {
      group->priority = priority;
      apply(engine::GroupUpsert{std::move(*group)});
    }
    for (const std::string& key : gang->pods) {
      auto pod = playing().pod(key);
      pod->priority = priority;
      apply(engine::PodUpsert{std::move(*pod)});
    }
  }

  void set_cells(const Change& change) {
    const auto config = hived::parse_config(change.text);
    if (!config) {
      warnings_.push_back(config.error().message);
      return;
    }
    if (const auto done = playing().configure_cells(config->cells, now()); !done)
      warnings_.push_back(done.error().message);
  }

  const std::vector<Change>& changes_;
  Time began_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
  std::map<std::string, Duration> said_;
  bool certain_ = true;
  std::set<Ix> victims_;
  std::vector<std::string> warnings_;
};

/// Starts and ends of one gang in all courses of one world.
struct World {
  std::vector<Time> starts, ends;
};

class Comparison {
 public:
  Comparison(const engine::Engine& engine,
             Time now,
             const Lasting& lasting,
             const std::vector<Change>& changes,
             const Ask& ask)
      : engine_(engine),
        now_(now),
        lasting_(lasting),
        changes_(changes),
        ask_(ask),
        cast_(std::make_shared<const sim::Cast>(engine)) {
    settings_.quantum = ask.quantum;
    settings_.grace = ask.grace;
  }

  WhatIf run() {
    out_.revision = engine_.digest();
    out_.horizon = ask_.horizon;
    choose();
    before_.resize(asked_.size());
    after_.resize(asked_.size());
    for (std::int32_t draw = 0; draw < ask_.draws; ++draw) {
      if (ask_.go_on && !ask_.go_on()) {
        out_.cut = fmt::format("{} of {} courses were simulated", draw, ask_.draws);
        break;
      }
      play(draw);
      ++out_.draws;
    }
    if (out_.draws > 0) conclude();
    return std::move(out_);
  }

 private:
  void choose() {
    bool certain = true;
    for (Ix g = 0; g < cast_->gangs.size(); ++g) {
      const engine::GangView& gang = cast_->gangs[g];
      const Duration age = gang.started ? std::max(Duration{}, now_ - gang.started) : Duration{};
      certain = certain && lasting_.draw(gang, age, 0).certain;
      const bool wanted =
          ask_.jobs.empty() ||
          std::find(ask_.jobs.begin(), ask_.jobs.end(), gang.key) != ask_.jobs.end();
      if (gang.waiting && wanted) asked_.push_back(g);
    }
    // Where every end is settled, one course says it all, to the second.
    if (certain) {
      settings_.quantum = Duration{};
      certain_ = true;
    }
  }

  void play(std::int32_t draw) {
    if (certain_ && draw > 0) return;
    Changed before(engine_, cast_, now_, settings_, lasting_, draw, asked_, nothing_);
    Changed after(engine_, cast_, now_, settings_, lasting_, draw, asked_, changes_);
    before.play(now_ + ask_.horizon);
    after.play(now_ + ask_.horizon);
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      note(before.seen(asked_[i]), before_[i]);
      note(after.seen(asked_[i]), after_[i]);
    }
    for (const Ix gang : after.victims()) {
      if (gang < cast_->gangs.size() && !before.victims().contains(gang)) ++evicted_[gang];
    }
    if (draw == 0) out_.warnings = after.warnings();
    // What is submitted may be less settled than what was there.
    if (!after.certain()) {
      certain_ = false;
      settings_.quantum = ask_.quantum;
    }
  }
  static void note(const Seen& seen, World& world) {
    if (!seen.start) return;
    world.starts.push_back(*seen.start);
    world.ends.push_back(*seen.end);
  }

  void conclude() {
    const auto played = certain_ ? std::size_t{1} : static_cast<std::size_t>(out_.draws);
    std::int32_t earlier = 0, later = 0;
    std::vector<Duration> gains;
    std::map<std::string, std::pair<Duration, std::pair<Duration, std::int32_t>>> queues;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const engine::GangView& gang = cast_->gangs[asked_[i]];
      Moved moved;
      moved.job = gang.key;
      moved.before = quantiles(before_[i].starts, played, certain_);
      moved.after = quantiles(after_[i].starts, played, certain_);
      moved.end_before = quantiles(before_[i].ends, played, certain_);
      moved.end_after = quantiles(after_[i].ends, played, certain_);
      moved.evicted = evicted_.contains(asked_[i]);
      const Time end = now_ + ask_.horizon;
      const Duration was = moved.before.p50.value_or(end) - now_;
      const Duration is = moved.after.p50.value_or(end) - now_;
      auto& [sum_was, rest] = queues[gang.queue];
      sum_was += was;
      rest.first += is;
      ++rest.second;
      const Duration by = was - is;
      const bool far = std::abs(by.count()) > kMovedLeast.count() &&
                       std::abs(by.count()) * 10 > std::max(was, is).count();
      if (!far && !moved.evicted) continue;
      if (far) {
        ++(by.count() > 0 ? earlier : later);
        if (by.count() > 0) gains.push_back(by);
      }
      out_.jobs.push_back(std::move(moved));
    }
    for (const auto& [gang, courses] : evicted_) {
      if (std::find(asked_.begin(), asked_.end(), gang) != asked_.end()) continue;
      Moved moved;
      moved.job = cast_->gangs[gang].key;
      moved.evicted = true;
      out_.jobs.push_back(std::move(moved));
    }
    for (const auto& [queue, sums] : queues) {
      const double n = sums.second.second;
      out_.queues.push_back({queue,
                             static_cast<double>(sums.first.count()) / 1e6 / n,
                             static_cast<double>(sums.second.first.count()) / 1e6 / n});
    }
    summarise(earlier, later, std::move(gains));
  }

  void summarise(std::int32_t earlier, std::int32_t later, std::vector<Duration> gains) {
    if (earlier == 0 && later == 0 && evicted_.empty()) {
      out_.summary = "No job starts much earlier or later, and none is evicted.";
      return;
    }
    std::string first = fmt::format("{} jobs start earlier", earlier);
    if (!gains.empty()) {
      std::sort(gains.begin(), gains.end());
      first += fmt::format(" (median {})", human_duration(gains[gains.size() / 2]));
    }
    out_.summary =
        fmt::format("{}, {} later, {} evicted and come back", first, later, evicted_.size());
    const QueueMoved* most = nullptr;
    for (const QueueMoved& q : out_.queues) {
      if (most == nullptr || std::abs(q.wait_before_s - q.wait_after_s) >
                                 std::abs(most->wait_before_s - most->wait_after_s))
        most = &q;
    }
    if (most != nullptr && std::abs(most->wait_before_s - most->wait_after_s) >= 300) {
      const double by = most->wait_before_s - most->wait_after_s;
      out_.summary +=
          fmt::format("; queue {} waits {} {}",
                      most->queue,
                      human_duration(Duration(static_cast<std::int64_t>(std::abs(by) * 1e6))),
                      by > 0 ? "less" : "more");
    }
    out_.summary += ".";
  }

  const engine::Engine& engine_;
  Time now_;
  const Lasting& lasting_;
  const std::vector<Change>& changes_;
  const std::vector<Change> nothing_;
  const Ask& ask_;
  std::shared_ptr<const sim::Cast> cast_;
  sim::Course::Settings settings_;
  bool certain_ = false;
  WhatIf out_;
  std::vector<Ix> asked_;
  std::vector<World> before_, after_;
  std::map<Ix, std::int32_t> evicted_;
};

}  // namespace

WhatIf what_if(const engine::Engine& engine,
               Time now,
               const Lasting& lasting,
               const std::vector<Change>& changes,
               const Ask& ask) {
  return Comparison(engine, now, lasting, changes, ask).run();
}

}  // namespace muster::answers
