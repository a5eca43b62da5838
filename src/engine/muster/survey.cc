#include "engine/muster/survey.h"

#include <algorithm>

#include "base/result.h"

namespace muster::engine {

bool eviction_may_help(Cause cause) {
  switch (cause) {
    case Cause::kPorts:
    case Cause::kTooManyPods:
    case Cause::kResource:
    case Cause::kDevices:
    case Cause::kPodAntiAffinity:
    case Cause::kExistingAntiAffinity:
    case Cause::kSpread:
      return true;
    default:
      return false;
  }
}

bool lacks_only_room(const Misfit& m) {
  return m.ok() || m.cause == Cause::kResource || m.cause == Cause::kDevices ||
         m.cause == Cause::kTooManyPods;
}

Survey Surveys::of(const State& state, PodId pod, std::int32_t wanted, std::int64_t& checks) {
  Kept& kept = find(state, state.pod(pod).cls, wanted);
  if (kept.cursor < state.log_begin() || kept.nodes.size() != state.node_count()) {
    look_at_all(state, kept);
    checks += state.node_count();
  }
  for (; kept.cursor < state.log_end(); ++kept.cursor) {
    look_at(state, kept, state.log_at(kept.cursor));
    ++checks;
  }
  return told(kept);
}

/// One that was used longest ago makes room.
Surveys::Kept& Surveys::find(const State& state, ClassId cls, std::int32_t wanted) {
  auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.cls == cls && k.wanted == wanted;
  });
  if (at == kept_.end()) {
    if (kept_.size() < kKept) {
      at = kept_.insert(kept_.end(), Kept{});
    } else {
      at = std::min_element(
          kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
      *at = Kept{};
    }
    at->cls = cls;
    at->wanted = wanted;
    look_at_all(state, *at);
  }
  at->used = ++uses_;
  return *at;
}

void Surveys::look_at_all(const State& state, Kept& kept) {
  const TaskClass& cls = state.cls(kept.cls);
  const std::size_t nodes = state.node_count();
  kept.nodes.assign(nodes, Seen{});
  kept.causes.clear();
  kept.helped = kept.not_helped = kept.ever_fit = 0;
  kept.placeable = 0;
  kept.amounts.clear();
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] <= 0 || i == ResourceNames::kPods) continue;
    kept.amounts.push_back({i,
                            std::vector<std::int64_t>(nodes, kNotAllowed),
                            std::vector<std::int64_t>(nodes, kNotAllowed)});
  }
  for (std::uint32_t n = 0; n < nodes; ++n) look_at(state, kept, NodeId(n));
  kept.cursor = state.log_end();
}

void Surveys::look_at(const State& state, Kept& kept, NodeId id) {
  const TaskClass& cls = state.cls(kept.cls);
  const NodeState& node = state.node(id);
  Seen& seen = kept.nodes[id.index()];
  forget(kept, seen);
  seen = Seen{};
  if (!node.live) {
    note_amounts(kept, node, id.index(), false);
    return;
  }
  Misfit m = fit_static(state, cls, node);
  if (m.ok()) m = fit_room(state, cls, node);
  const bool allowed = lacks_only_room(m);
  seen.ever_fits = allowed && cls.request.fits_in(node.allocatable);
  kept.ever_fit += seen.ever_fits ? 1 : 0;
  note_amounts(kept, node, id.index(), allowed);
  if (m.ok()) {
    seen.cause = kFits;
    seen.placeable = fit_count(state, cls, node, kept.wanted);
    kept.placeable += seen.placeable;
    return;
  }
  seen.cause = cause_of(kept, misfit_text(state, kept.cls, id, m));
  ++kept.causes[static_cast<std::size_t>(seen.cause)].second;
  seen.helps = eviction_may_help(m.cause);
  ++(seen.helps ? kept.helped : kept.not_helped);
}

void Surveys::forget(Kept& kept, const Seen& seen) {
  if (seen.cause == kAbsent) return;
  kept.ever_fit -= seen.ever_fits ? 1 : 0;
  kept.placeable -= seen.placeable;
  if (seen.cause == kFits) return;
  --kept.causes[static_cast<std::size_t>(seen.cause)].second;
  --(seen.helps ? kept.helped : kept.not_helped);
}

std::int32_t Surveys::cause_of(Kept& kept, std::string text) {
  const auto same = [&](const auto& cause) { return cause.first == text; };
  auto at = std::find_if(kept.causes.begin(), kept.causes.end(), same);
  // Texts that no node has any more (of taints that came and went) give their place away.
  if (at == kept.causes.end())
    at = std::find_if(
        kept.causes.begin(), kept.causes.end(), [](const auto& c) { return c.second == 0; });
  if (at == kept.causes.end()) {
    at = kept.causes.insert(at, {std::move(text), 0});
  } else if (at->second == 0) {
    at->first = std::move(text);
  }
  return static_cast<std::int32_t>(at - kept.causes.begin());
}

void Surveys::note_amounts(Kept& kept, const NodeState& node, std::size_t at, bool allowed) {
  const auto note = [&](std::vector<std::int64_t>& all, std::int64_t& most, std::int64_t now) {
    const std::int64_t before = std::exchange(all[at], now);
    if (now >= most) {
      most = now;
    } else if (before == most) {
      most = *std::max_element(all.begin(), all.end());
    }
  };
  for (Amounts& a : kept.amounts) {
    note(a.free,
         a.most_free,
         allowed ? std::max<std::int64_t>(node.free[a.resource], 0) : kNotAllowed);
    note(a.all, a.most, allowed ? node.allocatable[a.resource] : kNotAllowed);
  }
}

Survey Surveys::told(const Kept& kept) {
  Survey out;
  for (const auto& [text, nodes] : kept.causes) {
    if (nodes > 0) out.causes[text] = nodes;
  }
  if (kept.not_helped > 0) out.after_eviction[kNotHelpful] = kept.not_helped;
  if (kept.helped > 0) out.after_eviction[kNoVictims] = kept.helped;
  for (const Amounts& a : kept.amounts) {
    if (a.most_free == kNotAllowed) continue;
    out.most_free[a.resource] = a.most_free;
    out.largest[a.resource] = a.most;
  }
  out.ever_fits = kept.ever_fit > 0;
  out.placeable = kept.placeable;
  return out;
}

void Surveys::check(const State& state) const {
  for (const Kept& kept : kept_) {
    if (kept.cursor != state.log_end() || kept.nodes.size() != state.node_count()) continue;
    Kept anew;
    anew.cls = kept.cls;
    anew.wanted = kept.wanted;
    look_at_all(state, anew);
    MUSTER_CHECK(told(anew) == told(kept), "a survey that is kept says what the nodes show");
  }
}

}  // namespace muster::engine
