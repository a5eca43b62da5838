#include "engine/muster/explain.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "engine/muster/gang.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

constexpr std::size_t kAheadShown = 3;

}  // namespace

Refusal refusal_for_limit(const State& state, const Tenants::Excess& excess) {
  Refusal r;
  r.reason = excess.reason;
  r.queue = state.tenant(excess.tenant).name;
  const std::int64_t factor = state.names().factor(excess.resource);
  r.shortages.push_back({state.names().name(excess.resource),
                         excess.wanted / factor,
                         excess.left / factor,
                         excess.limit / factor});
  return r;
}

Refusal refusal_for_leavers(const State& state, GangId id) {
  Refusal r;
  r.reason = Reason::kWaitingForVictims;
  std::set<NodeId> nodes;
  for (const PodId p : state.gang(id).pods) {
    if (state.pod(p).nominated.valid()) nodes.insert(state.pod(p).nominated);
  }
  for (const NodeId n : nodes) {
    for (const PodId p : state.node(n).pods) {
      const PodState& pod = state.pod(p);
      if (pod.phase != PodPhase::kReleasing) continue;
      ++r.members_found;
      if (r.subject.empty() || *pod.key < r.subject) r.subject = pod.key;
      if (pod.leaves && (!r.until || *r.until < pod.leaves)) r.until = pod.leaves;
    }
  }
  return r;
}

void Explainer::add_ahead(GangId id, Refusal& refusal) const {
  const WaitRecord& record = waiting_->record(id);
  refusal.ahead.clear();
  refusal.ahead_count = 0;
  if (const auto start = reservations_->expected_start(id)) refusal.expected_start = start;
  if (!record.listed) return;
  std::vector<std::pair<Rank, GangId>> first;
  for (const auto& [shape, bucket] : waiting_->buckets(record.tenant)) {
    std::size_t shown = 0;
    for (const auto& entry : bucket.by_rank) {
      if (!(entry.first < record.rank) || refusal.ahead_count == Refusal::kAheadCounted) break;
      ++refusal.ahead_count;
      if (shown++ < kAheadShown) first.push_back(entry);
    }
  }
  std::sort(first.begin(), first.end());
  for (std::size_t i = 0; i < first.size() && i < kAheadShown; ++i)
    refusal.ahead.push_back(state_->gang(first[i].second).key);
}

Refusal Explainer::reservation(GangId id) const {
  Refusal r;
  r.reason = Reason::kHeldForReservation;
  const Reservations::Hold* first = reservations_->first_of_others(id);
  if (first == nullptr) return r;
  r.subject = state_->gang(first->gang).key;
  if (first->start) r.until = first->start;
  return r;
}

/// All would fit, but not in one domain: the one that takes most.
void Explainer::add_domains(GangId id, PodId pod, Refusal& refusal) const {
  std::string key;
  for (const auto& level : levels_of(state_, state_->gang(id))) {
    if (level.required) key = level.key;
  }
  if (key.empty()) return;
  std::map<std::string, std::int64_t> room;
  for (std::uint32_t n = 0; n < state_->node_count(); ++n) {
    const NodeState& node = state_->node(NodeId(n));
    const std::string* value = node.live ? find_label(node.spec->labels, key) : nullptr;
    if (value != nullptr)
      room[*value] += fit_count(state_, state_->cls_of(pod), node, refusal.members_wanted);
  }
  std::int64_t most = 0;
  for (const auto& [value, n] : room) {
    if (n <= most) continue;
    most = n;
    refusal.subject = key + "=" + value;
  }
  refusal.reason = Reason::kTopology;
  refusal.members_found =
      static_cast<std::int32_t>(std::min<std::int64_t>(most, refusal.members_wanted));
}

Survey Explainer::survey(PodId pod, GangId gang, std::int32_t wanted) {
  const TaskClass& cls = state_->cls_of(pod);
  const Preemptor who{.cls = state_->pod(pod).cls,
                      .priority = state_->gang(gang).spec->priority,
                      .tenant = state_->gang(gang).tenant,
                      .gang = gang};
  const Asking asking{state_, desk_->tenants, who, desk_->now, false};
  const auto& evictable = state_->evictable_priorities();
  const bool victims_anywhere = !evictable.empty() && (state_->tenant(who.tenant).spec.t9k ||
                                                       evictable.begin()->first < who.priority);
  if (!victims_anywhere && !needs_between(state_, pod))
    return surveys_.of(state_, pod, wanted, desk_->index.checks);
  Survey survey;
  for (std::uint32_t n = 0; n < state_->node_count(); ++n) {
    const NodeState& node = state_->node(NodeId(n));
    if (!node.live) continue;
    const Misfit m = fit(state_, pod, NodeId(n));
    ++desk_->index.checks;
    if (lacks_only_room(m)) {
      survey.ever_fits |= cls.request.fits_in(node.allocatable);
      for (std::size_t i = 0; i < cls.request.size(); ++i) {
        if (cls.request[i] <= 0 || i == ResourceNames::kPods) continue;
        std::int64_t& most = survey.most_free[i];
        most = std::max(most, std::max<std::int64_t>(node.free[i], 0));
        survey.largest[i] = std::max(survey.largest[i], node.allocatable[i]);
      }
    }
    if (m.ok()) {
      survey.placeable += fit_count(state_, cls, node, wanted);
      continue;
    }
    const std::string text = misfit_text(state_, who.cls, NodeId(n), m);
    ++survey.causes[text];
    const bool victims =
        victims_anywhere && std::any_of(node.pods.begin(), node.pods.end(), [&](PodId p) {
          return eligible(asking, state_->pod(p));
        });
    ++survey.after_eviction[!eviction_may_help(m.cause) ? kNotHelpful
                            : victims                   ? text
                                                        : kNoVictims];
  }
  return survey;
}

