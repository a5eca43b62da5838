#include "answers/alternatives.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace muster::answers {
namespace {

using engine::Event;
using engine::GangView;
using engine::Pod;
using engine::TrialResult;

constexpr std::int64_t kMinutesMax = 30 * 24 * 60;
constexpr std::size_t kStopsMax = 3;

class Trials {
 public:
  Trials(const engine::Engine& engine, Time now, const AlternativesAsk& ask)
      : engine_(engine), now_(now), ask_(ask) {}

  std::vector<Tried> run() {
    const auto view = engine_.gang(ask_.job);
    if (!view || !view->waiting) return {};
    view_ = *view;
    group_ = engine_.group(ask_.job);
    for (const std::string& key : view_.pods) {
      if (auto pod = engine_.pod(key)) pods_.push_back(std::move(*pod));
    }
    if (pods_.empty()) return {};
    if (verdict({}).verdict == engine::Verdict::kStarts) return {};
    if (ask_.asker.own_job) {
      durations();
      topology();
      selectors();
      models();
      workers();
      pieces();
      queues();
      priorities();
    }
    own_jobs();
    if (ask_.asker.admin) for_admins();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool enough() const {
    return found_.size() >= ask_.most || (ask_.go_on && !ask_.go_on());
  }

  TrialResult verdict(std::vector<Event> events) const {
    return engine_.try_gang({ask_.job, std::move(events), now_});
  }

  /// Keeps it when it starts the job, or starts it by evicting.
  bool keep(std::string change,
            std::string flag,
            std::string text,
            std::vector<Event> events,
            std::vector<std::string> about = {}) {
    TrialResult result = verdict(events);
    if (result.verdict != engine::Verdict::kStarts && result.verdict != engine::Verdict::kEvicts)
      return false;
    Tried tried;
    Alternative& a = tried.alternative;
    a.change = std::move(change);
    a.flag = std::move(flag);
    a.text = std::move(text);
    a.about = std::move(about);
    a.verdict = result.verdict == engine::Verdict::kStarts ? Verdict::kStarts : Verdict::kEvicts;
    for (const engine::Bind& bind : result.binds)
      a.placement.push_back({bind.pod, bind.node, bind.devices});
    for (const engine::Evict& evict : result.evicts) a.victims.push_back(evict.pod);
    tried.events = std::move(events);
    found_.push_back(std::move(tried));
    return true;
  }

  /// The job as it is, but for what `change` does to each of its pods.
  template <typename F>
  std::vector<Event> with_pods(F&& change) const {
    std::vector<Event> events;
    for (Pod pod : pods_) {
      change(pod);
      events.emplace_back(engine::PodUpsert{std::move(pod)});
    }
    return events;
  }
  template <typename F>
  std::vector<Event> with_group(F&& change) const {
    std::vector<Event> events;
    if (!group_) return events;
    engine::Group group = *group_;
    change(group);
    events.emplace_back(engine::GroupUpsert{std::move(group)});
    return events;
  }

  std::vector<Event> lasting(Duration duration) const {
    auto events = with_group([&](engine::Group& g) { g.expected_duration = duration; });
    auto pods = with_pods([&](Pod& p) { p.expected_duration = duration; });
    events.insert(events.end(), pods.begin(), pods.end());
    return events;
  }

  /// The longest that fits before the reservation in the way, in minutes.
  void durations() {
    if (enough()) return;
    const auto starts = [&](std::int64_t minutes) {
      return verdict(lasting(std::chrono::minutes(minutes))).verdict == engine::Verdict::kStarts;
    };
    const std::int64_t declared =
        std::chrono::duration_cast<std::chrono::minutes>(view_.declared).count();
    if (declared == 1 || !starts(1)) return;
    std::int64_t fits = 1;
    std::int64_t fits_not = declared > 0 ? declared : kMinutesMax;
    if (declared == 0 && starts(kMinutesMax)) return;  // Any would do: it is no matter of length.
    while (fits_not - fits > 1 && !(ask_.go_on && !ask_.go_on())) {
      const std::int64_t middle = fits + (fits_not - fits) / 2;
      (starts(middle) ? fits : fits_not) = middle;
    }
    const Duration longest = std::chrono::minutes(fits);
    std::string before = "fits before what is ahead, if it really ends by then";
    std::vector<std::string> about;
    if (const auto why = engine_.why(ask_.job); why && !why->refusal.subject.empty()) {
      before = "fits before the reservation of {}, if it really ends by then";
      about = {why->refusal.subject};
    }
    keep("duration",
         fmt::format("--expected-duration={}m", fits),
         std::move(before),
         lasting(longest),
         std::move(about));
  }

  void topology() {
    if (!group_ || group_->topology.empty()) return;
    const bool preferred = std::any_of(group_->topology.begin(),
                                       group_->topology.end(),
                                       [](const auto& l) { return !l.required; });
    if (!enough() && preferred) {
      const bool starts =
          keep("topology", "", "without the topology it prefers", with_group([](engine::Group& g) {
                 std::erase_if(g.topology, [](const auto& l) { return !l.required; });
               }));
      if (starts) return;
    }
    if (!enough())
      keep("topology", "", "without the topology it requires", with_group([](engine::Group& g) {
             g.topology.clear();
           }));
  }

  void selectors() {
    const bool chooses = std::any_of(pods_.begin(), pods_.end(), [](const Pod& p) {
      return !p.node_selector.empty() || !p.node_affinity.empty();
    });
    if (chooses && !enough())
      keep("selector", "", "without its node selector and affinity", with_pods([](Pod& p) {
             p.node_selector.clear();
             p.node_affinity.clear();
           }));
    std::set<std::pair<std::string, std::string>> taints;
    for (const engine::Node& node : engine_.nodes_as_told()) {
      for (const engine::Taint& taint : node.taints) {
        if (taint.effect != engine::TaintEffect::kPreferNoSchedule)
          taints.emplace(taint.key, taint.value);
      }
    }
    for (const auto& [key, value] : taints) {
      if (enough()) return;
      const engine::Toleration toleration{key, value, value.empty(), std::nullopt};
      const bool has = std::any_of(pods_.begin(), pods_.end(), [&](const Pod& p) {
        return std::find(p.tolerations.begin(), p.tolerations.end(), toleration) !=
               p.tolerations.end();
      });
      if (has) continue;
      const std::string taint = value.empty() ? key : key + "=" + value;
      if (keep("toleration",
               fmt::format("--toleration={}", taint),
               fmt::format("on nodes with the taint {}", taint),
               with_pods([&](Pod& p) { p.tolerations.push_back(toleration); })))
        return;
    }
  }

  void models() {
    if (view_.model.empty()) return;
    std::set<std::string> models;
    for (const engine::Node& node : engine_.nodes_as_told()) {
      for (const engine::Device& device : node.devices) models.insert(device.model);
    }
    for (const std::string& model : models) {
      if (enough()) return;
      if (model.empty() || model == view_.model) continue;
      if (keep("model",
               fmt::format("--gpu-model={}", model),
               fmt::format("on GPUs of model {}", model),
               with_pods([&](Pod& p) {
                 if (!p.device_models.empty()) p.device_models = {model};
               })))
        return;
    }
  }

  static std::int64_t gpus_of(const Pod& pod, const std::string& device) {
    for (const engine::Amount& amount : pod.requests) {
      if (amount.name == device) return amount.value;
    }
    return 0;
  }
  /// The device resource, as its pods name it.
  [[nodiscard]] std::string device() const {
    for (const Pod& pod : pods_) {
      for (const engine::Amount& amount : pod.requests) {
        if (amount.name.find("gpu") != std::string::npos) return amount.name;
      }
    }
    return "";
  }
  /// Members like the largest, which are its workers; the last first.
  [[nodiscard]] std::vector<const Pod*> workers_of() const {
    const std::string name = device();
    std::int64_t most = 0;
    for (const Pod& pod : pods_) most = std::max(most, gpus_of(pod, name));
    std::vector<const Pod*> out;
    for (const Pod& pod : pods_) {
      if (gpus_of(pod, name) == most) out.push_back(&pod);
    }
    std::sort(out.begin(), out.end(), [](const Pod* a, const Pod* b) { return a->key > b->key; });
    return out;
  }

  std::vector<Event> fewer_by(std::size_t less, const std::vector<const Pod*>& workers) const {
    auto events = with_group([&](engine::Group& g) {
      g.min_member = std::max<std::int32_t>(1, g.min_member - static_cast<std::int32_t>(less));
      for (auto& [role, least] : g.min_task_member) {
        if (role == workers.front()->role)
          least = std::max<std::int32_t>(0, least - static_cast<std::int32_t>(less));
      }
      g.min_resources.reset();
    });
    for (std::size_t i = 0; i < less; ++i) events.emplace_back(engine::PodRemove{workers[i]->key});
    return events;
  }

  /// The most that start: every count between is tried from above, by halves.
  void workers() {
    const std::vector<const Pod*> all = workers_of();
    const auto least = static_cast<std::size_t>(std::max(ask_.asker.workers_min, 0));
    if (enough() || !group_ || least == 0 || all.size() <= least) return;
    const auto starts = [&](std::size_t keep_of) {
      return verdict(fewer_by(all.size() - keep_of, all)).verdict == engine::Verdict::kStarts;
    };
    if (!starts(least)) return;
    std::size_t fits = least, fits_not = all.size();
    while (fits_not - fits > 1) {
      const std::size_t middle = fits + (fits_not - fits) / 2;
      (starts(middle) ? fits : fits_not) = middle;
    }
    keep("workers",
         fmt::format("--workers={}", fits),
         fmt::format("{} of {}", fits, all.size()),
         fewer_by(all.size() - fits, all));
  }

  /// Twice as many of half the size, or half as many of twice the size.
  void pieces() {
    const std::vector<const Pod*> all = workers_of();
    const std::string name = device();
    if (!ask_.asker.other_pieces || !group_ || name.empty() || all.empty()) return;
    const std::int64_t gpus = gpus_of(*all.front(), name);
    const auto cut = [&](std::int64_t count, std::int64_t each) {
      const auto more = static_cast<std::int32_t>(count) - static_cast<std::int32_t>(all.size());
      auto events = with_group([&](engine::Group& g) {
        g.min_member += more;
        g.min_task_member.clear();
        g.min_resources.reset();
      });
      for (const Pod* pod : all) events.emplace_back(engine::PodRemove{pod->key});
      for (std::int64_t i = 0; i < count; ++i) {
        Pod pod = *all.front();
        pod.key = fmt::format("{}/piece-{}", ask_.job, i);
        pod.uid = pod.key;
        for (engine::Amount& amount : pod.requests) {
          if (amount.name == name || amount.name == "cpu" || amount.name == "memory")
            amount.value = amount.value * each / gpus;
        }
        events.emplace_back(engine::PodUpsert{std::move(pod)});
      }
      return events;
    };
    const auto n = static_cast<std::int64_t>(all.size());
    for (const auto& [count, each] : {std::pair(n * 2, gpus / 2), std::pair(n / 2, gpus * 2)}) {
      if (enough()) return;
      if (each < 1 || count < 1 || count * each != n * gpus) continue;
      if (keep("pieces",
               fmt::format("--workers={} --gpus={}", count, each),
               fmt::format("the same GPUs as {} x {} instead of {} x {}", count, each, n, gpus),
               cut(count, each)))
        return;
    }
  }

  void queues() {
    for (const std::string& queue : ask_.asker.queues) {
      if (enough()) return;
      if (queue == view_.queue) continue;
      auto events = with_group([&](engine::Group& g) { g.queue = queue; });
      auto pods = with_pods([&](Pod& p) { p.queue = queue; });
      events.insert(events.end(), pods.begin(), pods.end());
      keep("queue",
           fmt::format("--queue={}", queue),
           fmt::format("in queue {}", queue),
           std::move(events));
    }
  }

  std::vector<Event> at_priority(std::int32_t priority) const {
    auto events = with_group([&](engine::Group& g) { g.priority = priority; });
    auto pods = with_pods([&](Pod& p) { p.priority = priority; });
    events.insert(events.end(), pods.begin(), pods.end());
    return events;
  }

  void priorities() {
    auto classes = ask_.asker.priorities;
    std::sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    });
    for (const auto& [name, value] : classes) {
      if (enough()) return;
      if (value <= view_.priority) continue;
      if (keep("priority",
               fmt::format("--priority={}", name),
               fmt::format("with priority class {}", name),
               at_priority(value)))
        return;
    }
  }

