/// Topic `topology`: every GPU of the cluster and whose job is on it, as columns, and what changed.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "json/text.h"
#include "portal/topics/node_row.h"

namespace muster::portal {
namespace {

/// Run-length coded: value, count, value, count …
void append_runs(std::string& out, const std::vector<std::int32_t>& values) {
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    if (i != 0) out += ',';
    out.append(std::to_string(values[i])).append(",").append(std::to_string(end - i));
    i = end;
  }
}

class TopologySource final : public Source {
 public:
  TopologySource(World& world, VisiblePtr visible) : world_(world), visible_(std::move(visible)) {}
  /// A map of thousands of nodes is looked at once a second at most.
  std::uint64_t version() override {
    const Duration now = world_.env.monotonic();
    if (version_ == 0 || now - looked_ >= std::chrono::seconds(1)) {
      looked_ = now;
      version_ = world_.jobs.version() + world_.nodes.version();
    }
    return version_;
  }
  [[nodiscard]] bool windowed() const override { return false; }

  std::string value() override {
    membership_ = world_.nodes.membership();
    names_.clear();
    for (const auto& [name, node] : world_.nodes.all()) names_.push_back(&node);
    std::stable_sort(names_.begin(), names_.end(), [](const NodeFacts* a, const NodeFacts* b) {
      return a->rack < b->rack;
    });
    slots_.clear();
    jobs_.clear();
    free_.clear();
    held_.clear();
    looks_.assign(names_.size(), {});
    states_.clear();
    owners_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      looks_[i] = look_at(i);
      looks_[i].first = owners_.size();
      states_.push_back(static_cast<std::int32_t>(names_[i]->state));
      for (const std::int32_t owner : owners_of(*names_[i])) {
        hold(owner, 1);
        owners_.push_back(owner);
      }
    }
    return whole();
  }

