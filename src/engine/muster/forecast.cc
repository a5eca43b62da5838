#include "engine/muster/forecast.h"

#include <span>

#include "base/result.h"
#include "engine/muster/gang.h"

namespace muster::engine {

namespace {

/// Room on the nodes that come free first may be held for others, or they lack something else: so many
/// more than are wanted mostly do.
constexpr std::size_t kMore = 12;

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
      usable_(index_of(desk, cls)) {
  desk.departures.catch_up(desk);
  amount_ = desk.departures.amount(cls_.request[ResourceNames::kDevice]);
}

bool Forecast::find_leavers(const NodeState& node,
                            const Departures::Leavers& leavers,
                            std::int32_t now_fits) {
  const State& state = desk_.state;
  const std::size_t device = ResourceNames::kDevice;
  const std::int64_t wanted = cls_.request[device] * (now_fits + 1);
  std::int64_t room = node.allocatable[device];
  ends_.clear();
  const std::span<const Time> kept = leavers.ends();
  for (std::size_t i = 0; i < node.pods.size(); ++i) {
    const PodId p = node.pods[i];
    const Time end = kept.empty() ? expected_end(desk_, state.pod(p), Ends::kEarly) : kept[i];
    if (end == kNever || end > enough_by_) {
      room -= state.cls_of(p).request[device];
      // Whether anything was estimated must not depend on where the search ends.
      if (room < wanted && desk_.estimated) return false;
      continue;
    }
    ends_.emplace_back(end, p);
  }
  return true;
}

/// Less than this is free for most classes, and no class has more.
bool Forecast::has_room_now(NodeId id) const {
  const NodeRow& row = desk_.state->row(id.value);
  for (std::size_t i = 0; i < row.free.size(); ++i) {
    if (cls_.request[i] > 0 && cls_.request[i] > row.free[i]) return false;
  }
  return true;
}

void Forecast::look_at_room(const NodeState& node, NodeId id) {
  free_.amounts = node.allocatable;  // unheld(), without the copies.
  free_.amounts -= node.used;
  if (!node.nominees.empty()) free_.amounts -= node.held;
  kept_(id, free_.amounts);
  free_.devices.clear();
  for (const auto& d : node.devices)
    free_.devices.push_back(cls_.allows(d) ? d.open_milli() : DeviceState::kUnusable);
}

/// Most nodes are full and stay so for long: a row and a few ends tell, and the node itself, which
/// is large, need not be looked at.
std::int32_t Forecast::look_at(NodeId id) {
  const State& state = desk_.state;
  std::int32_t now_fits = 0;
  const bool looked = has_room_now(id);
  if (looked) {
    look_at_room(state.node(id), id);
    now_fits = free_.count(cls_, wanted_);
  }
  if (now_fits >= wanted_) return now_fits;
  const Departures::Leavers& leavers = desk_.departures.at(desk_, id);
  desk_.estimated |= leavers.estimated();
  if (leavers.devices_by(enough_by_) < cls_.request[ResourceNames::kDevice] * (now_fits + 1))
    return now_fits;
  const NodeState& node = state.node(id);
  if (!find_leavers(node, leavers, now_fits) || ends_.empty()) return now_fits;
  if (!looked) look_at_room(node, id);
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

void Forecast::note_enough(std::size_t from, std::int64_t missing) {
  for (std::size_t i = from; i < steps_.size(); ++i) {
    soonest_.emplace(steps_[i].at, steps_[i].more);
    soonest_more_ += steps_[i].more;
  }
  while (!soonest_.empty() && soonest_more_ - soonest_.top().second >= missing) {
    soonest_more_ -= soonest_.top().second;
    soonest_.pop();
  }
  if (soonest_more_ >= missing) enough_by_ = soonest_.empty() ? desk_.now : soonest_.top().first;
}

void Forecast::add(NodeId id, Start& start) {
  const std::size_t steps = steps_.size();
  const std::int32_t fits = look_at(id);
  if (fits == 0 && steps_.size() == steps) return;
  start.fits.emplace_back(id, fits);
  total_ += fits;
  note_enough(steps, wanted_ - total_);
}

void Forecast::look_at_soonest(const std::vector<NodeId>& nodes, Start& start) {
  const std::span<const Time> kept = desk_.departures.soonest(amount_);
  const std::size_t enough = static_cast<std::size_t>(std::max(wanted_, 1)) + kMore;
  first_.clear();  // A heap of the least so many, the greatest of them in front.
  near_.clear();
  Time near = Time(kNever.us - 1);
  for (const NodeId id : nodes) {
    if (kept[id.index()] > near || !usable_.ever_fits(id)) continue;
    const Time at = soonest(id);
    if (at > near) continue;
    near_.emplace_back(at, id);
    if (first_.size() == enough) {
      if (at == near) continue;
      std::pop_heap(first_.begin(), first_.end());
      first_.pop_back();
    }
    first_.push_back(at);
    std::push_heap(first_.begin(), first_.end());
    if (first_.size() == enough) near = first_.front();
  }
  std::erase_if(near_, [near](const auto& one) { return one.first > near; });
  std::sort(near_.begin(), near_.end());
  for (const auto& [at, id] : near_) {
    if (at > enough_by_) break;
    add(id, start);
  }
  if (enough_by_ > near && first_.size() == enough) look_at_rest(nodes, near, start);
  std::sort(start.fits.begin(), start.fits.end());
  // Whether anything was estimated must not depend on where the search ends. Those with room now have
  // been looked at.
  for (std::size_t i = 0; !desk_.estimated && i < nodes.size(); ++i) {
    if (usable_.ever_fits(nodes[i]) && soonest(nodes[i]) != Departures::kNow)
      desk_.estimated = desk_.departures.estimated(nodes[i]);
  }
}

/// All that may take one later than that, but in time.
void Forecast::look_at_rest(const std::vector<NodeId>& nodes, Time after, Start& start) {
  const std::span<const Time> kept = desk_.departures.soonest(amount_);
  for (const NodeId id : nodes) {
    const Time at = kept[id.index()];
    if (at > after && at <= enough_by_ && at != kNever && usable_.ever_fits(id)) add(id, start);
  }
}

Forecast::Start Forecast::earliest(const std::vector<NodeId>& nodes) {
  const bool estimated = std::exchange(desk_.estimated, false);
  Start start = search(nodes, [&](Start& into) { look_at_soonest(nodes, into); });
  if (desk_.state->config().check_tables) check(nodes, start);
  desk_.estimated |= estimated;
  return start;
}

/// Looking at all nodes would have found the same.
void Forecast::check(const std::vector<NodeId>& nodes, const Start& start) {
  const bool estimated = std::exchange(desk_.estimated, false);
  Start whole = search(nodes, [&](Start& into) {
    for (const NodeId id : nodes) {
      if (usable_.ever_fits(id)) add(id, into);
    }
  });
  const auto takes = [&](Start of) {
    if (of.known) std::erase_if(of.fits, [](const auto& node) { return node.second == 0; });
    return of.fits;
  };
  MUSTER_CHECK(whole.known == start.known && whole.at == start.at && takes(whole) == takes(start) &&
                   desk_.estimated == estimated,
               "the nodes that come free first tell when and where a gang fits");
}

Forecast::Start Forecast::search(const std::vector<NodeId>& nodes,
                                 const std::function<void(Start&)>& look) {
  Start start;
  steps_.clear();
  soonest_ = {};
  soonest_more_ = 0;
  enough_by_ = kNever;
  total_ = 0;
  look(start);
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.at != b.at ? a.at < b.at : a.node < b.node;
  });
  start.at = desk_.now;
  for (std::size_t i = 0; i < steps_.size() && total_ < wanted_; ++i) {
    const auto it = std::lower_bound(
        start.fits.begin(), start.fits.end(), steps_[i].node, [](const auto& f, NodeId n) {
          return f.first < n;
        });
    it->second += steps_[i].more;
    total_ += steps_[i].more;
    start.at = steps_[i].at;
  }
  start.known = total_ >= wanted_;
  if (!start.known) add_others(nodes, start);
  return start;
}

void Forecast::add_others(const std::vector<NodeId>& nodes, Start& start) const {
  std::vector<std::pair<NodeId, std::int32_t>> all;
  all.reserve(nodes.size());
  auto next = start.fits.begin();
  for (const NodeId id : nodes) {
    if (next != start.fits.end() && next->first == id) {
      all.push_back(*next++);
    } else if (usable_.ever_fits(id)) {
      all.emplace_back(id, 0);
    }
  }
  start.fits = std::move(all);
}

}  // namespace muster::engine
