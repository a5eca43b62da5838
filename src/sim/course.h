/// An engine played forward on a virtual clock: gangs start when the engine binds their minimum, last
/// as long as the derived class says, and end; victims leave after their grace period and come back.
/// It begins with a live engine, in which gangs run and wait, as well as with an empty one.
///
/// The engine should be a rehearsal() of the one that is asked about. The same engine, the same
/// changes and the same durations give the same course.
///
/// One piece: starts, ends, evictions and returns are entries of one calendar.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "engine/engine.h"

namespace muster::sim {

/// The gangs that are there when a course begins; made once for many courses from the same state.
struct Cast {
  explicit Cast(const engine::Engine& engine);

  std::vector<engine::GangView> gangs;
  std::unordered_map<std::string, std::uint32_t> by_pod;  // looked up, never iterated
  std::unordered_map<std::string, std::uint32_t> by_key;  // looked up, never iterated
};

class Course {
 public:
  using Ix = std::uint32_t;
  static constexpr Ix kNobody = ~Ix{0};

  struct Settings {
    /// What falls into this, or into 1 % of the time played if that is more, is decided together;
    /// zero: every moment is decided alone.
    Duration quantum = std::chrono::seconds(1);
    /// How long victims take to leave where nothing else is known.
    Duration grace = std::chrono::seconds(30);
    /// Gangs that were evicted wait again as if they had just been submitted.
    bool come_back = true;
    /// Called between steps; it may take its time. Null: nobody is in a hurry.
    std::function<void()> breathe;
  };

  Course(engine::Engine engine,
         std::shared_ptr<const Cast> cast,
         Time now,
         const Settings& settings);
  virtual ~Course() = default;
  /// As far as the other one is; each goes on for itself.
  Course(const Course& other);
  Course& operator=(const Course&) = delete;

  /// Until over(), until nothing more can happen, or to this time.
  void play(Time until);

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const engine::Engine& engine() const { return engine_; }

 protected:
  /// How long the gang lasts in all, given that it has run for `age` already.
  virtual Duration lasts(Ix gang, Duration age) = 0;
  virtual void started(Ix gang) { (void)gang; }
  virtual void ended(Ix gang) { (void)gang; }
  virtual void evicted(Ix gang) { (void)gang; }
  /// A pod of the gang now runs there.
  virtual void bound(Ix gang, const engine::Bind& bind) { (void)gang, (void)bind; }
  /// When the world next changes by itself, and the change: calls apply().
  [[nodiscard]] virtual std::optional<Time> next_change() const { return std::nullopt; }
  virtual void change() {}
  [[nodiscard]] virtual bool over() const { return false; }
  /// After every decision.
  virtual void decided() {}

  /// From change(): the engine hears it, and the course takes note of gangs that come and go.
  void apply(const engine::Event& event);
  /// The gang's time is over now, whatever was said.
  void end(Ix gang);
  /// From change(): the pod has to go, with its grace period, and comes back as victims do.
  void drive_out(const std::string& pod);
  /// The gang will end at another time than was said; from now on, if that has passed.
  void let_last(Ix gang, Duration lasts);
  /// For what no event says.
  [[nodiscard]] engine::Engine& playing() { return engine_; }

  [[nodiscard]] Ix count() const { return static_cast<Ix>(players_.size()); }
  [[nodiscard]] const engine::GangView& view(Ix gang) const { return *views_[gang]; }
  [[nodiscard]] Ix find(std::string_view key) const;
  [[nodiscard]] bool runs(Ix gang) const { return players_[gang].running; }
  [[nodiscard]] bool gone(Ix gang) const { return players_[gang].gone; }
  /// Of the run that goes on.
  [[nodiscard]] Time started_at(Ix gang) const { return players_[gang].started; }
  [[nodiscard]] Time ends_at(Ix gang) const { return players_[gang].ends; }

 private:
  struct Player {
    std::int32_t run = 0;  ///< How often it started; the end of an earlier run is stale.
    std::int32_t bound = 0;
    bool running = false;
    bool gone = false;
    Time started, ends;
  };
  struct End {
    Time at;
    Ix gang = 0;
    std::int32_t run = 0;
    bool operator>(const End& other) const {
      return std::tie(at, gang, run) > std::tie(other.at, other.gang, other.run);
    }
  };
  struct Leaving {
    Time at;
    std::uint64_t seq = 0;
    std::string pod;
    bool comes_back = false;
    bool operator>(const Leaving& other) const {
      return std::tie(at, seq) > std::tie(other.at, other.seq);
    }
  };

  void begin_with(Ix gang);
  void step(Time until);
  [[nodiscard]] std::optional<Time> next_time() const;
  void let_end(Time until);
  void let_leave(Time until);
  void decide();
  void take(const engine::Bind& bind);
  void lose(const std::string& pod);
  void send_away(const engine::Evict& evict);
  void start(Ix gang);
  void meet(const std::string& key);
  void meet_all();
  [[nodiscard]] Ix of_pod(const std::string& pod) const;

  engine::Engine engine_;
  std::shared_ptr<const Cast> cast_;
  Settings settings_;
  Time began_, now_;
  std::optional<Time> wake_;
  bool begun_ = false;
  std::vector<Player> players_;
  std::vector<const engine::GangView*> views_;  ///< By player: in the cast, or in late_.
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leavings_;
  std::uint64_t next_seq_ = 0;
  // Those who came, or changed, after the beginning.
  std::vector<std::shared_ptr<const engine::GangView>> late_;
  std::vector<std::string> to_meet_;  ///< Keys of gangs that apply() has heard of.
  std::unordered_map<std::string, Ix> late_by_pod_, late_by_key_;  // looked up, never iterated
};

}  // namespace muster::sim
