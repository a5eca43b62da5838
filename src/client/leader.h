/// Leader election over a Lease: of several replicas one leads. Compatible with client-go's, so a
/// `kubectl get lease` reads as usual and another program may take over.
///
/// The holder renews every `retry`; one that has not managed to for `renew_deadline` stops leading
/// by itself, before others may take over after `lease`, and does not lead again: what it knows is
/// old by then. Other holders' clocks are never trusted: a lease counts as expired when it has not
/// changed for its duration by our own clock.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"

namespace muster::client {

struct LeaderOptions {
  std::string ns = "kube-system";
  std::string name = "muster";
  std::string identity;  // <host>_<uuid>; made when empty
  Duration lease = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry = std::chrono::seconds(2);
  std::function<void()> on_started;  // on the loop
  std::function<void()> on_stopped;  // on the loop; also after stop()
};

class LeaderElector {
 public:
  virtual ~LeaderElector() = default;
  virtual void start() = 0;
  /// Gives the lease back when it is held.
  virtual Task<void> stop() = 0;
  /// By the clock: a process that was stopped past the deadline does not lead, even before it hears
  /// of anything else.
  [[nodiscard]] virtual bool leading() const = 0;
  /// Who holds the lease as far as we know; empty: nobody.
  [[nodiscard]] virtual std::string holder() const = 0;
  /// How long the API server has not answered; zero while it does.
  [[nodiscard]] virtual Duration out_of_touch() const = 0;
};

std::unique_ptr<LeaderElector> make_leader_elector(Env& env, Client& client, LeaderOptions options);

}  // namespace muster::client
