#include "engine/muster/forecast.h"

#include "engine/muster/gang.h"

namespace muster::engine {

namespace {

const ClassIndex& index_of(Desk& desk, ClassId cls) {
  ClassIndex& index = desk.index.of(cls);
  index.catch_up(desk.state, desk.index.checks);
  return index;
}

}  // namespace

std::int32_t FreeRoom::count(const TaskClass& cls, std::int64_t wanted) const {
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] > 0 && amounts[i] < cls.request[i]) return 0;
  }
  std::int64_t n = wanted;
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    // Divisions are dear, and this is asked for every pod that leaves.
    if (cls.request[i] > 0 && amounts[i] < cls.request[i] * n) n = amounts[i] / cls.request[i];
  }
  if (cls.devices == 0 && cls.share_milli == 0) return static_cast<std::int32_t>(n);
  std::int64_t fit = 0;
  for (const auto d : devices)
    fit += cls.share_milli > 0 ? std::max(d, 0) / cls.share_milli : d == 1000 ? 1 : 0;
  if (cls.devices > 1) fit /= cls.devices;
  return static_cast<std::int32_t>(std::min(n, fit));
}

Forecast::Forecast(Desk& desk,
                   ClassId cls,
                   std::int32_t wanted,
                   std::function<void(NodeId, ResourceVector&)> kept)
    : desk_(desk),
      cls_(desk.state->cls(cls)),
      wanted_(wanted),
      kept_(std::move(kept)),
      usable_(index_of(desk, cls)) {}

std::int32_t Forecast::look_at(NodeId id) {
  const State& state = desk_.state;
  const NodeState& node = state.node(id);
  free_.amounts = node.unheld();
  free_.devices.clear();
  for (const auto& d : node.devices)
    free_.devices.push_back(cls_.allows(d) ? d.open_milli() : DeviceState::kUnusable);
  kept_(id, free_.amounts);
  const std::int32_t now_fits = free_.count(cls_, wanted_);
  if (now_fits >= wanted_) return now_fits;
  ends_.clear();
  for (const PodId p : node.pods) {
    const Time end = expected_end(desk_, state.pod(p), Ends::kEarly);
    if (end != kNever) ends_.emplace_back(end, p);
  }
  std::sort(ends_.begin(), ends_.end());
  std::int32_t fits = now_fits;
  for (const auto& [at, p] : ends_) {
    free_.give(state.pod(p), state.cls_of(p));
    const std::int32_t n = free_.count(cls_, wanted_);
    if (n > fits) steps_.push_back({at, id, n - fits});
    fits = std::max(fits, n);
  }
  return now_fits;
}

Forecast::Start Forecast::earliest(const std::vector<NodeId>& nodes) {
  Start start;
  steps_.clear();
  std::int64_t total = 0;
  for (const NodeId id : nodes) {
    if (!usable_.allowed(id) || !cls_.request.fits_in(desk_.state->node(id).allocatable)) continue;
    start.fits.emplace_back(id, look_at(id));
    total += start.fits.back().second;
  }
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.at != b.at ? a.at < b.at : a.node < b.node;
  });
  start.at = desk_.now;
  for (std::size_t i = 0; i < steps_.size() && total < wanted_; ++i) {
    const auto it = std::lower_bound(
        start.fits.begin(), start.fits.end(), steps_[i].node, [](const auto& f, NodeId n) {
          return f.first < n;
        });
    it->second += steps_[i].more;
    total += steps_[i].more;
    start.at = steps_[i].at;
  }
  start.known = total >= wanted_;
  return start;
}

}  // namespace muster::engine
