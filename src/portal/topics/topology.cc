/// Topic `topology`: every GPU of the cluster and whose job is on it, as columns, and what changed.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "json/text.h"
#include "portal/topics/node_row.h"
#include "portal/topics/packed.h"
#include "portal/topics/waiting.h"

namespace muster::portal {
namespace {

class TopologySource final : public Source {
 public:
  TopologySource(World& world, VisiblePtr visible) : world_(world), visible_(std::move(visible)) {}
  /// A map of thousands of nodes is looked at once a second at most.
  std::uint64_t version() override {
    const Duration now = world_.env.monotonic();
    if (version_ == 0 || now - looked_ >= std::chrono::seconds(1)) {
      looked_ = now;
      look_at_reservations();
      version_ = world_.jobs.version() + world_.nodes.version() + reserved_version_;
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
        tell_if_changed(owner);
        ++at;
      }
    }
    forget_those_who_left();
    if (changed.empty() && state_changes.empty() && told_jobs_.empty()) return "";
    std::string out = fmt::format(
        R"({{"at":{},"owner":[{}],"states":[{}],"jobs":{{)", world_.now(), changed, state_changes);
    bool first = true;
    std::sort(told_jobs_.begin(), told_jobs_.end());
    told_jobs_.erase(std::unique(told_jobs_.begin(), told_jobs_.end()), told_jobs_.end());
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
    std::uint64_t node = 0, jobs = 0, reserved = 0;
    std::int32_t gpus = 0;
    std::size_t first = 0;  // its first GPU in owners_
    bool operator==(const Look&) const = default;
  };
  [[nodiscard]] Look look_at(std::size_t i) const {
    const NodeFacts& node = *names_[i];
    return {.node = node.version,
            .jobs = world_.jobs.node_version(node.name),
            .reserved = reserved_.contains(node.name) ? reserved_version_ : 0,
            .gpus = std::max(0, node.gpus)};
  }