/// What no node has enough of: free, or at all when even an empty node would not do.
void Explainer::add_shortages(const Survey& survey, const TaskClass& cls, Refusal& refusal) const {
  const bool never = refusal.reason == Reason::kNeverFits;
  for (const auto& [i, there] : never ? survey.largest : survey.most_free) {
    if (there >= cls.request[i]) continue;
    const std::int64_t factor = state_->names().factor(i);
    refusal.shortages.push_back(
        {state_->names().name(i), (cls.request[i] + factor - 1) / factor, there / factor, 0});
  }
}

Refusal Explainer::nodes(GangId id) {
  Refusal r;
  r.reason = Reason::kNoNodeFits;
  r.nodes_total = static_cast<std::int32_t>(state_->live_nodes());
  const Members members = members_of(state_, id);
  r.members_wanted = std::max(members.need.total, 1);
  if (members.tasks.empty()) return r;
  const PodId pod = members.tasks.front();
  const Survey seen = survey(pod, id, r.members_wanted);
  if (state_->config().preempt) {
    std::vector<NodeCount> counts;
    for (const auto& [text, n] : seen.after_eviction) counts.push_back({text, n});
    r.preemption = none_available(r.nodes_total, counts);
  }
  r.members_found =
      static_cast<std::int32_t>(std::min<std::int64_t>(seen.placeable, r.members_wanted));
  for (const auto& [text, n] : seen.causes) r.by_cause.push_back({text, n});
  if (!seen.ever_fits && !seen.most_free.empty() && r.nodes_total > 0)
    r.reason = Reason::kNeverFits;
  add_shortages(seen, state_->cls_of(pod), r);
  if (seen.placeable >= r.members_wanted) add_domains(id, pod, r);
  return r;
}

// ------------------------------------------------------------------ views

WaitView Explainer::view_of(GangId id) const {
  const GangState& gang = state_->gang(id);
  WaitView view;
  view.key = gang.key;
  view.is_group = gang.has_group;
  view.queue = state_->tenant(gang.tenant).name;
  view.priority = gang.spec->priority;
  view.since = gang.created;
  view.refusal = waiting_->record(id).refusal;
  return view;
}

namespace {
bool is_waiting(const State& state, const Waiting& waiting, GangId id) {
  if (!id.valid() || !waiting.has_record(id)) return false;
  const GangState& gang = state.gang(id);
  return gang.live && gang.pending > 0 && waiting.record(id).seq == gang.seq;
}
}  // namespace

std::optional<WaitView> Explainer::told(GangId id) const {
  if (!is_waiting(state_, waiting_, id)) return std::nullopt;
  return told_view_of(id);
}

WaitView Explainer::told_view_of(GangId id) const {
  WaitView view = view_of(id);
  const WaitRecord& record = waiting_->record(id);
  // Only the first few of many that are alike are told themselves.
  if (record.listed && view.refusal.reason == Reason::kNone) {
    const Shape& shape = waiting_->shape(record.shape);
    if (shape.has_refusal) view.refusal = waiting_->story_of(shape, id);
  }
  return view;
}

std::optional<WaitView> Explainer::why(GangId id) {
  if (!is_waiting(state_, waiting_, id)) return std::nullopt;
  WaitView view = view_of(id);
  const WaitRecord& record = waiting_->record(id);
  if (!record.listed) return view;
  desk_->tenants.refresh(state_);
  if (waiting_->shape(record.shape).blocked) {
    view.refusal = nodes(id);
    if (!view.refusal.preemption.empty() && never_preempts(state_, id))
      view.refusal.preemption = record.refusal->preemption;
  }
  add_ahead(id, view.refusal);
  for (const auto& [shape, bucket] : waiting_->buckets(record.tenant)) {
    const auto at = bucket.by_rank.lower_bound({record.rank, id});
    view.rank += static_cast<std::int32_t>(std::distance(bucket.by_rank.begin(), at));
  }
  view.refusal.ahead_count = view.rank;
  return view;
}

std::vector<WaitView> Explainer::waiting(TenantId tenant, std::size_t limit) const {
  std::vector<WaitView> out;
  if (!tenant.valid() || tenant.index() >= waiting_->tenant_count()) return out;
  std::set<std::pair<Rank, GangId>> all;
  for (const auto& [shape, bucket] : waiting_->buckets(tenant)) {
    std::size_t n = 0;
    for (const auto& entry : bucket.by_rank) {
      if (n++ == limit) break;
      all.insert(entry);
    }
  }
  for (const auto& [rank, id] : all) {
    if (out.size() == limit) break;
    WaitView view = told_view_of(id);
    view.queue = state_->tenant(tenant).name;
    view.rank = static_cast<std::int32_t>(out.size());
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace muster::engine
