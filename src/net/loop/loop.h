/// The loop: production's Env over Asio. One io_context, one thread that runs it, a few workers.
#pragma once

#include <memory>

#include "base/env.h"

namespace boost::asio {
class io_context;
}

namespace muster::net {

class Loop final : public Env {
 public:
  Loop();
  ~Loop() override;

  /// Runs until stop(); returns to the caller's thread.
  void run();
  /// Runs a coroutine to its end on this thread, for command-line programs and tests.
  void run_until_done(Task<void> task);
  void stop();
  boost::asio::io_context& context();

  Time now() override;
  Duration monotonic() override;
  std::uint64_t random() override;
  void post(std::function<void()> fn) override;
  std::unique_ptr<Timer> after(Duration delay, std::function<void()> fn) override;
  void offload(std::function<void()> work, std::function<void()> done) override;
  void spawn(Task<void> task) override;
  void spread(std::size_t count, const std::function<void(std::size_t)>& each) override;
  Task<void> sleep(Duration delay) override;
  Task<void> run_on_worker(std::function<void()> work) override;
  std::unique_ptr<Signal> make_signal() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::net