  /// What the scheduler holds on nodes for gangs that are to start there.
  void look_at_reservations() {
    if (!world_.options.reservations) return;
    const ReservationBook book = world_.options.reservations();
    if (book.version == reserved_version_) return;
    reserved_version_ = book.version;
    reserved_.clear();
    for (const ReservationFacts& one : book.all) {
      const JobIndex::Entry* holder = job_of_gang(world_, {.all = true}, one.holder);
      if (holder == nullptr) continue;
      std::int32_t each = 0;
      for (const auto& [name, task] : holder->tasks) each = std::max(each, task.gpus);
      for (std::size_t i = 0; i < one.nodes.size() && i < one.members.size(); ++i)
        reserved_[one.nodes[i]].push_back({holder->facts.id, each * one.members[i]});
    }
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

  std::int32_t number_for(const JobIndex::Entry& entry) {
    return sees(*visible_, entry) ? number_of(entry) : number_of_others();
  }

  /// The numbers of the jobs on each GPU of a node; 0: free; negative: held for that job.
  std::vector<std::int32_t> owners_of(const NodeFacts& node) {
    const auto owners = gpu_owners(world_, node);
    const auto reserved = reserved_.find(node.name);
    std::vector<Reserved> waiting;
    if (reserved != reserved_.end()) waiting = reserved->second;
    std::vector<std::int32_t> numbers;
    for (const auto& owner : owners) {
      if (owner.entry != nullptr) {
        numbers.push_back(number_for(*owner.entry));
        continue;
      }
      while (!waiting.empty() && waiting.front().gpus <= 0) waiting.erase(waiting.begin());
      const JobIndex::Entry* holder =
          waiting.empty() ? nullptr : world_.jobs.find(waiting.front().job);
      if (!waiting.empty()) --waiting.front().gpus;
      numbers.push_back(holder == nullptr ? 0 : -number_for(*holder));
    }
    return numbers;
  }

  void hold(std::int32_t number, std::int32_t change) {
    if (number == 0) return;
    number = std::abs(number);
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

  /// A job whose state or priority is another one now.
  void tell_if_changed(std::int32_t owner) {
    if (owner == 0) return;
    const auto at = static_cast<std::size_t>(std::abs(owner) - 1);
    const std::size_t now = std::hash<std::string>{}(sort_of(jobs_[at]));
    if (sorts_.size() <= at) sorts_.resize(at + 1);
    if (std::exchange(sorts_[at], now) != now) told_jobs_.push_back(std::abs(owner));
  }

  /// What jobs have in common with others: all of it but the id, from which the name follows.
  std::string sort_of(const std::string& id) const {
    const JobIndex::Entry* entry = id.empty() ? nullptr : world_.jobs.find(id);
    if (entry == nullptr || !entry->shown)
      return R"({"user":"","vc":"","queue":"","prio":0,"prioClass":"","state":"RUNNING","oppo":false})";
    const Table& table = world_.jobs.table();
    const Keys& keys = table.keys(entry->slot);
    return json::dump(json::Value{{"user", entry->facts.user},
                                  {"vc", entry->facts.vc},
                                  {"queue", table.words().text(keys.queue)},
                                  {"prio", keys.prio},
                                  {"prioClass", table.words().text(keys.prio_class)},
                                  {"state", state_name(keys.state)},
                                  {"oppo", keys.oppo}});
  }

  void append_job(std::string& out, const std::string& id) const {
    out += R"({"id":)";
    json::append_string(out, id);
    out.append(",").append(sort_of(id).substr(1));
  }

  void append_jobs(std::string& out) {
    std::unordered_map<std::string, std::size_t> known;
    std::string sorts, sort;
    sorts_.clear();
    for (const std::string& id : jobs_) {
      const auto [at, fresh] = known.try_emplace(sort_of(id), known.size());
      sorts_.push_back(std::hash<std::string>{}(at->first));
      if (fresh) sorts.append(sorts.empty() ? "" : ",").append(at->first);
      sort.append(sort.empty() ? "" : ",").append(std::to_string(at->second));
    }
    out += R"({"ids":)";
    append_names(out, {jobs_.begin(), jobs_.end()});
    out += fmt::format(R"(,"sort":[{}],"sorts":[{}]}})", sort, sorts);
  }

  /// A column of words as their places in a list of those that occur; -1: no word.
  struct Column {
    std::vector<std::int32_t> places;
    std::vector<std::string_view> words;
    std::unordered_map<std::string_view, std::int32_t> known;
    void add(std::string_view word) {
      if (word.empty()) {
        places.push_back(-1);
        return;
      }
      const auto [at, fresh] = known.try_emplace(word, static_cast<std::int32_t>(words.size()));
      if (fresh) words.push_back(word);
      places.push_back(at->second);
    }
  };

  /// For how many minutes each GPU that nobody has was free, where that is known.
  std::vector<std::int32_t> idle_minutes() const {
    std::vector<std::int32_t> idle(owners_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::vector<Millis>& freed = world_.jobs.freed(names_[i]->name);
      const std::size_t end = i + 1 < names_.size() ? looks_[i + 1].first : owners_.size();
      for (std::size_t gpu = looks_[i].first; gpu < end; ++gpu) {
        const std::size_t device = gpu - looks_[i].first;
        if (owners_[gpu] != 0 || device >= freed.size() || freed[device] == 0) continue;
        const Millis minutes = (world_.now() - freed[device]) / 60'000;
        idle[gpu] = static_cast<std::int32_t>(std::clamp<Millis>(minutes, 1, 1'000'000));
      }
    }
    return idle;
  }

  std::string whole() {
    std::vector<std::string_view> names;
    std::vector<std::int32_t> gpus;
    Column models, racks;
    std::string bad;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const NodeFacts& node = *names_[i];
      names.push_back(node.name);
      gpus.push_back(looks_[i].gpus);
      models.add(node.model);
      racks.add(node.rack);
      for (const std::int32_t one : node.bad)
        bad += fmt::format(
            "{}{}", bad.empty() ? "" : ",", looks_[i].first + static_cast<std::size_t>(one));
    }
    std::string out = fmt::format(R"({{"at":{},"nodes":)", world_.now());
    append_names(out, names);
    const auto runs = [&out](std::string_view key, const std::vector<std::int32_t>& values) {
      out.append(",\"").append(key).append("\":");
      append_runs(out, values);
    };
    const auto words = [&out](std::string_view key, const std::vector<std::string_view>& list) {
      out.append(",\"").append(key).append("\":");
      append_names(out, list);
    };
    runs("states", states_);
    runs("gpus", gpus);
    runs("model", models.places);
    words("models", models.words);
    runs("rack", racks.places);
    words("racks", racks.words);
    out += R"(,"jobs":)";
    append_jobs(out);
    out += R"(,"owner":)";
    append_owners(out, owners_);
    out += fmt::format(R"(,"bad":[{}])", bad);
    runs("idle", idle_minutes());
    return out + "}";
  }

  World& world_;
  VisiblePtr visible_;
  std::uint64_t membership_ = 0, version_ = 0, reserved_version_ = 0;
  Duration looked_{};
  // In the order of the answer; valid while membership_ holds.
  std::vector<const NodeFacts*> names_;
  std::unordered_map<std::string, std::int32_t> slots_;
  std::vector<std::string> jobs_;
  std::vector<std::int32_t> free_, told_jobs_;
  std::vector<std::size_t> sorts_;  // of jobs_, as told last: hashes of sort_of
  std::vector<std::int32_t> held_;  // by number: GPUs
  std::vector<std::int32_t> left_;  // numbers that held nothing at some time of this look
  std::vector<Look> looks_;         // by node
  struct Reserved {
    std::string job;
    std::int32_t gpus = 0;
  };
  std::unordered_map<std::string, std::vector<Reserved>> reserved_;  // by node
  std::vector<std::int32_t> owners_, states_;
};

}  // namespace

SourcePtr topology_topic(World& world, VisiblePtr visible) {
  return std::make_shared<TopologySource>(world, std::move(visible));
}

}  // namespace muster::portal
