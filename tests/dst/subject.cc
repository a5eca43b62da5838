#include "subject.h"

#include <fmt/format.h>

#include <chrono>
#include <type_traits>
#include <utility>
#include <variant>

#include "answers/alternatives.h"
#include "answers/durations.h"
#include "answers/forecast.h"
#include "base/random.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

/// What the pod itself says about cells.
std::string asks(const Pod& pod) {
  if (!pod.cells || !pod.cells->spec) return "";
  const cells::PodSpec& spec = *pod.cells->spec;
  std::string members;
  for (const auto& m : spec.members) members += fmt::format(" {}x{}", m.pods, m.leaves);
  return fmt::format(" vc {} cells priority {} pin \"{}\" type \"{}\" lazy {} group {}{}",
                     spec.vc,
                     spec.priority,
                     spec.pinned_cell,
                     spec.leaf_type,
                     spec.lazy_preemption,
                     spec.group,
                     members);
}

std::string text_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> std::string {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, PodUpsert>) {
          std::string requests;
          for (const auto& a : e.pod.requests) requests += fmt::format(" {}={}", a.name, a.value);
          return fmt::format(
              "pod {} of \"{}\" queue {} priority {} gated {} share {} lasts {} on \"{}\"{}{}",
              e.pod.key,
              e.pod.group,
              e.pod.queue,
              e.pod.priority,
              e.pod.gated,
              e.pod.device_share_milli,
              e.pod.expected_duration.count(),
              e.pod.node,
              requests,
              asks(e.pod));
        } else if constexpr (std::is_same_v<T, PodRemove>) {
          return "pod gone " + e.key;
        } else if constexpr (std::is_same_v<T, GroupUpsert>) {
          return fmt::format("group {} queue {} priority {} min {} parent \"{}\"",
                             e.group.key,
                             e.group.queue,
                             e.group.priority,
                             e.group.min_member,
                             e.group.parent);
        } else if constexpr (std::is_same_v<T, GroupRemove>) {
          return "group gone " + e.key;
        } else if constexpr (std::is_same_v<T, NodeUpsert>) {
          return fmt::format(
              "node {} ready {} cordoned {}", e.node.name, e.node.ready, e.node.unschedulable);
        } else if constexpr (std::is_same_v<T, NodeRemove>) {
          return "node gone " + e.name;
        } else if constexpr (std::is_same_v<T, QueueUpsert>) {
          return fmt::format("queue {} capability {}",
                             e.queue.name,
                             e.queue.capability.empty() ? -1 : e.queue.capability[0].value);
        } else if constexpr (std::is_same_v<T, ConfigChange>) {
          return fmt::format("policy placement {}", static_cast<int>(e.config.placement));
        } else if constexpr (std::is_same_v<T, BindResult>) {
          return "bind failed " + e.pod;
        } else if constexpr (std::is_same_v<T, EvictResult>) {
          return "eviction failed " + e.pod;
        } else {
          return "another event";
        }
      },
      event);
}

std::string seat_of(const Bind& bind) {
  if (!bind.cells) return "";
  std::string out = bind.cells->bind.chain;
  for (const auto& member : *bind.cells->bind.group) {
    for (const auto& pod : member.pods)
      out += fmt::format(
          " {}:{}:{}", pod.node, fmt::join(pod.leaves, ","), fmt::join(pod.preassigned_types, ","));
  }
  if (!bind.cells->spec) return out;
  const cells::PodSpec& spec = *bind.cells->spec;
  return fmt::format("{} {} {} {} {}", out, spec.vc, spec.priority, spec.group, spec.leaves);
}

}  // namespace

void print(const Plan& plan) {
  for (const auto& b : plan.binds)
    fmt::print("    bind {} to {} devices {}\n", b.pod, b.node, fmt::join(b.devices, ","));
  for (const auto& e : plan.evicts)
    fmt::print("    evict {} for {}{}\n",
               e.pod,
               e.for_whom,
               e.kind == EvictKind::kReclaim ? ", reclaimed" : "");
  for (const auto& n : plan.nominations)
    fmt::print("    nominate {} to \"{}\" devices {}\n", n.pod, n.node, fmt::join(n.devices, ","));
  if (plan.reservations_changed) fmt::print("    {} reservations\n", plan.reservations.size());
  for (const auto& r : plan.reservations) {
    fmt::print("    reserve for {} at {} on {}, {} like {}\n",
               r.holder,
               r.start.us,
               fmt::join(r.nodes, ","),
               fmt::join(r.members, ","),
               r.member);
  }
}