  std::vector<Event> stopping(const std::vector<std::string>& jobs) const {
    std::vector<Event> events;
    for (const std::string& key : jobs) {
      const auto gang = engine_.gang(key);
      if (!gang) continue;
      for (const std::string& pod : gang->pods) events.emplace_back(engine::PodRemove{pod});
      if (gang->is_group) events.emplace_back(engine::GroupRemove{key});
    }
    return events;
  }

  /// One alone, then the cheapest two and three together.
  void own_jobs() {
    struct Own {
      double lost;
      std::string key;
    };
    std::vector<Own> own;
    for (const std::string& key : ask_.asker.own_jobs) {
      const auto gang = engine_.gang(key);
      if (!gang || gang->bound == 0 || key == ask_.job || gang->device_milli == 0) continue;
      const auto ran = static_cast<double>((now_ - gang->started).count());
      own.push_back({ran * static_cast<double>(gang->device_milli), key});
    }
    std::sort(own.begin(), own.end(), [](const Own& a, const Own& b) {
      return std::tie(a.lost, a.key) < std::tie(b.lost, b.key);
    });
    const auto stop = [&](const std::vector<std::string>& jobs) {
      std::string names;
      for (std::size_t i = 0; i < jobs.size(); ++i) names += i == 0 ? "{}" : " and {}";
      return keep(
          "stop",
          "",
          fmt::format("after {} {} stopped (your own)", names, jobs.size() > 1 ? "are" : "is"),
          stopping(jobs),
          jobs);
    };
    for (const Own& one : own) {
      if (enough()) return;
      if (stop({one.key})) return;
    }
    std::vector<std::string> together;
    for (std::size_t i = 0; i < own.size() && i < kStopsMax; ++i) {
      together.push_back(own[i].key);
      if (enough()) return;
      if (together.size() > 1 && stop(together)) return;
    }
  }

