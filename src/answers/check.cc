#include "answers/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "answers/durations.h"
#include "answers/forecast.h"

namespace muster::answers {
namespace {

class Check {
 public:
  Check(engine::Engine& engine, Time now, const Draft& draft, const CheckAsk& ask)
      : engine_(engine), now_(now), draft_(draft), ask_(ask) {}

  Decision run() {
    out_.at = now_;
    if (ask_.revision) out_.revision = engine_.digest();
    count();
    if (!draft_.refused.empty()) {
      out_.fate = Fate::kRefused;
      out_.text = draft_.refused;
    } else if (!draft_.idle.empty()) {
      out_.fate = Fate::kWaits;
      out_.text = draft_.idle;
      out_.forecast.start.because = draft_.idle;
    } else {
      decide();
    }
    return std::move(out_);
  }

 private:
  void count() {
    for (const engine::Event& event : draft_.pods) {
      const engine::Pod& pod = std::get<engine::PodUpsert>(event).pod;
      pods_.insert(pod.key);
      const std::string& gang = pod.group.empty() ? pod.key : pod.group;
      if (std::find(gangs_.begin(), gangs_.end(), gang) == gangs_.end()) gangs_.push_back(gang);
    }
    out_.tasks = static_cast<std::int32_t>(pods_.size());
  }

  void decide() {
    // As it happens: a group comes first, and its pods once it is admitted.
    for (const engine::Event& event : draft_.groups) engine_.apply(event);
    if (!draft_.groups.empty()) (void)engine_.decide(now_);
    for (const engine::Event& event : draft_.pods) engine_.apply(event);
    const engine::Plan plan = engine_.decide(now_);
    for (const engine::Bind& bind : plan.binds) {
      if (pods_.contains(bind.pod)) out_.placement.push_back({bind.pod, bind.node, bind.devices});
    }
    for (const std::string& gang : gangs_) {
      const auto view = engine_.gang(gang);
      if (view) out_.gpu_milli += view->device_milli;
    }
    add_victims(plan);
    conclude();
  }

  void add_victims(const engine::Plan& plan) {
    const std::set<std::string> own(gangs_.begin(), gangs_.end());
    for (const engine::Evict& evict : plan.evicts) {
      if (!own.contains(evict.for_whom) && !pods_.contains(evict.for_whom_pod)) continue;
      const auto pod = engine_.pod(evict.pod);
      const std::string gang = !pod || pod->group.empty() ? evict.pod : pod->group;
      if (std::find(out_.victims.begin(), out_.victims.end(), gang) == out_.victims.end())
        out_.victims.push_back(gang);
    }
  }

  void conclude() {
    std::string waits;  // the first part of it that does
    for (const std::string& gang : gangs_) {
      const auto view = engine_.gang(gang);
      if (view && view->waiting && waits.empty()) waits = gang;
    }
    const std::size_t placed = out_.placement.size();
    if (placed == pods_.size()) {
      out_.fate = Fate::kStarts;
      out_.text = "starts at once" + where();
      return;
    }
    engine::Refusal refusal;
    if (const auto why = engine_.why(waits)) refusal = why->refusal;
    // What is gated is not the engine's to place.
    if (waits.empty() && placed == 0) refusal.reason = engine::Reason::kGated;
    if (placed > 0) {
      out_.fate = Fate::kStarts;
      out_.text = fmt::format("{} of {} tasks start at once{}; the others {}",
                              placed,
                              pods_.size(),
                              where(),
                              waits.empty() ? "once there is room" : "wait: ");
    } else if (!out_.victims.empty()) {
      out_.fate = Fate::kEvicts;
      out_.text = fmt::format("starts once {} evicted for it {} left",
                              out_.victims.size() == 1
                                  ? std::string("the job that is")
                                  : fmt::format("the {} jobs that are", out_.victims.size()),
                              out_.victims.size() == 1 ? "has" : "have");
    } else {
      out_.fate = never(refusal) || never_in_cells(waits) ? Fate::kNever : Fate::kWaits;
    }
    out_.waits = out_.fate != Fate::kEvicts && (placed == 0 || !waits.empty());
    if (!waits.empty()) {
      look_ahead(waits, refusal);
    } else if (placed == 0) {
      out_.forecast.job = gangs_.front();
      out_.forecast.state = State::kWaits;
      out_.forecast.refusal = refusal;
      out_.forecast.start.because = engine::describe(refusal);
    }
  }

  /// No end of other work helps it, nor anything that happens by itself.
  static bool never(const engine::Refusal& refusal) {
    if (refusal.reason == engine::Reason::kTenantOverLimit)
      return std::any_of(
          refusal.shortages.begin(), refusal.shortages.end(), [](const engine::Shortage& s) {
            return s.limit > 0 && s.wanted > s.limit;
          });
    return refusal.reason == engine::Reason::kNeverFits ||
           refusal.reason == engine::Reason::kInvalidGroup;
  }

  /// Cells have no reason for it: whether it starts on the same cluster without anybody else is tried.
  [[nodiscard]] bool never_in_cells(const std::string& gang) const {
    const auto view = engine_.gang(gang);
    if (!view || !view->by_cells) return false;
    engine::Engine empty = engine_.clone();
    for (const engine::GangView& other : empty.gangs()) {
      for (const std::string& pod : other.pods) {
        if (!pods_.contains(pod)) empty.apply(engine::PodRemove{pod});
      }
    }
    (void)empty.decide(now_);
    const auto then = empty.gang(gang);
    return then && then->bound == 0;
  }

  [[nodiscard]] std::string where() const {
    std::vector<std::string> nodes;
    for (const Seat& seat : out_.placement) {
      if (std::find(nodes.begin(), nodes.end(), seat.node) == nodes.end())
        nodes.push_back(seat.node);
    }
    if (nodes.size() > 4) return fmt::format(" on {} nodes", nodes.size());
    std::string out;
    for (const std::string& node : nodes) out += (out.empty() ? " on " : ", ") + node;
    return out;
  }

  void look_ahead(const std::string& gang, const engine::Refusal& refusal) {
    out_.forecast.job = gang;
    out_.forecast.refusal = refusal;
    if (ask_.forecast) {
      const SharedDraws lasting(engine_, now_);
      Ask ask;
      ask.jobs = {gang};
      ask.horizon = ask_.horizon;
      ask.go_on = ask_.go_on;
      out_.forecast = forecast(engine_, now_, lasting, ask);
    }
    if (!ask_.alternatives || out_.fate == Fate::kStarts) return;
    AlternativesAsk ask;
    ask.job = gang;
    ask.asker = ask_.asker;
    ask.go_on = ask_.go_on;
    out_.alternatives = alternatives(engine_, now_, ask);
  }

  engine::Engine& engine_;
  Time now_;
  const Draft& draft_;
  const CheckAsk& ask_;
  Decision out_;
  std::set<std::string> pods_;
  std::vector<std::string> gangs_;
};

}  // namespace

std::string_view fate_name(Fate fate) {
  switch (fate) {
    case Fate::kStarts:
    case Fate::kEvicts:
      return "starts";
    case Fate::kNever:
      return "never";
    case Fate::kRefused:
      return "refused";
    case Fate::kWaits:
      break;
  }
  return "waits";
}

Decision check(engine::Engine& engine, Time now, const Draft& draft, const CheckAsk& ask) {
  return Check(engine, now, draft, ask).run();
}

}  // namespace muster::answers
