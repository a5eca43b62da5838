#include "promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

constexpr std::int32_t kMostAreOver = 800;  // in a thousand
constexpr std::int32_t kFirstAreOver = 50;

const std::string& gang_of(const SimPod& p) {
  return p.spec.group.empty() ? p.spec.key : p.spec.group;
}

bool said_to_end_by(const SimPod& p, Time started, Time then) {
  return p.spec.expected_duration.count() > 0 && started + p.spec.expected_duration <= then;
}

}  // namespace

bool promise_holds(const Model& model, const Reservation& r, std::size_t k) {
  const auto member = model.pods.find(r.member);
  const auto n = model.nodes.find(r.nodes[k]);
  if (!r.start || member == model.pods.end() || n == model.nodes.end() ||
      !usable(n->second, member->second))
    return false;
  Room room = n->second.room;
  for (const SimPod* p : n->second.pods) {
    if (p->life == Life::kLeaving || said_to_end_by(*p, p->spec.started, r.start))
      adjust(room, *p, -1);
  }
  for (const auto& [key, h] : model.held) {
    if (h.node == n->first) adjust(room, model.pods.at(key), h.devices, +1);
  }
  return takes_count(room, member->second, r.members[k]) >= r.members[k];
}

/// Do all members of its gang say how long they take?
bool Promises::declared(const SimPod& pod) const {
  if (pod.spec.expected_duration.count() == 0) return false;
  return pod.spec.group.empty() ||
         std::all_of(model_.pods.begin(), model_.pods.end(), [&](const auto& other) {
           return other.second.spec.group != pod.spec.group ||
                  other.second.spec.expected_duration.count() > 0;
         });
}

/// When so many in a thousand of those like it were over that lasted longer than `age`.
std::optional<Duration> Promises::like_it(const std::string& gang,
                                          Duration age,
                                          std::int32_t permille) const {
  const auto view = engine_.gang(gang);
  if (!view) return std::nullopt;
  const std::int64_t us = engine_.history().estimate(view->kind, age.count(), permille);
  if (us == History::kUnknown) return std::nullopt;
  return Duration(us);
}

/// The end of one that runs and whose word does not tell, by those like it.
std::optional<Time> Promises::foretold_end(const SimPod& p, std::int32_t permille) const {
  const auto gang = engine_.gang(gang_of(p));
  if (!gang) return std::nullopt;
  std::optional<Time> end;
  const Duration age = std::max(Duration{}, model_.now - gang->started);
  if (const auto lasts = like_it(gang->key, age, permille)) end = gang->started + *lasts;
  const Duration word = p.spec.expected_duration;
  if (!end && word.count() > 0) end = p.spec.started + word;
  if (end && *end <= model_.now)
    end = model_.now + std::max<Duration>(model_.now - *end, std::chrono::minutes(1));
  return end;
}

/// May one that starts now count as over by then?
bool Promises::over_by(const SimPod& newcomer, Time then, Standing standing) const {
  if (declared(newcomer)) return said_to_end_by(newcomer, model_.now, then);
  if (standing.late) return false;
  if (!standing.held) {
    // Its gang may run already.
    const auto end = foretold_end(newcomer, kFirstAreOver);
    if (end && *end <= then) return true;
  }
  const auto lasts =
      like_it(gang_of(newcomer), Duration{}, standing.held ? kMostAreOver : kFirstAreOver);
  return lasts && model_.now + *lasts <= then;
}

/// May one that runs count as gone by then?
bool Promises::gone_by(const SimPod& p, Time then, Standing standing) const {
  if (p.life == Life::kLeaving) return true;
  const Duration word = p.spec.expected_duration;
  const bool stands = word.count() > 0 && p.spec.started + word > model_.now;
  if (stands || standing.late) return stands && p.spec.started + word <= then;
  const auto end = foretold_end(p, standing.held ? kMostAreOver : kFirstAreOver);
  return end && *end <= then;
}

void Promises::note_first_told() {
  for (const Reservation& r : model_.reservations) {
    if (r.start) first_told_.try_emplace(r.holder, r.start);
  }
}

void Promises::forget_started() {
  std::set<std::string> waiting;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kPending) waiting.insert(gang_of(p));
  }
  std::erase_if(first_told_, [&](const auto& told) { return !waiting.contains(told.first); });
}

bool Promises::late(const Reservation& r) const {
  const auto told = first_told_.find(r.holder);
  return told != first_told_.end() && model_.now > told->second + config_.patience;
}