  void for_admins() {
    if (!enough()) keep("victims", "", "by evicting the cheapest", at_priority(2'000'000'000));
    const auto why = engine_.why(ask_.job);
    if (!enough() && why && why->refusal.reason == engine::Reason::kTenantOverLimit) {
      auto queue = engine_.queue_as_told(why->refusal.queue);
      std::string more;
      for (const engine::Shortage& s : why->refusal.shortages) {
        if (!queue) break;
        for (engine::Amount& amount : queue->capability) {
          if (amount.name != s.resource) continue;
          amount.value += s.wanted - s.available;
          more += fmt::format(" {} more {}", s.wanted - s.available, s.resource);
        }
      }
      if (!more.empty())
        keep("limit",
             "",
             fmt::format("with{} for queue {}", more, queue->name),
             {engine::QueueUpsert{*queue}});
    }
    for (const engine::Node& like : engine_.nodes_as_told()) {
      if (enough()) return;
      if (!kinds_tried_.insert({like.allocatable, like.labels.size()}).second) continue;
      engine::Node more = like;
      more.name = like.name + "-more";
      for (auto& [key, value] : more.labels) {
        if (value == like.name) value = more.name;
      }
      more.unschedulable = false;
      more.ready = true;
      if (keep("node",
               "",
               fmt::format("with one more node like {}", like.name),
               {engine::NodeUpsert{more}}))
        return;
    }
  }

  const engine::Engine& engine_;
  Time now_;
  const AlternativesAsk& ask_;
  GangView view_;
  std::optional<engine::Group> group_;
  std::vector<Pod> pods_;
  std::vector<Tried> found_;
  std::set<std::pair<engine::ResourceList, std::size_t>> kinds_tried_;
};

}  // namespace

std::vector<Tried> try_alternatives(const engine::Engine& engine,
                                    Time now,
                                    const AlternativesAsk& ask) {
  return Trials(engine, now, ask).run();
}

std::vector<Alternative> alternatives(const engine::Engine& engine,
                                      Time now,
                                      const AlternativesAsk& ask) {
  std::vector<Alternative> out;
  for (Tried& tried : try_alternatives(engine, now, ask))
    out.push_back(std::move(tried.alternative));
  return out;
}

}  // namespace muster::answers
