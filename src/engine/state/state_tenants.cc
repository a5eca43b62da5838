// Groups, queues, budgets, namespaces and the configuration.
#include <algorithm>
#include <utility>

#include "engine/state/state.h"

namespace muster::engine {

void State::move_gang_tenant(GangId id, TenantId tenant) {
  GangState& gang = gangs_[id.index()];
  ResourceVector waiting;
  for (const PodId p : gang.pods) {
    if (pods_[p.index()].phase == PodPhase::kPending)
      waiting += classes_[pods_[p.index()].cls.index()].request;
  }
  for (const PodId p : gang.pods) give_up_nomination(p);
  charge(gang, gang.allocated, false);
  count_standing(gang, -1);
  tenants_[gang.tenant.index()].pending -= waiting;
  gang.tenant = tenant;
  tenants_[gang.tenant.index()].pending += waiting;
  count_standing(gang, +1);
  charge(gang, gang.allocated, true);
  mark_ends(id);
  mark(id);
}

void State::on(const GroupUpsert& e) {
  const GangId id = intern_gang(e.group.key, gang_ids_.hash(e.group.key));
  GangState& gang = gangs_[id.index()];
  const bool first = !gang.has_group;
  const bool priority_changed = gang.spec->priority != e.group.priority || first;
  const bool rules_changed = first || gang.spec->min_member != e.group.min_member ||
                             gang.spec->disruption != e.group.disruption ||
                             gang.spec->preemptable != e.group.preemptable ||
                             gang.spec->parent != e.group.parent || priority_changed;
  if (e.group.is_parent) {
    ++victims_version_;
  } else if (rules_changed) {
    touch_gang(id);
  }
  if (first || gang.spec->parent != e.group.parent) {
    if (!first) leave_family(id);
    if (!e.group.parent.empty()) {
      auto& family = families_[e.group.parent];
      family.insert(std::upper_bound(family.begin(), family.end(), id), id);
    }
  }
  gang.has_group = true;
  gang.described = true;
  gang.spec = e.group;
  gang.created = e.group.created;
  restand(gang);
  if (priority_changed) {
    for (const PodId p : gang.pods) count_evictable(pods_[p.index()]);
  }
  if (first && e.group.admitted) gang.phase = GroupPhase::kInqueue;
  const TenantId tenant =
      intern_tenant(e.group.queue.empty() ? config_.default_queue : e.group.queue);
  if (gangs_[id.index()].tenant != tenant) move_gang_tenant(id, tenant);
  mark_ends(id);
  mark(id);
}

void State::on(const GroupRemove& e) {
  const GangId id = find_gang(e.key);
  if (!id.valid()) return;
  GangState& gang = gangs_[id.index()];
  if (gang.has_group) leave_family(id);
  gang.has_group = false;
  gang.phase = GroupPhase::kPending;
  touch_gang(id);
  mark_ends(id);
  mark(id);
  if (gang.pods.empty()) {
    gang.live = false;
    gang_ids_.erase(gang_ids_.hash(*gang.key), id);
    free_gangs_.push_back(id);
  }
}

void State::relink_tenant(TenantId id, const std::string& parent) {
  TenantId wanted;
  if (!parent.empty() && parent != tenants_[id.index()].name) wanted = intern_tenant(parent);
  // A parent below its own child would be a cycle: such a queue hangs below the root instead.
  TenantId up = wanted;
  for (int depth = 0; up.valid() && depth < 32; ++depth) {
    if (up == id) {
      wanted = TenantId{};
      break;
    }
    up = tenants_[up.index()].parent;
  }
  TenantState& tenant = tenants_[id.index()];
  if (tenant.parent == wanted) return;
  const auto move = [&](bool add) {
    TenantId t = tenants_[id.index()].parent;
    for (int depth = 0; t.valid() && depth < 32; ++depth) {
      ++tenants_[t.index()].charged;
      if (add) {
        tenants_[t.index()].allocated += tenants_[id.index()].allocated;
        tenants_[t.index()].held += tenants_[id.index()].held;
      } else {
        tenants_[t.index()].allocated -= tenants_[id.index()].allocated;
        tenants_[t.index()].held -= tenants_[id.index()].held;
      }
      t = tenants_[t.index()].parent;
    }
  };
  move(false);
  if (tenant.parent.valid()) {
    auto& siblings = tenants_[tenant.parent.index()].children;
    siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  }
  tenants_[id.index()].parent = wanted;
  if (wanted.valid()) tenants_[wanted.index()].children.push_back(id);
  move(true);
}

/// What waits in a queue that was open is held by its limits alone: it is looked at anew when the
/// queue closes or goes.
void State::mark_gangs_of(TenantId id) {
  for (std::uint32_t g = 0; g < gangs_.size(); ++g) {
    if (gangs_[g].live && gangs_[g].tenant == id && gangs_[g].pending > 0) mark(GangId(g));
  }
}

void State::on(const QueueUpsert& e) {
  const TenantId id = intern_tenant(e.queue.name);
  relink_tenant(id, e.queue.parent);
  std::uint32_t mask = 0;
  const ResourceVector capability = vector_of(e.queue.capability, &mask);
  const ResourceVector guarantee = vector_of(e.queue.guarantee);
  const ResourceVector deserved = vector_of(e.queue.deserved);
  TenantState& tenant = tenants_[id.index()];
  const Queue& old = tenant.spec;
  if (!tenant.live || old.t9k != e.queue.t9k || old.preemptible != e.queue.preemptible ||
      old.priority != e.queue.priority || old.reclaimable != e.queue.reclaimable) {
    ++victims_version_;
  }
  const bool ages_changed = old.max_duration != e.queue.max_duration;
  if (tenant.live && old.state != e.queue.state) mark_gangs_of(id);
  tenant.live = true;
  tenant.spec = e.queue;
  tenant.capability = capability;
  tenant.capability_mask = mask;
  tenant.guarantee = guarantee;
  tenant.deserved = deserved;
  ++tenants_version_;
  for (std::uint32_t p = 0; ages_changed && p < pods_.size(); ++p) {
    if (!pods_[p].live || !pods_[p].node.valid() || gangs_[pods_[p].gang.index()].tenant != id)
      continue;
    note_end(PodId(p), true);
    pods_[p].ends = expected_end(pods_[p]);
    note_end(PodId(p), false);
  }
}

void State::on(const QueueRemove& e) {
  const TenantId id = find_tenant(e.name);
  if (!id.valid()) return;
  relink_tenant(id, "");
  mark_gangs_of(id);
  ++victims_version_;
  TenantState& tenant = tenants_[id.index()];
  tenant.live = false;
  tenant.spec = Queue{};
  tenant.spec.name = tenant.name;
  tenant.capability = ResourceVector();
  tenant.capability_mask = 0;
  tenant.guarantee = ResourceVector();
  tenant.deserved = ResourceVector();
  ++tenants_version_;
}

void State::on(const BudgetUpsert& e) {
  DisruptionBudget& budget = budgets_[e.budget.key];
  if (budget.key.empty() || budget.disruptions_allowed != e.budget.disruptions_allowed ||
      budget.selector != e.budget.selector)
    ++victims_version_;
  budget = e.budget;
}
void State::on(const BudgetRemove& e) {
  if (budgets_.erase(e.key) > 0) ++victims_version_;
}
void State::on(const NamespaceUpsert& e) { namespaces_[e.ns.name] = e.ns.labels; }
void State::on(const NamespaceRemove& e) { namespaces_.erase(e.name); }

void State::on(const ConfigChange& e) {
  // The device resource is part of every stored vector; it can only be chosen at the start.
  const std::string device = config_.device_resource;
  // So can the kind of policy, which has a memory of its own.
  const PolicyKind policy = config_.policy;
  // Indexes keep nodes in the order of the placement rule; they learn of a new one as of any other
  // change of a node.
  if (e.config.placement != config_.placement) {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].live) touch(NodeId(n));
    }
  }
  // Whether and where a gang stands in its queue may follow from what has changed.
  for (std::uint32_t g = 0; g < gangs_.size(); ++g) {
    if (gangs_[g].live && gangs_[g].pending > 0) mark(GangId(g));
  }
  config_ = e.config;
  config_.device_resource = device;
  config_.policy = policy;
  config_changed_ = true;
  ++tenants_version_;
  ++victims_version_;
}

}  // namespace muster::engine