std::string spell(const Plan& plan) {
  std::string out;
  const auto add = [&out](auto&&... parts) {
    ((out += fmt::format("{}|", std::forward<decltype(parts)>(parts))), ...);
  };
  for (const auto& b : plan.binds)
    add("bind", b.pod, b.uid, b.node, fmt::join(b.devices, ","), b.device_share_milli, seat_of(b));
  for (const auto& e : plan.evicts)
    add("evict",
        e.pod,
        e.uid,
        e.node,
        static_cast<int>(e.kind),
        e.for_whom,
        e.for_whom_pod,
        e.message);
  for (const auto& n : plan.nominations) add("nominate", n.pod, n.node, fmt::join(n.devices, ","));
  for (const auto& w : plan.waits)
    add("wait", w.group, w.pod, static_cast<int>(w.refusal.reason), describe(w.refusal));
  for (const auto& p : plan.phases) add("phase", p.group, phase_name(p.phase));
  add("reservations", plan.reservations_changed);
  for (const auto& r : plan.reservations)
    add(r.holder, r.start.us, r.member, fmt::join(r.nodes, ","), fmt::join(r.members, ","));
  add("wake", plan.wake ? plan.wake->us : 0);
  return out;
}

Subject::Subject(const Run& run, const Config& config)
    : run_(run),
      engine_(config),
      twin_(config),
      asked_(run.seed % 8 == 4),
      compare_(run.seed % 8 == 0 || asked_) {}

void Subject::restart(const Config& config) {
  engine_ = Engine(config);
  twin_ = Engine(config);
}

void Subject::tell(const Event& e) {
  ++sent_;
  const bool swallowed = std::holds_alternative<PodRemove>(e) && sent_ % 16 == 0;
  if (run_.fault == Fault::kLost && swallowed) return;
  if (run_.trace) fmt::print("  {}\n", text_of(e));
  engine_.apply(e);
  if (compare_ && !(run_.fault == Fault::kTwin && swallowed)) twin_.apply(e);
}

bool Subject::configure_cells(const cells::Config& config, Time now) {
  ++sent_;
  const bool taken = engine_.configure_cells(config, now).has_value();
  if (run_.trace) fmt::print("  cells {}\n", taken ? "anew" : "refused");
  if (compare_) (void)twin_.configure_cells(config, now);
  return taken;
}

/// A clone decides, and then lives on as the original will not: what it would plan now, and what is
/// wrong if the original noticed any of it.
std::optional<std::string> Subject::clone_plan(Time now,
                                               const std::vector<Event>& aftermath,
                                               std::string& plan) {
  const std::uint64_t before = engine_.digest();
  Engine clone = engine_.clone();
  if (clone.digest() != before) return "a clone has another digest than what it was made from";
  plan = spell(clone.decide(now));
  for (const Event& event : aftermath) clone.apply(event);
  (void)clone.decide(now + std::chrono::hours(1));
  for (const auto& queue : engine_.queues()) (void)engine_.waiting(queue.name, 3);
  if (engine_.digest() != before) return "what became of a clone changed what it was made from";
  return std::nullopt;
}

/// When everything that waits starts, and what would start the first of it now. The twin is never
/// asked: from here on both must still say the same.
void Subject::ask(Time now) {
  if (run_.fault == Fault::kAsk) engine_.apply(NodeRemove{engine_.nodes().front().name});
  answers::Ask ask;
  ask.draws = 2;
  ask.horizon = std::chrono::minutes(30);
  ask.gantt = true;
  const answers::SharedDraws lasting(engine_, now);
  const answers::Forecasts found = answers::forecast_all(engine_, now, lasting, ask);
  if (found.jobs.empty()) return;
  answers::AlternativesAsk change;
  change.job = found.jobs.front().job;
  (void)answers::alternatives(engine_, now, change);
}

bool Subject::forks() const {
  return Random(run_.seed * 131 + static_cast<std::uint64_t>(sent_)).chance(4);
}

Plan Subject::decide(Time now, const std::vector<Event>& aftermath) {
  failure_.reset();
  if (asked_ && Random(run_.seed * 977 + static_cast<std::uint64_t>(sent_)).chance(2)) ask(now);
  std::string foretold;
  const bool forked = forks();
  if (forked) failure_ = clone_plan(now, aftermath, foretold);
  if (forked && run_.fault == Fault::kClone) (void)engine_.decide(now);
  Plan plan = engine_.decide(now);
  if (forked && !failure_ && spell(plan) != foretold)
    failure_ = "a clone gave another plan than what it was made from";
  if (compare_) {
    if (spell(plan) != spell(twin_.decide(now)))
      failure_ = "the same events gave another plan";
    else if (engine_.digest() != twin_.digest())
      failure_ = "the same events gave another digest";
    if (forked && run_.fault == Fault::kNone && !asked_) twin_ = engine_.clone();
  }
  return plan;
}

}  // namespace muster::dst
