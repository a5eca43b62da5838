// The tables themselves: names to ids, change logs, families of groups.
#include "engine/state/state.h"

#include <algorithm>
#include <utility>

namespace muster::engine {

State::State(Config config) : config_(std::move(config)), names_(config_.device_resource) {}

void State::apply(const Event& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

NodeId State::find_node(std::string_view name) const {
  return node_ids_.find(name, node_ids_.hash(name), name_of_nodes());
}
PodId State::find_pod(std::string_view key) const { return find_pod(key, pod_ids_.hash(key)); }
PodId State::find_pod(std::string_view key, std::uint32_t hash) const {
  return pod_ids_.find(key, hash, key_of_pods());
}
GangId State::find_gang(std::string_view key) const {
  return gang_ids_.find(key, gang_ids_.hash(key), key_of_gangs());
}
TenantId State::find_tenant(std::string_view name) const {
  const auto it = tenant_ids_.find(std::string(name));
  return it == tenant_ids_.end() ? TenantId{} : it->second;
}

NodeId State::intern_node(const std::string& name) {
  const NodeId known = find_node(name);
  if (known.valid()) return known;
  const auto id = NodeId(static_cast<std::uint32_t>(nodes_.size()));
  nodes_.emplace_back();
  rows_.emplace_back();
  Node named;
  named.name = name;
  nodes_.back().spec = std::move(named);
  node_ids_.insert(node_ids_.hash(name), id);
  return id;
}

GangId State::intern_gang(const std::string& key, std::uint32_t hash) {
  GangId id = gang_ids_.find(key, hash, key_of_gangs());
  if (id.valid()) return id;
  if (free_gangs_.empty()) {
    id = GangId(static_cast<std::uint32_t>(gangs_.size()));
    gangs_.emplace_back();
  } else {
    id = free_gangs_.back();
    free_gangs_.pop_back();
    GangState& row = gangs_[id.index()];
    const bool dirty = row.dirty, ends_dirty = row.ends_dirty;
    // Most gangs are one pod after the other; the memory of a large one is not kept.
    std::vector<PodId> pods;
    if (row.pods.capacity() <= 8) pods.swap(row.pods);
    renew(row);
    row.dirty = dirty;
    row.ends_dirty = ends_dirty;
    row.pods.swap(pods);
    row.pods.clear();
  }
  GangState& gang = gangs_[id.index()];
  gang.live = true;
  gang.key = key;
  gang.seq = next_seq_++;
  gang.tenant = intern_tenant(config_.default_queue);
  gang_ids_.insert(hash, id);
  mark(id);
  return id;
}

TenantId State::intern_tenant(const std::string& name) {
  if (last_tenant_.valid() && tenants_[last_tenant_.index()].name == name) return last_tenant_;
  const auto [it, fresh] =
      tenant_ids_.try_emplace(name, TenantId(static_cast<std::uint32_t>(tenants_.size())));
  if (fresh) {
    tenants_.emplace_back();
    tenants_.back().name = name;
    tenants_.back().name_hash = hash_name(name);
    tenants_.back().spec.name = name;
    tenants_.back().created = static_cast<std::int64_t>(next_seq_++);
  }
  last_tenant_ = it->second;
  return last_tenant_;
}

std::size_t State::intern_resource(std::string_view name) {
  const std::size_t before = names_.size();
  const std::size_t i = names_.intern(name);
  if (names_.size() != before) {
    // Nodes may have had it all along.
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].live) continue;
      add_total(nodes_[n], -1);
      refresh_allocatable(nodes_[n]);
      add_total(nodes_[n], +1);
      refresh_free(NodeId(n));
    }
    ++tenants_version_;
  }
  return i;
}

ResourceVector State::vector_of(const ResourceList& list, std::uint32_t* mask) {
  ResourceVector v;
  for (const auto& amount : list) {
    const std::size_t i = intern_resource(amount.name);
    if (i == ResourceNames::kNone) continue;
    v.add(i, amount.value * names_.factor(i));
    if (mask != nullptr) *mask |= 1U << i;
  }
  return v;
}

