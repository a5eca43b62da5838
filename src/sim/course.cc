#include "sim/course.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace muster::sim {

Cast::Cast(const engine::Engine& engine) : gangs(engine.gangs()) {
  for (std::uint32_t g = 0; g < gangs.size(); ++g) {
    by_key.emplace(gangs[g].key, g);
    for (const std::string& pod : gangs[g].pods) by_pod.emplace(pod, g);
  }
}

Course::Course(engine::Engine engine,
               std::shared_ptr<const Cast> cast,
               Time now,
               const Settings& settings)
    : engine_(std::move(engine)),
      cast_(std::move(cast)),
      settings_(settings),
      began_(now),
      now_(now),
      players_(cast_->gangs.size()) {
  views_.reserve(cast_->gangs.size());
  for (const engine::GangView& gang : cast_->gangs) views_.push_back(&gang);
}

Course::Course(const Course& other)
    : engine_(other.engine_.clone()),
      cast_(other.cast_),
      settings_(other.settings_),
      began_(other.began_),
      now_(other.now_),
      wake_(other.wake_),
      begun_(other.begun_),
      players_(other.players_),
      views_(other.views_),
      ends_(other.ends_),
      leavings_(other.leavings_),
      next_seq_(other.next_seq_),
      late_(other.late_),
      to_meet_(other.to_meet_),
      late_by_pod_(other.late_by_pod_),
      late_by_key_(other.late_by_key_) {}

Course::Ix Course::find(std::string_view key) const {
  const std::string name(key);
  if (const auto late = late_by_key_.find(name); late != late_by_key_.end()) return late->second;
  const auto found = cast_->by_key.find(name);
  return found == cast_->by_key.end() ? kNobody : found->second;
}

Course::Ix Course::of_pod(const std::string& pod) const {
  if (const auto late = late_by_pod_.find(pod); late != late_by_pod_.end()) return late->second;
  const auto found = cast_->by_pod.find(pod);
  return found == cast_->by_pod.end() ? kNobody : found->second;
}

/// Takes over where the gang stands.
void Course::begin_with(Ix gang) {
  const engine::GangView& g = view(gang);
  Player& player = players_[gang];
  player.bound = g.bound;
  if (g.running) {
    player.running = true;
    player.run = 1;
    player.started = g.started ? g.started : now_;
    const Duration age = std::max(Duration{}, now_ - player.started);
    player.ends = std::max(now_, player.started + lasts(gang, age));
    ends_.push({player.ends, gang, player.run});
  }
  if (g.releasing == 0) return;
  const Time at = std::max(now_, g.leaves ? g.leaves : now_ + settings_.grace);
  for (const std::string& pod : g.pods) {
    const auto told = engine_.pod(pod);
    if (told && told->terminating) leavings_.push({at, next_seq_++, pod, g.evicted});
  }
}

void Course::play(Time until) {
  if (!std::exchange(begun_, true)) {
    for (Ix g = 0; g < players_.size(); ++g) begin_with(g);
    if (const auto due = next_change(); due && *due <= now_) change();
    meet_all();
    decide();
  }
  while (!over()) {
    const auto next = next_time();
    if (!next || *next > until) break;
    if (settings_.breathe) settings_.breathe();
    step(*next);
  }
}

std::optional<Time> Course::next_time() const {
  std::optional<Time> next = next_change();
  const auto sooner = [&](Time at) { next = next ? std::min(*next, at) : at; };
  if (!ends_.empty()) sooner(ends_.top().at);
  if (!leavings_.empty()) sooner(leavings_.top().at);
  if (wake_) {
    // A wake-up alone changes nothing but reservations; years of them end the course.
    if (next || *wake_ < began_ + std::chrono::hours(24 * 365)) sooner(*wake_);
  }
  if (next) *next = std::max(*next, now_);
  return next;
}

/// What happens in one quantum is applied together and decided once, at its last moment.
void Course::step(Time first) {
  Time until = first;
  if (settings_.quantum.count() > 0)
    until = first + std::max(settings_.quantum, (first - began_) / 100);
  now_ = first;
  let_end(until);
  let_leave(until);
  for (auto due = next_change(); due && *due <= until; due = next_change()) {
    now_ = std::max(now_, *due);
    change();
  }
  meet_all();
  decide();
}

void Course::let_end(Time until) {
  while (!ends_.empty() && ends_.top().at <= until) {
    const End due = ends_.top();
    ends_.pop();
    if (!players_[due.gang].running || players_[due.gang].run != due.run) continue;
    now_ = std::max(now_, due.at);
    end(due.gang);
  }
}

