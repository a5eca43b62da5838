/// Virtual time for the whole cluster: one clock, one heap of what happens next, one seed.
///
/// A SimWorld holds the clock and the heap; a SimEnv is one process in it. Everything that is built
/// on Env runs here unchanged, on one thread. What happens at the same instant happens in the order
/// in which it was asked for, so a seed replays byte for byte. A process that crashes is abandoned:
/// none of its callbacks and coroutines runs again, and no destructor does either, as after kill -9.
/// One that is stopped (SIGSTOP, a machine that swaps) does later all that it would have done.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/env.h"
#include "base/random.h"

namespace muster::bottle {

class SimEnv;

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);

  [[nodiscard]] Time now() const { return now_; }
  Random& random() { return random_; }
  /// Of everything that happened so far, in order: two runs are the same when this is.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  void mix(std::uint64_t value);
  void mix(std::string_view text);
  [[nodiscard]] std::uint64_t events() const { return events_; }

  /// Runs what happens until then; false: `stop` said so. Nothing may keep an instant busy for ever.
  bool run_until(Time end, const std::function<bool()>& stop);
  /// Forgets what would happen next, while all that it refers to is still there.
  void clear() { const auto gone = std::exchange(heap_, {}); }

 private:
  friend class SimEnv;
  /// What its events know of a process.
  struct Process {
    bool alive = true;
    Time stopped_until;
  };
  struct Event {
    std::shared_ptr<const Process> process;
    std::function<void()> fn;
  };
  using Place = std::pair<std::int64_t, std::uint64_t>;  // when, in which order
  Place add(Duration delay, Event event);
  void remove(const Place& place);
  /// Runs it, or puts it off if its process is stopped; false: nothing happened.
  bool happen(std::map<Place, Event>::iterator first);

  boost::asio::io_context context_;
  Random random_;
  Time now_;
  std::map<Place, Event> heap_;
  std::map<std::uint64_t, Place> put_off_;  // where those of stopped processes are now
  std::uint64_t next_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t digest_ = 0xcbf29ce484222325ULL;
};

class SimEnv final : public Env {
 public:
  explicit SimEnv(SimWorld& world);

  /// From now on nothing of this process happens.
  void crash() { process_->alive = false; }
  [[nodiscard]] bool alive() const { return process_->alive; }
  /// Nothing of this process happens for so long. Whoever is stopped already is not woken by it: what
  /// waits for the first stop to end would come after what waits for the second.
  void stop_for(Duration span) {
    process_->stopped_until = std::max(process_->stopped_until, world_.now_ + span);
  }
  SimWorld& world() { return world_; }
  /// How far this process's wall clock is off.
  void set_clock(Duration offset) { offset_ = offset; }

  /// As after(), for what nobody calls back.
  void later(Duration delay, std::function<void()> fn) {
    world_.add(delay, {process_, std::move(fn)});
  }

  Time now() override { return world_.now_ + offset_; }
  Duration monotonic() override { return Duration(world_.now_.us); }
  std::uint64_t random() override { return world_.random_.next(); }
  void post(std::function<void()> fn) override;
  std::unique_ptr<Timer> after(Duration delay, std::function<void()> fn) override;
  void offload(std::function<void()> work, std::function<void()> done) override;
  void spawn(Task<void> task) override;
  Task<void> sleep(Duration delay) override;
  Task<void> run_on_worker(std::function<void()> work) override;
  std::unique_ptr<Signal> make_signal() override;

 private:
  SimWorld& world_;
  std::shared_ptr<SimWorld::Process> process_ = std::make_shared<SimWorld::Process>();
  Duration offset_{};
};

}  // namespace muster::bottle