ResourceList State::list_of(const ResourceVector& vector) const {
  ResourceList list;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] == 0) continue;
    const std::int64_t factor = names_.factor(i);
    list.push_back({names_.name(i), (vector[i] + factor - 1) / factor});
  }
  return list;
}

const Labels& State::namespace_labels(const std::string& ns) const {
  static const Labels kNone;
  const auto it = namespaces_.find(ns);
  return it == namespaces_.end() ? kNone : it->second;
}

void State::touch(NodeId id) {
  ++nodes_[id.index()].changed;
  log_.push_back(id);
  // An index that fell behind by more than this rebuilds itself from the table, which is no dearer.
  const std::size_t keep = 4 * nodes_.size() + 4096;
  if (log_.size() > 2 * keep) {
    const std::size_t drop = log_.size() - keep;
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(drop));
    log_base_ += drop;
  }
}

void State::touch_gang(GangId id) {
  if (!gang_log_.empty() && gang_log_.back() == id) return;
  gang_log_.push_back(id);
  constexpr std::size_t kKeep = 4096;
  if (gang_log_.size() <= 2 * kKeep) return;
  gang_log_.erase(gang_log_.begin(), gang_log_.begin() + kKeep);
  gang_log_base_ += kKeep;
}

const std::vector<GangId>& State::children_of(const std::string& key) const {
  static const std::vector<GangId> kNone;
  const auto it = families_.find(key);
  return it == families_.end() ? kNone : it->second;
}

GangId State::parent_of(GangId id) const {
  const GangState& gang = gangs_[id.index()];
  if (!gang.has_group || gang.spec->parent.empty()) return GangId{};
  const GangId up = find_gang(gang.spec->parent);
  return up.valid() && up != id && gangs_[up.index()].spec->is_parent ? up : GangId{};
}

namespace {
/// Kubernetes allows four levels; a cycle of parents ends here, too.
constexpr int kFamilyDepth = 8;
}  // namespace

GangId State::root_of(GangId id) const {
  for (int depth = 0; depth < kFamilyDepth; ++depth) {
    const GangId up = parent_of(id);
    if (!up.valid()) break;
    id = up;
  }
  return id;
}

std::vector<GangId> State::leaves_of(GangId id) const {
  std::vector<GangId> level = {id};
  std::vector<GangId> leaves;
  for (int depth = 0; depth < kFamilyDepth && !level.empty(); ++depth) {
    std::vector<GangId> next;
    for (const GangId g : level) {
      if (!gangs_[g.index()].spec->is_parent) {
        leaves.push_back(g);
        continue;
      }
      const auto& children = children_of(gangs_[g.index()].key);
      next.insert(next.end(), children.begin(), children.end());
    }
    level = std::move(next);
  }
  return leaves;
}

void State::leave_family(GangId id) {
  const std::string& parent = gangs_[id.index()].spec->parent;
  const auto it = families_.find(parent);
  if (parent.empty() || it == families_.end()) return;
  std::erase(it->second, id);
  if (it->second.empty()) families_.erase(it);
}

void State::list_dirty(GangId id, GangState& gang) {
  gang.dirty = true;
  dirty_gangs_.push_back(id);
}

void State::list_ends(GangId id, GangState& gang) {
  gang.ends_dirty = true;
  ends_changed_.push_back(id);
}

std::vector<GangId> State::take_changed_ends() {
  std::vector<GangId> out = std::move(ends_changed_);
  ends_changed_.clear();
  for (const GangId id : out) gangs_[id.index()].ends_dirty = false;
  return out;
}

std::vector<GangId> State::take_dirty_gangs() {
  std::vector<GangId> out;
  take_dirty_gangs(out);
  return out;
}

void State::take_dirty_gangs(std::vector<GangId>& into) {
  into.clear();
  into.swap(dirty_gangs_);
  for (const GangId id : into) gangs_[id.index()].dirty = false;
}

void State::forget_dirty_gangs() {
  for (const GangId id : dirty_gangs_) gangs_[id.index()].dirty = false;
  dirty_gangs_.clear();
}

}  // namespace muster::engine
