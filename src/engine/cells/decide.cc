// Who of those that wait for cells is tried, in which order, and what becomes of it.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "engine/cells/policy.h"

namespace muster::engine::cells {

namespace {

/// A gang waits this long before later ones are held back for it: most waits end sooner, and
/// holding back costs throughput.
constexpr Duration kPatience = std::chrono::minutes(5);

/// Explaining looks at all nodes of a view; so many gangs get one in a round.
constexpr std::size_t kExplainedMax = 64;

/// A pod that somebody protects must not be asked for again and again.
constexpr Duration kSparedFirst = std::chrono::milliseconds(100);
constexpr Duration kSparedMost = std::chrono::seconds(30);

constexpr std::int32_t kWholeDevice = 1000;  // in thousandths

Refusal refusal_of(Reason reason, std::string words) {
  Refusal refusal;
  refusal.reason = reason;
  refusal.words = std::move(words);
  return refusal;
}

Refusal waiting_for_victims() {
  return refusal_of(Reason::kWaitingForVictims,
                    "waiting for the pods it preempts to leave their cells");
}

std::int64_t devices_of(const PodSpec& spec) {
  std::int64_t devices = 0;
  for (const GroupMember& part : spec.members) devices += std::int64_t{part.pods} * part.leaves;
  return devices;
}

/// For how many more pods of that size the gang has cells.
std::int32_t places_for(const Group& group, std::int32_t leaves) {
  std::int32_t places = 0;
  for (const Group::Member& part : group.members) {
    if (part.leaves != leaves) continue;
    for (std::size_t slot = 0; slot < part.slots.size(); ++slot)
      places += part.is_free(slot) ? 1 : 0;
  }
  return places;
}

}  // namespace

Plan CellPolicy::decide(Time now) {
  take_in(now);
  Plan plan;
  if (dirty_ || (due_ && *due_ <= now)) place_waiting(now, plan);
  // After the cells: what waits beside them sees what they took, in this very decision.
  Plan rest = rest_->decide(now);
  publish(plan, rest);
  return plan;
}

void CellPolicy::place_waiting(Time now, Plan& plan) {
  dirty_ = false;
  due_.reset();
  const auto holds_before = std::exchange(holds_, {});
  explained_.clear();
  awaited_nodes_.clear();
  for (const std::string& key : waiting_) {
    Member& member = members_.at(key);
    // What was counted is taken back from the queue it was counted for.
    charge(member, 0);
    // Its gang and its queue may be other ones by now.
    read(member, state_.pod(state_.find_pod(key)));
  }
  give_up_reserved();
  charge_kept();
  tenants_.refresh(state_);
  std::vector<Rank> order;
  for (const std::string& key : waiting_) {
    const Member& member = members_.at(key);
    order.push_back({standing(member), tenants_.share(state_, member.tenant), member.created, key});
  }
  std::sort(order.begin(), order.end());
  for (const Rank& rank : order) {
    Member& member = members_.at(rank.key);
    try_member(rank.key, member, now, plan);
    if (member.bound) waiting_.erase(rank.key);
  }
  tell(order, plan);
  plan.reservations_changed = holds_ != holds_before;
}

/// The gang that the member joins if it has cells.
std::string CellPolicy::joins(const Member& member) {
  return member.derived && !member.gang.empty() ? gang_name(member.gang) : member.spec.group;
}

/// What is reserved for a gang is for the gang as it was then. One that is suspended or has too few
/// pods cannot start and keeps no cells from others; one that has shrunk would keep places for pods
/// that do not come; and one whose queue has moved would start in the former virtual cluster.
void CellPolicy::give_up_reserved() {
  std::map<std::string, std::vector<const Member*>> gangs;
  for (const std::string& key : waiting_) {
    const Member& member = members_.at(key);
    const Group* group = member.derived ? allocator_.find_group(joins(member)) : nullptr;
    if (group != nullptr && group->state == GroupState::kPreempting)
      gangs[group->name].push_back(&member);
  }
  for (const auto& [name, members] : gangs) {
    const Group& group = *allocator_.find_group(name);
    const bool shrunk =
        std::any_of(group.members.begin(), group.members.end(), [&](const Group::Member& part) {
          const auto here = std::count_if(members.begin(), members.end(), [&](const Member* one) {
            return one->spec.leaves == part.leaves;
          });
          return static_cast<std::size_t>(here) < part.slots.size();
        });
    const Member& first = *members.front();
    const bool moved = allocator_.cells().vc(group.vc).name != first.spec.vc;
    if (!shrunk && !moved && !unready(first)) continue;
    for (const Member* one : members) allocator_.delete_unallocated(one->ref, name);
  }
}

/// Asks the allocator. Whoever loses a reservation by that has nothing to be counted for any more.
Decision CellPolicy::ask(const Member& member, Phase phase, Time now) {
  Decision decision = allocator_.schedule({member.ref, member.spec, phase, nullptr, now});
  if (decision.cancelled) charge_kept();
  return decision;
}

/// Its priority, unless it comes back to a gang that has lost its guarantee: whoever is guaranteed
/// those cells is tried first, or the gang would get its pod back and lose it in the same plan.
std::int32_t CellPolicy::standing(const Member& member) const {
  const Group* group = allocator_.find_group(joins(member));
  if (group == nullptr || group->has_virtual || places_for(*group, member.spec.leaves) == 0)
    return member.spec.priority;
  return std::min(member.spec.priority, kOpportunistic);
}

/// Cells that are kept for a pod, because its gang has them or makes others leave them, are its
/// queue's already: nobody else may have that part of the limit meanwhile.
void CellPolicy::charge_kept() {
  std::map<std::pair<std::string, std::int32_t>, std::int32_t> places;  // By gang and size.
  for (const std::string& key : waiting_) {
    Member& member = members_.at(key);
    charge(member, 0);
    const std::string name = joins(member);
    const Group* group = allocator_.find_group(name);
    if (group == nullptr) continue;
    const auto [left, fresh] = places.try_emplace({name, member.spec.leaves}, 0);
    if (fresh) left->second = places_for(*group, member.spec.leaves);
    if (left->second-- > 0) charge(member, member.spec.leaves);
  }
}

/// Gangs are told as one; the first of its members tells for all.
void CellPolicy::tell(const std::vector<Rank>& order, Plan& plan) {
  std::map<std::string, std::string> told;
  for (const Rank& rank : order) {
    if (!waiting_.contains(rank.key)) continue;
    const Member& member = members_.at(rank.key);
    const GangState& gang = state_.gang(gang_of(rank.key));
    const std::string& key = gang.has_group ? gang.key : rank.key;
    if (!told.try_emplace(key, member.refusal.words).second) continue;
    const auto before = told_.find(key);
    if (before != told_.end() && before->second == member.refusal.words) continue;
    plan.waits.push_back(
        {gang.has_group ? key : "", gang.has_group ? "" : rank.key, member.refusal});
  }
  told_ = std::move(told);
}

/// Pods of a group that is not known are told one by one here, and as a group beside.
bool CellPolicy::told_about(const Wait& wait) const {
  if (wait.group.empty()) return told_.contains(wait.pod);
  if (told_.contains(wait.group)) return true;
  const GangId gang = state_.find_gang(wait.group);
  if (!gang.valid()) return false;
  const auto& pods = state_.gang(gang).pods;
  return std::any_of(
      pods.begin(), pods.end(), [this](PodId pod) { return told_.contains(state_.pod(pod).key); });
}

/// One plan of two: what the policy beside says about those that wait for cells is only that it
/// does not place them.
void CellPolicy::publish(Plan& plan, const Plan& rest) {
  plan.binds.insert(plan.binds.end(), rest.binds.begin(), rest.binds.end());
  plan.evicts.insert(plan.evicts.end(), rest.evicts.begin(), rest.evicts.end());
  plan.nominations = rest.nominations;
  plan.phases = rest.phases;
  for (const Wait& wait : rest.waits) {
    if (!told_about(wait)) plan.waits.push_back(wait);
  }
  if (rest.reservations_changed) rest_holds_ = rest.reservations;
  plan.reservations_changed = plan.reservations_changed || rest.reservations_changed;
  if (plan.reservations_changed) {
    plan.reservations = rest_holds_;
    for (const auto& [vc, hold] : holds_) {
      Reservation reservation;
      reservation.holder = hold.gang;
      if (hold.until) reservation.start = *hold.until;
      plan.reservations.push_back(std::move(reservation));
    }
  }
  plan.wake = rest.wake;
  if (due_ && (!plan.wake || *due_ < *plan.wake)) plan.wake = due_;
}

void CellPolicy::try_member(const std::string& key, Member& member, Time now, Plan& plan) {
  if (auto why = not_for_cells(key, member)) {
    member.refusal = std::move(*why);
    return;
  }
  settle_gang(member);
  if (auto why = held_back(member, now)) {
    const bool makes_room =
        why->reason == Reason::kTenantOverLimit && make_room_in_queue(key, member, now, plan);
    member.refusal = makes_room ? waiting_for_victims() : std::move(*why);
    return;
  }
  const Group* known = allocator_.find_group(member.spec.group);
  if (known == nullptr) ++state_.attempts;
  // Only the preempting phase sees that a cell which is being freed has turned bad.
  const bool reserved = known != nullptr && known->state == GroupState::kPreempting;
  const Phase first = reserved ? Phase::kPreempting : Phase::kFiltering;
  Decision decision = ask(member, first, now);
  // Filtering only says that victims would help; the preempting phase reserves their cells for this
  // gang.
  if (decision.kind == Decision::Kind::kPreempt && !reserved)
    decision = ask(member, Phase::kPreempting, now);
  switch (decision.kind) {
    case Decision::Kind::kBind:
      bind(key, member, std::move(decision.bind), now, plan);
      return;
    case Decision::Kind::kPreempt:
      evict(key, decision, now, plan);
      charge(member, member.spec.leaves);
      member.refusal = waiting_for_victims();
      return;
    case Decision::Kind::kWait:
      wait_for_cells(member, decision.reason);
      reserve(member, now);
      return;
    case Decision::Kind::kError:
      member.refusal = refusal_of(Reason::kTopology, decision.reason);
      return;
  }
}

/// A device that somebody has although its cell is free: a pod whose cells cannot be told from what it
/// carries. For a gang that starts all its places are looked at.
std::optional<Refusal> CellPolicy::occupied(const Member& member, const BindInfo& seat) const {
  const auto taken = [this](const std::string& name,
                            const std::vector<std::int32_t>& indexes) -> std::optional<Refusal> {
    const NodeId id = state_.find_node(name);
    if (!id.valid()) return std::nullopt;
    for (const DeviceState& device : state_.node(id).devices) {
      const bool wanted = std::find(indexes.begin(), indexes.end(), device.index) != indexes.end();
      if (wanted && device.free_milli < kWholeDevice)
        return refusal_of(Reason::kTopology,
                          fmt::format("device {} of its cells on node {} is used by a pod that has "
                                      "no right to them",
                                      device.index,
                                      name));
    }
    return std::nullopt;
  };
  if (allocator_.find_group(member.spec.group) != nullptr) return taken(seat.node, seat.leaves);
  for (const MemberPlacement& part : *seat.group) {
    for (const PodPlacement& place : part.pods) {
      if (auto why = taken(place.node, place.leaves)) return why;
    }
  }
  return std::nullopt;
}

void CellPolicy::bind(const std::string& key, Member& member, BindInfo seat, Time now, Plan& plan) {
  if (auto why = occupied(member, seat)) {
    member.refusal = std::move(*why);
    return;
  }
  const NodeId node = state_.find_node(seat.node);
  if (auto why = unusable(node, seat.node)) {
    // Its gang holds that place, whatever became of the node since.
    awaited_nodes_.insert(seat.node);
    member.refusal = std::move(*why);
    return;
  }
  const auto added = allocator_.add_allocated(member.ref, member.spec, seat, now);
  if (!added) {
    member.refusal = refusal_of(Reason::kTopology, added.error().message);
    return;
  }
  state_.bind_at(state_.find_pod(key), node, now, seat.leaves);
  Bind out;
  out.pod = key;
  out.uid = member.ref.uid;
  out.node = seat.node;
  out.devices = seat.leaves;
  auto written = std::make_shared<Seat>();
  written->bind = seat;
  if (member.derived) written->spec = member.spec;
  out.cells = std::move(written);
  plan.binds.push_back(std::move(out));
  member.bound = std::move(seat);
  charge(member, member.spec.leaves);
  if (member.expected_duration.count() > 0) member.ends = now + member.expected_duration;
  member.refusal = {};
}

void CellPolicy::evict(const std::string& key, const Decision& decision, Time now, Plan& plan) {
  for (const Victims& victims : decision.victims) {
    for (const PodRef& ref : victims.pods) {
      const PodId id = state_.find_pod(ref.name);
      const auto found = members_.find(ref.name);
      if (!id.valid() || found == members_.end()) continue;
      if (state_.pod(id).phase != PodPhase::kBound) continue;
      Member& victim = found->second;
      if (victim.evict_failures > 0 && !victim.spared_until) {
        const Duration wait = kSparedFirst * (1 << std::min(victim.evict_failures - 1, 10));
        victim.spared_until = now + std::min<Duration>(wait, kSparedMost);
      }
      if (victim.spared_until && now < *victim.spared_until) {
        wake_at(*victim.spared_until);
        continue;
      }
      state_.evict(id);
      Evict out;
      out.pod = ref.name;
      out.uid = ref.uid;
      out.node = victims.node;
      out.for_whom = out.for_whom_pod = key;
      plan.evicts.push_back(std::move(out));
    }
  }
}

void CellPolicy::settle_gang(Member& member) const {
  if (!member.derived || member.gang.empty()) return;
  std::map<std::int32_t, std::int32_t> pods_of_size;
  const std::string name = gang_name(member.gang);
  if (const Group* known = allocator_.find_group(name)) {
    const bool room =
        known->state == GroupState::kPreempting || places_for(*known, member.spec.leaves) > 0;
    for (const Group::Member& part : known->members)
      pods_of_size[part.leaves] = static_cast<std::int32_t>(part.slots.size());
    if (!room || !pods_of_size.contains(member.spec.leaves)) {
      // The gang started without it: it comes on top, alone.
      member.spec.group = member.ref.name;
      member.spec.members = {{1, member.spec.leaves}};
      return;
    }
    // All pods of a gang carry whose cells it has, whatever became of its queue since.
    member.spec.vc = allocator_.cells().vc(known->vc).name;
  } else {
    for (const PodId pod : state_.gang(state_.find_gang(member.gang)).pods) {
      const std::string& key = state_.pod(pod).key;
      if (!waiting_.contains(key)) continue;
      const Member& other = members_.at(key);
      if (other.derived) ++pods_of_size[other.spec.leaves];
    }
  }
  member.spec.group = name;
  member.spec.members.clear();
  for (const auto& [leaves, number] : pods_of_size) member.spec.members.push_back({number, leaves});
}

/// Why nothing new goes to the node.
std::optional<Refusal> CellPolicy::unusable(NodeId id, const std::string& name) const {
  const bool there = id.valid() && state_.node(id).live;
  if (there && state_.node(id).spec->ready && !state_.node(id).spec->unschedulable)
    return std::nullopt;
  return refusal_of(Reason::kTopology,
                    fmt::format("its gang holds cells for it on node {}, which {}",
                                name,
                                !there                        ? "is not there"
                                : state_.node(id).spec->ready ? "is cordoned"
                                                              : "is not ready"));
}

/// Asks for something that no cell is.
std::optional<Refusal> CellPolicy::not_for_cells(const std::string& key,
                                                 const Member& member) const {
  if (!member.spec_error.empty()) return refusal_of(Reason::kTopology, member.spec_error);
  if (!member.derived) return std::nullopt;
  const PodState& pod = state_.pod(state_.find_pod(key));
  if (state_.cls(pod.cls).share_milli > 0)
    return refusal_of(
        Reason::kGated,
        "this cluster hands out GPUs as cells, whole ones only: ask for GPUs instead of a share of one");
  if (!member.spec.vc.empty()) return std::nullopt;
  if (!member.gang.empty() && !state_.gang(pod.gang).has_group)
    return refusal_of(Reason::kGroupMissing, "it waits for its group: no such PodGroup yet");
  return refusal_of(
      Reason::kGated,
      fmt::format(
          "this cluster hands out {} by virtual cluster ({}) and queue {} belongs to none: use a queue of that name or with "
          "the annotation muster.dev/virtual-cluster, or HiveD's annotation hivedscheduler.microsoft.com/pod-scheduling-spec on the pod",
          state_.config().device_resource,
          virtual_clusters(),
          state_.tenant(member.tenant).name));
}

/// Why a derived pod's gang cannot start yet.
std::optional<Refusal> CellPolicy::unready(const Member& member) const {
  if (!member.derived || member.gang.empty()) return std::nullopt;
  const GangState& gang = state_.gang(state_.find_gang(member.gang));
  const std::string name = gang_name(member.gang);
  if (!gang.has_group)
    return refusal_of(Reason::kGroupMissing,
                      fmt::format("its gang {} is not known yet: no such PodGroup", name));
  if (gang.spec->hold)
    return refusal_of(Reason::kGated, fmt::format("its gang {} is suspended", name));
  const std::int32_t here = gang.wanted + gang.bound + gang.succeeded;
  if (here >= gang.spec->min_member) return std::nullopt;
  const auto gated = std::count_if(gang.pods.begin(), gang.pods.end(), [this](PodId pod) {
    return state_.pod(pod).held_back && !state_.pod(pod).node.valid();
  });
  Refusal refusal = refusal_of(
      Reason::kNotEnoughMembers,
      fmt::format("its gang {} has {} of {} pods{}",
                  name,
                  here,
                  gang.spec->min_member,
                  gated > 0 ? fmt::format(", beside {} with scheduling gates", gated) : ""));
  refusal.members_wanted = gang.spec->min_member;
  refusal.members_found = here;
  return refusal;
}

std::optional<Refusal> CellPolicy::held_back(const Member& member, Time now) const {
  if (auto why = unready(member)) return why;
  // A gang that holds cells already (or has them reserved) has passed.
  if (allocator_.find_group(member.spec.group) != nullptr) return std::nullopt;
  if (auto why = tenants_.excess(state_, member.tenant, devices_of(member.spec))) return why;
  return kept_for_another(member, now);
}

std::optional<Refusal> CellPolicy::kept_for_another(const Member& member, Time now) const {
  const auto hold = holds_.find(member.spec.vc);
  if (hold == holds_.end() || member.spec.priority < 0 || hold->second.gang == member.spec.group)
    return std::nullopt;
  const bool in_time = member.expected_duration.count() > 0 && hold->second.until &&
                       now + member.expected_duration <= *hold->second.until;
  if (in_time) return std::nullopt;
  Refusal refusal = refusal_of(
      Reason::kHeldForReservation,
      fmt::format(
          "{} is kept free for {}, which has waited longer; a gang that says (annotation muster.dev/expected-duration) that it ends before "
          "any other there may go first",
          member.spec.vc,
          hold->second.gang));
  refusal.subject = hold->second.gang;
  refusal.until = hold->second.until;
  return refusal;
}

bool CellPolicy::make_room_in_queue(const std::string& key,
                                    const Member& member,
                                    Time now,
                                    Plan& plan) {
  if (member.spec.priority < 0 || kept_for_another(member, now)) return false;
  const auto over = tenants_.over(state_, member.tenant, devices_of(member.spec));
  // Asked of every gang that waits for its queue: nobody is looked at where that cannot help.
  if (!over || spare_ < over->by) return false;
  std::map<std::string, std::vector<const Member*>> gangs;
  std::int64_t held = 0;
  for (const auto& [name, other] : members_) {
    const bool gives_way = other.bound && other.spec.priority < 0 &&
                           CellTenants::within(state_, other.tenant, over->queue);
    if (!gives_way) continue;
    gangs[other.spec.group].push_back(&other);
    held += other.counted;
  }
  if (held < over->by) return false;
  // Nobody leaves for a gang that would have no cells then.
  const Decision decision = ask(member, Phase::kFiltering, now);
  if (decision.kind != Decision::Kind::kBind && decision.kind != Decision::Kind::kPreempt)
    return false;
  // Who is on the way out goes first, then who came last.
  const auto leaving = [this](const std::vector<const Member*>& gang) {
    const PodId pod = state_.find_pod(gang.front()->ref.name);
    return !pod.valid() || state_.pod(pod).phase != PodPhase::kBound;
  };
  std::vector<const std::vector<const Member*>*> order;
  for (const auto& [name, gang] : gangs) order.push_back(&gang);
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    if (leaving(*a) != leaving(*b)) return leaving(*a);
    return a->front()->created > b->front()->created;
  });
  Decision leave;
  std::int64_t freed = 0;
  for (const auto* gang : order) {
    if (freed >= over->by) break;
    for (const Member* other : *gang) {
      freed += other->counted;
      leave.victims.push_back({other->bound->node, {other->ref}});
    }
  }
  evict(key, leave, now, plan);
  return true;
}

