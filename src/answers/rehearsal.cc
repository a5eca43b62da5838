#include "answers/rehearsal.h"

#include <algorithm>

namespace muster::answers {

Rehearsal::Rehearsal(const engine::Engine& engine,
                     const std::shared_ptr<const sim::Cast>& cast,
                     Time now,
                     const Settings& settings,
                     const Lasting& lasting,
                     std::int32_t draw,
                     const std::vector<Ix>& asked)
    : Course(engine.rehearsal(), cast, now, settings),
      lasting_(lasting),
      draw_(draw),
      began_(now),
      seen_(asked.size()),
      left_(asked.size()) {
  grow();
  for (std::uint32_t i = 0; i < asked.size(); ++i) place_[asked[i]] = i;
}

/// There may be gangs that came after the beginning.
void Rehearsal::grow() {
  place_.resize(count(), kNotAsked);
  drawn_.resize(count());
  nodes_.resize(count());
}

Duration Rehearsal::lasts(Ix gang, Duration age) {
  if (gang >= drawn_.size()) grow();
  const engine::GangView& g = view(gang);
  drawn_[gang] = lasting_.draw(g, age, draw_);
  Duration lasts = drawn_[gang].lasts;
  // Its queue ends it at a certain age, whenever it starts.
  if (g.latest_end) lasts = std::min(lasts, std::max(age, g.latest_end - (now() - age)));
  return lasts;
}

void Rehearsal::bound(Ix gang, const engine::Bind& bind) {
  if (gang >= nodes_.size()) grow();
  auto& nodes = nodes_[gang];
  if (std::find(nodes.begin(), nodes.end(), bind.node) == nodes.end()) nodes.push_back(bind.node);
}

void Rehearsal::started(Ix gang) {
  if (gang >= place_.size()) grow();
  if (place_[gang] == kNotAsked) return;
  Seen& seen = seen_[place_[gang]];
  if (seen.start) return;
  seen.start = now();
  seen.end = ends_at(gang);
  seen.ended_before = ended_;
  for (const std::string& node : nodes_[gang]) {
    const auto before = last_on_.find(node);
    if (before == last_on_.end()) continue;
    if (std::find(seen.after.begin(), seen.after.end(), before->second) == seen.after.end())
      seen.after.push_back(before->second);
  }
  --left_;
}

/// What it held since the beginning counts as spoken for by whoever said how long it lasts.
void Rehearsal::spend(Ix gang) {
  const Duration held = now() - std::max(began_, started_at(gang));
  ended_[static_cast<std::size_t>(drawn_[gang].source)] +=
      static_cast<double>(view(gang).device_milli) * static_cast<double>(held.count());
}

void Rehearsal::ended(Ix gang) {
  spend(gang);
  for (const std::string& node : view(gang).nodes) last_on_[node] = gang;
  for (const std::string& node : nodes_[gang]) last_on_[node] = gang;
}

void Rehearsal::evicted(Ix gang) {
  spend(gang);
  nodes_[gang].clear();
}

}  // namespace muster::answers