void Course::end(Ix gang) {
  Player& player = players_[gang];
  player.running = false;
  player.gone = true;
  player.bound = 0;
  ended(gang);
  const engine::GangView& g = view(gang);
  for (const std::string& pod : g.pods) {
    engine_.apply(engine::PodRemove{pod});
    late_by_pod_.erase(pod);
  }
  if (g.is_group) engine_.apply(engine::GroupRemove{g.key});
}

void Course::let_leave(Time until) {
  while (!leavings_.empty() && leavings_.top().at <= until) {
    const Leaving due = leavings_.top();
    leavings_.pop();
    auto pod = engine_.pod(due.pod);
    if (!pod) continue;
    now_ = std::max(now_, due.at);
    engine_.apply(engine::PodRemove{due.pod});
    if (!due.comes_back || !settings_.come_back) continue;
    pod->uid += "+";
    pod->node.clear();
    pod->nominated_node.clear();
    pod->device_indexes.clear();
    pod->terminating = pod->finished = pod->succeeded = false;
    pod->terminating_until = pod->started = Time{};
    if (const Ix gang = of_pod(due.pod); gang != kNobody) players_[gang].gone = false;
    engine_.apply(engine::PodUpsert{std::move(*pod)});
  }
}

void Course::decide() {
  // Victims that are gone at once make room in the same moment; their number bounds the rounds.
  for (int round = 0; round < 64; ++round) {
    const engine::Plan plan = engine_.decide(now_);
    wake_ = plan.wake;
    if (wake_ && *wake_ <= now_) wake_ = now_ + std::chrono::seconds(1);
    for (const engine::Evict& evict : plan.evicts) send_away(evict);
    for (const engine::Bind& bind : plan.binds) take(bind);
    if (plan.evicts.empty() || settings_.grace.count() > 0) break;
    let_leave(now_);
  }
  decided();
}

void Course::take(const engine::Bind& bind) {
  const Ix gang = of_pod(bind.pod);
  if (gang == kNobody) return;
  Player& player = players_[gang];
  ++player.bound;
  bound(gang, bind);
  if (!player.running && player.bound >= view(gang).min_member) start(gang);
}

void Course::start(Ix gang) {
  Player& player = players_[gang];
  ++player.run;
  player.running = true;
  player.started = now_;
  player.ends = now_ + std::max(Duration(1), lasts(gang, Duration{}));
  ends_.push({player.ends, gang, player.run});
  started(gang);
}

void Course::lose(const std::string& pod) {
  const Ix gang = of_pod(pod);
  if (gang == kNobody) return;
  Player& player = players_[gang];
  if (player.bound > 0) --player.bound;
  if (!player.running || player.bound >= view(gang).min_member) return;
  player.running = false;
  evicted(gang);
}

void Course::drive_out(const std::string& key) {
  auto pod = engine_.pod(key);
  if (!pod || pod->node.empty() || pod->terminating) return;
  pod->terminating = true;
  pod->terminating_until = now_ + settings_.grace;
  leavings_.push({pod->terminating_until, next_seq_++, key, true});
  engine_.apply(engine::PodUpsert{std::move(*pod)});
  lose(key);
}

void Course::let_last(Ix gang, Duration lasts) {
  Player& player = players_[gang];
  if (!player.running) return;
  player.ends = std::max(now_, player.started + lasts);
  ++player.run;
  ends_.push({player.ends, gang, player.run});
}

void Course::send_away(const engine::Evict& evict) {
  leavings_.push({now_ + settings_.grace, next_seq_++, evict.pod, true});
  lose(evict.pod);
}

/// A gang that the course was told of: it is one of the players from now on, as it is by now.
void Course::meet(const std::string& key) {
  auto seen = engine_.gang(key);
  if (!seen) return;
  Ix gang = find(key);
  if (gang == kNobody) {
    gang = static_cast<Ix>(players_.size());
    players_.emplace_back();
    views_.push_back(nullptr);
    late_by_key_[key] = gang;
  }
  players_[gang].gone = false;
  for (const std::string& pod : seen->pods) late_by_pod_[pod] = gang;
  late_.push_back(std::make_shared<const engine::GangView>(std::move(*seen)));
  views_[gang] = late_.back().get();
}

void Course::meet_all() {
  std::string last;
  for (std::string& key : to_meet_) {
    if (key == last) continue;
    meet(key);
    last = std::move(key);
  }
  to_meet_.clear();
}

void Course::apply(const engine::Event& event) {
  if (const auto* gone = std::get_if<engine::PodRemove>(&event)) lose(gone->key);
  engine_.apply(event);
  if (const auto* told = std::get_if<engine::PodUpsert>(&event))
    to_meet_.push_back(told->pod.group.empty() ? told->pod.key : told->pod.group);
}

}  // namespace muster::sim