void CellPolicy::wait_for_cells(Member& member, const std::string& reason) {
  auto explained = explained_.find(member.spec.group);
  if (explained == explained_.end()) {
    // Who is far behind in a long backlog keeps the explanation he had.
    if (explained_.size() >= kExplainedMax && member.refusal.words.starts_with(reason)) return;
    std::string text = explained_.size() < kExplainedMax ? allocator_.explain(member.spec) : "";
    explained = explained_.emplace(member.spec.group, std::move(text)).first;
  }
  member.refusal = refusal_of(
      Reason::kTopology,
      explained->second.empty() ? reason : fmt::format("{}: {}", reason, explained->second));
}

void CellPolicy::reserve(const Member& member, Time now) {
  const BackfillMode mode = CellTenants::backfill(state_, member.tenant);
  if (member.spec.priority < 0 || mode == BackfillMode::kSkip || holds_.contains(member.spec.vc) ||
      !allocator_.could_hold(member.spec))
    return;
  const Time ripe = member.created + kPatience;
  if (mode == BackfillMode::kReservation && now < ripe) {
    wake_at(ripe);
    return;
  }
  Hold hold{member.spec.group, std::nullopt};
  if (mode == BackfillMode::kReservation) {
    bool known = true;
    for (const auto& [key, other] : members_) {
      if (!other.bound || other.spec.vc != member.spec.vc || other.spec.priority < 0) continue;
      known = known && other.ends != Time{};
      if (known && (!hold.until || other.ends < *hold.until)) hold.until = other.ends;
    }
    if (!known) hold.until.reset();
  }
  holds_.emplace(member.spec.vc, std::move(hold));
}

std::string CellPolicy::virtual_clusters() const {
  std::vector<std::string> names;
  for (const VirtualCluster& vc : allocator_.cells().vcs) {
    if (vc.configured) names.push_back(vc.name);
  }
  return join(names, ", ");
}

}  // namespace muster::engine::cells