  /// Only nodes on which something has changed are looked into.
  std::optional<std::string> patch() override {
    if (membership_ != world_.nodes.membership()) return std::nullopt;
    told_jobs_.clear();
    left_.clear();
    std::string changed, state_changes;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      Look now = look_at(i);
      now.first = looks_[i].first;
      if (now == looks_[i]) continue;
      if (now.gpus != looks_[i].gpus) return std::nullopt;
      looks_[i] = now;
      const auto state = static_cast<std::int32_t>(names_[i]->state);
      if (state != states_[i])
        state_changes += fmt::format("{}{},{}", state_changes.empty() ? "" : ",", i, state);
      states_[i] = state;
      std::size_t at = now.first;
      for (const std::int32_t owner : owners_of(*names_[i])) {
        if (owner != owners_[at]) {
          changed += fmt::format("{}{},{}", changed.empty() ? "" : ",", at, owner);
          hold(owners_[at], -1);
          hold(owner, 1);
          owners_[at] = owner;
        }
        ++at;
      }
    }
    forget_those_who_left();
    if (changed.empty() && state_changes.empty()) return "";
    std::string out = fmt::format(
        R"({{"at":{},"owner":[{}],"states":[{}],"jobs":{{)", world_.now(), changed, state_changes);
    bool first = true;
    for (const std::int32_t number : told_jobs_) {
      out += fmt::format("{}\"{}\":", first ? "" : ",", number - 1);
      append_job(out, jobs_[static_cast<std::size_t>(number - 1)]);
      first = false;
    }
    return out + "}}";
  }

 private:
  /// What a node was like when it was looked into.
  struct Look {
    std::uint64_t node = 0, jobs = 0;
    std::int32_t gpus = 0;
    std::size_t first = 0;  // its first GPU in owners_
    bool operator==(const Look&) const = default;
  };
  [[nodiscard]] Look look_at(std::size_t i) const {
    const NodeFacts& node = *names_[i];
    return {.node = node.version,
            .jobs = world_.jobs.node_version(node.name),
            .gpus = std::max(0, node.gpus)};
  }

  /// The number of a job in `jobs`, from 1.
  std::int32_t number_of(const JobIndex::Entry& entry) {
    const auto [at, fresh] = slots_.try_emplace(entry.facts.id, 0);
    if (fresh) {
      if (free_.empty()) {
        jobs_.push_back(entry.facts.id);
        at->second = static_cast<std::int32_t>(jobs_.size());
      } else {
        at->second = free_.back();
        free_.pop_back();
        jobs_[static_cast<std::size_t>(at->second - 1)] = entry.facts.id;
      }
      told_jobs_.push_back(at->second);
    }
    return at->second;
  }

  /// The numbers of the jobs on each GPU of a node; 0: free.
  std::vector<std::int32_t> owners_of(const NodeFacts& node) {
    std::vector<std::int32_t> numbers;
    for (const auto& owner : gpu_owners(world_, node)) {
      if (owner.entry == nullptr)
        numbers.push_back(0);
      else
        numbers.push_back(sees(*visible_, *owner.entry) ? number_of(*owner.entry)
                                                        : number_of_others());
    }
    return numbers;
  }

  void hold(std::int32_t number, std::int32_t change) {
    if (number <= 0) return;
    const auto at = static_cast<std::size_t>(number);
    if (held_.size() <= at) held_.resize(at + 1);
    held_[at] += change;
    if (held_[at] == 0) left_.push_back(number);
  }

  /// Numbers of jobs that hold nothing any more are given to others next time.
  void forget_those_who_left() {
    for (const std::int32_t number : left_) {
      const auto at = static_cast<std::size_t>(number);
      if (held_[at] != 0) continue;
      const auto slot = slots_.find(jobs_[at - 1]);
      if (slot == slots_.end() || slot->second != number) continue;
      free_.push_back(number);
      slots_.erase(slot);
    }
  }

  /// Those whom this user may not know are one job without a name.
  std::int32_t number_of_others() {
    const auto [at, fresh] = slots_.try_emplace("", 0);
    if (fresh) {
      jobs_.emplace_back();
      at->second = static_cast<std::int32_t>(jobs_.size());
      told_jobs_.push_back(at->second);
    }
    return at->second;
  }

  void append_job(std::string& out, const std::string& id) {
    const JobIndex::Entry* entry = id.empty() ? nullptr : world_.jobs.find(id);
    if (entry == nullptr || !entry->shown) {
      out +=
          R"({"id":"","name":"","user":"","vc":"","queue":"","prio":0,"prioClass":"","state":"RUNNING","oppo":false,"started":null})";
      return;
    }
    const Table& table = world_.jobs.table();
    const Keys& keys = table.keys(entry->slot);
    json::append(
        out,
        json::Value{
            {"id", id},
            {"name", entry->facts.name},
            {"user", entry->facts.user},
            {"vc", entry->facts.vc},
            {"queue", table.words().text(keys.queue)},
            {"prio", keys.prio},
            {"prioClass", table.words().text(keys.prio_class)},
            {"state", state_name(keys.state)},
            {"oppo", keys.oppo},
            {"started", keys.started == 0 ? json::Value(nullptr) : json::Value(keys.started)}});
  }

  std::string whole() {
    std::string names, states, gpus, models, racks, bad;
    std::vector<std::string> model_names, rack_names;
    const auto index_of = [](std::vector<std::string>& list, const std::string& word) {
      if (word.empty()) return -1;
      const auto at = std::find(list.begin(), list.end(), word);
      if (at != list.end()) return static_cast<int>(at - list.begin());
      list.push_back(word);
      return static_cast<int>(list.size()) - 1;
    };
    const auto add = [](std::string& out, auto number) {
      if (!out.empty()) out += ',';
      out += std::to_string(number);
    };
    std::int64_t first = 0;
    for (const NodeFacts* node : names_) {
      if (!names.empty()) names += ',';
      json::append_string(names, node->name);
      add(states, static_cast<int>(node->state));
      add(gpus, node->gpus);
      add(models, index_of(model_names, node->model));
      add(racks, index_of(rack_names, node->rack));
      for (const std::int32_t one : node->bad) add(bad, first + one);
      first += node->gpus;
    }
    std::string none;
    for (std::size_t i = 0; i < names_.size(); ++i) none += i == 0 ? "-1" : ",-1";
    const auto texts = [](const std::vector<std::string>& list) {
      std::string out;
      for (const std::string& one : list) {
        if (!out.empty()) out += ',';
        json::append_string(out, one);
      }
      return out;
    };
    std::string jobs;
    for (const std::string& id : jobs_) {
      if (!jobs.empty()) jobs += ',';
      append_job(jobs, id);
    }
    std::string owner;
    append_runs(owner, owners_);
    return fmt::format(
        R"({{"at":{},"nodes":[{}],"states":[{}],"gpus":[{}],"model":[{}],"models":[{}],"rack":[{}],"racks":[{}],"chain":[{}],"chains":[],"vc":[{}],"vcs":[],"jobs":[{}],"owner":[{}],"bad":[{}],"idle":[0,{}]}})",
        world_.now(),
        names,
        states,
        gpus,
        models,
        texts(model_names),
        racks,
        texts(rack_names),
        none,
        none,
        jobs,
        owner,
        bad,
        first);
  }

  World& world_;
  VisiblePtr visible_;
  std::uint64_t membership_ = 0, version_ = 0;
  Duration looked_{};
  // In the order of the answer; valid while membership_ holds.
  std::vector<const NodeFacts*> names_;
  std::unordered_map<std::string, std::int32_t> slots_;
  std::vector<std::string> jobs_;
  std::vector<std::int32_t> free_, told_jobs_;
  std::vector<std::int32_t> held_;  // by number: GPUs
  std::vector<std::int32_t> left_;  // numbers that held nothing at some time of this look
  std::vector<Look> looks_;         // by node
  std::vector<std::int32_t> owners_, states_;
};

}  // namespace

SourcePtr topology_topic(World& world, VisiblePtr visible) {
  return std::make_shared<TopologySource>(world, std::move(visible));
}

}  // namespace muster::portal