std::optional<std::string> Promises::judge(const Plan& plan, const Before& before) {
  note_first_told();
  // A new holder may have had the place of another for a while.
  const bool same_holders = std::all_of(
      model_.reservations.begin(), model_.reservations.end(), [&](const Reservation& r) {
        return std::any_of(before.reservations.begin(),
                           before.reservations.end(),
                           [&](const Reservation& old) { return old.holder == r.holder; });
      });
  // Room was held for these for a while, instead of the reservation.
  std::set<std::string> nominated;
  for (const Nominate& n : plan.nominations) {
    const auto p = model_.pods.find(n.pod);
    if (p != model_.pods.end()) nominated.insert(gang_of(p->second));
  }
  for (const Reservation& r : model_.reservations) {
    Standing standing;
    for (const Reservation& old : before.reservations) {
      if (old.holder != r.holder || nominated.contains(r.holder)) continue;
      standing.held = true;
      standing.late = late(r);
      standing.unchanged =
          same_holders && old.start == r.start && old.nodes == r.nodes && old.member == r.member;
    }
    if (auto delayed = judge(plan, before, r, standing)) return delayed;
  }
  return std::nullopt;
}

/// Those that wait for room since before come first. Binds are in the order they were decided in;
/// when those that room is newly held for came in between is not told: of these nobody who may pass is
/// held against those who may not.
std::vector<Promises::Newcomer> Promises::newcomers(const Plan& plan,
                                                    const Before& before,
                                                    const SimPod& holder) const {
  std::map<std::string, std::int32_t> bound = before.bound;
  for (const auto& e : plan.evicts) --bound[model_.pods.at(e.pod).spec.group];
  // Of lower rank may go ahead: what holds room already, and what a queue takes back as its due.
  const auto may_pass = [&](const SimPod& p) {
    // Members above the minimum come after everybody's minimum.
    const bool surplus =
        !p.spec.group.empty() && bound[p.spec.group] >= model_.groups.at(p.spec.group).min_member;
    if (model_.root_of(p.spec) == model_.root_of(holder.spec) || before.held.contains(p.spec.key))
      return true;
    const auto mine = model_.priority_of(p.spec);
    const auto theirs = model_.priority_of(holder.spec);
    if (mine > theirs ||
        (mine == theirs && !surplus && model_.created(p.spec) <= model_.created(holder.spec)))
      return true;
    return std::any_of(plan.evicts.begin(), plan.evicts.end(), [&](const Evict& e) {
      const SimPod* winner = model_.someone_of(e.for_whom);
      return e.kind == EvictKind::kReclaim && winner != nullptr &&
             model_.root_of(winner->spec) == model_.root_of(p.spec);
    });
  };
  std::vector<Newcomer> out;
  std::set<std::string> started;
  for (const auto& b : plan.binds) started.insert(b.pod);
  const auto add_held = [&](bool since_before) {
    for (const auto& [key, h] : model_.held) {
      const SimPod& p = model_.pods.at(key);
      const bool passes = may_pass(p);
      if (!started.contains(key) && before.held.contains(key) == since_before &&
          (since_before || !passes))
        out.push_back({&p, h.node, h.devices, passes, since_before, !since_before});
    }
  };
  add_held(true);
  for (const auto& b : plan.binds) {
    const auto p = model_.pods.find(b.pod);
    if (p == model_.pods.end()) continue;
    out.push_back({&p->second, b.node, b.devices, may_pass(p->second), false, false});
    ++bound[p->second.spec.group];
  }
  add_held(false);
  return out;
}

std::optional<std::string> Promises::judge(const Plan& plan,
                                           const Before& before,
                                           const Reservation& r,
                                           Standing standing) const {
  const SimPod* holder = model_.someone_of(r.holder);
  const auto member = model_.pods.find(r.member);
  if (holder == nullptr || member == model_.pods.end()) return std::nullopt;
  const std::vector<Newcomer> all = newcomers(plan, before, *holder);
  for (std::size_t k = 0; k < r.nodes.size(); ++k) {
    const auto n = model_.nodes.find(r.nodes[k]);
    if (n == model_.nodes.end() || !usable(n->second, member->second)) continue;
    Room room = n->second.room;
    for (const SimPod* p : n->second.pods) {
      if (gone_by(*p, r.start, standing)) adjust(room, *p, -1);
    }
    bool kept = takes_count(room, member->second, r.members[k]) >= r.members[k];
    bool outranked = false;
    for (const Newcomer& c : all) {
      if (c.node != n->first) continue;
      outranked = outranked || c.passes;
      if (!r.start) {
        // Nobody knows when it starts: only what is surely short may pass.
        const auto lasts = c.pod->spec.expected_duration;
        if (standing.unchanged && !c.passes && (lasts.count() == 0 || lasts > config_.patience))
          return fmt::format("the reservation of {} was delayed by {}", r.holder, c.pod->spec.key);
        continue;
      }
      if (!c.still_waits && over_by(*c.pod, r.start, standing)) continue;
      adjust(room, *c.pod, c.devices, +1);
      const bool keeps = kept && takes_count(room, member->second, r.members[k]) >= r.members[k];
      // Whoever may pass may have come after room was held for this one.
      const bool blamed = !c.passes && !(c.newly_held && outranked);
      if (kept && !keeps && blamed)
        return fmt::format("the reservation of {} for {}{} was delayed by {}",
                           r.holder,
                           r.start.us,
                           standing.late ? ", late," : "",
                           c.pod->spec.key);
      kept = keeps;
    }
  }
  return std::nullopt;
}

}  // namespace muster::dst
