#include "client/leader.h"

#include <fmt/core.h>
#include <unistd.h>

#include "base/log.h"
#include "kube/meta.h"
#include "kube/resources.h"
#include "net/tls/tls.h"

namespace muster::client {
namespace {

struct State {
  State(Env& e, Client& c, LeaderOptions o)
      : env(e), client(c), options(std::move(o)), wake(env.make_signal()) {}
  Env& env;
  Client& client;
  LeaderOptions options;
  std::unique_ptr<Signal> wake;
  bool running = false;
  bool stopping = false;
  bool leading = false;
  bool lost = false;  // it led, and does not any more: it is not to lead again
  std::string holder;
  // The lease as last seen, and when by our clock it last changed.
  std::string seen_version;
  Duration seen_at = Duration::zero();
  Duration renewed_at = Duration::zero();
  Duration answered_at = Duration::zero();  // whatever the answer was
  std::string complaint;                    // what was logged last and has not been mended since
};

/// Every two seconds the same line would bury all others. That somebody else was quicker is nothing
/// to complain of.
void complain(State& state, std::string_view what, const Error& error) {
  const auto text = fmt::format(
      "{} name={}/{} error=\"{}\"", what, state.options.ns, state.options.name, error.message);
  if (error.code == Code::kConflict || error.code == Code::kAlreadyExists) {
    log::debug("client", "{}", text);
  } else if (text != state.complaint) {
    log::warn("client", "{}", text);
    state.complaint = text;
  }
}

std::string make_identity() {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}_{}", host, net::random_uuid());
}

void set_leading(State& state, bool leading) {
  if (state.leading == leading) return;
  state.leading = leading;
  state.lost = state.lost || !leading;
  log::info("client",
            "{} lease={}/{} identity={}",
            leading ? "leading" : "not leading any more",
            state.options.ns,
            state.options.name,
            state.options.identity);
  const auto& callback = leading ? state.options.on_started : state.options.on_stopped;
  if (callback) callback();
}

json::Value lease_spec(const State& state, const json::Value& before) {
  const auto now = format_micro_time(state.env.now());
  const auto& old = json::at(before, "spec");
  const bool same_holder = json::string_at(old, "holderIdentity") == state.options.identity;
  const auto transitions = json::int_at(old, "leaseTransitions");
  json::Object spec{
      {"holderIdentity", state.options.identity},
      {"leaseDurationSeconds",
       std::chrono::duration_cast<std::chrono::seconds>(state.options.lease).count()},
      {"acquireTime", same_holder ? json::text_at(old, "acquireTime") : now},
      {"renewTime", now},
      {"leaseTransitions", same_holder || before.is_null() ? transitions : transitions + 1}};
  return spec;
}

/// True when the lease is ours afterwards.
Task<bool> try_once(State& state) {
  const auto& options = state.options;
  auto lease = co_await state.client.get(resources::kLeases, options.ns, options.name);
  if (lease || lease.error().code == Code::kNotFound || lease.error().code == Code::kForbidden)
    state.answered_at = state.env.monotonic();
  if (!lease && lease.error().code == Code::kNotFound) {
    json::Value fresh =
        json::Object{{"apiVersion", kube::resources::kLeases.api_version()},
                     {"kind", "Lease"},
                     {"metadata", json::Object{{"name", options.name}, {"namespace", options.ns}}},
                     {"spec", lease_spec(state, json::null_value())}};
    const auto created =
        co_await state.client.create(resources::kLeases, options.ns, std::move(fresh));
    if (!created) {
      complain(state, "lease not created", created.error());
      co_return false;
    }
    state.complaint.clear();
    state.holder = options.identity;
    co_return true;
  }
  if (!lease) {
    complain(state, "lease not read", lease.error());
    co_return false;
  }
  const auto version = std::string(kube::resource_version_of(*lease));
  const auto now = state.env.monotonic();
  if (version != state.seen_version) {
    state.seen_version = version;
    state.seen_at = now;
  }
  state.holder = json::text_at(*lease, "spec", "holderIdentity");
  const auto duration =
      std::chrono::seconds(json::as_int(json::at(*lease, "spec", "leaseDurationSeconds"), 15));
  const bool ours = state.holder == options.identity;
  if (!ours && !state.holder.empty() && now - state.seen_at < duration) co_return false;

  json::make(*lease, {"spec"}) = lease_spec(state, *lease);
  const auto updated = co_await state.client.update(resources::kLeases, std::move(*lease));
  if (!updated) {
    complain(state, "lease not updated", updated.error());
    co_return false;
  }
  state.complaint.clear();
  state.holder = options.identity;
  state.seen_version = kube::resource_version_of(*updated);
  state.seen_at = now;
  co_return true;
}

Task<void> release(State& state) {
  auto lease = co_await state.client.get(resources::kLeases, state.options.ns, state.options.name);
  if (!lease || json::string_at(*lease, "spec", "holderIdentity") != state.options.identity)
    co_return;
  const auto now = format_micro_time(state.env.now());
  auto& spec = json::make_object(*lease, {"spec"});
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["renewTime"] = now;
  spec["acquireTime"] = now;
  const auto updated = co_await state.client.update(resources::kLeases, std::move(*lease));
  if (!updated) log::debug("client", "lease not released error=\"{}\"", updated.error().message);
}

Task<void> run(std::shared_ptr<State> state) {
  while (!state->stopping && !state->lost) {
    // A renewal that hangs must not keep us leading: the guard steps down in time whatever the
    // request does.
    std::unique_ptr<Timer> guard;
    if (state->leading) {
      const auto left = state->renewed_at + state->options.renew_deadline - state->env.monotonic();
      guard =
          state->env.after(std::max<Duration>(left, Duration(1)), [weak = std::weak_ptr(state)] {
            if (const auto alive = weak.lock()) set_leading(*alive, false);
          });
    }
    const auto begun = state->env.monotonic();
    const bool held = co_await try_once(*state);
    guard.reset();
    if (state->stopping || state->lost) break;
    const auto now = state->env.monotonic();
    if (held && now - begun < state->options.renew_deadline) {
      state->renewed_at = begun;
      set_leading(*state, true);
    } else if (state->leading && (state->holder != state->options.identity ||
                                  now - state->renewed_at >= state->options.renew_deadline)) {
      set_leading(*state, false);
    }
    if (!state->lost) co_await state->wake->wait(state->options.retry);
  }
  const bool led = state->leading || state->lost;
  set_leading(*state, false);
  if (led) co_await release(*state);
  state->running = false;
  state->wake->notify();
}

class LeaseElector final : public LeaderElector {
 public:
  explicit LeaseElector(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~LeaseElector() override {
    state_->stopping = true;
    state_->options.on_started = nullptr;
    state_->options.on_stopped = nullptr;
    state_->wake->notify();
  }
  void start() override {
    if (state_->running || state_->stopping) return;
    state_->running = true;
    state_->answered_at = state_->env.monotonic();
    state_->env.spawn(run(state_));
  }
  Task<void> stop() override {
    const auto state = state_;
    state->stopping = true;
    state->wake->notify();
    while (state->running) co_await state->wake->wait(std::chrono::seconds(1));
  }
  [[nodiscard]] bool leading() const override {
    return state_->leading &&
           state_->env.monotonic() - state_->renewed_at < state_->options.renew_deadline;
  }
  [[nodiscard]] std::string holder() const override { return state_->holder; }
  [[nodiscard]] Duration out_of_touch() const override {
    const Duration silent = state_->env.monotonic() - state_->answered_at;
    return silent > state_->options.lease ? silent : Duration::zero();
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<LeaderElector> make_leader_elector(Env& env,
                                                   Client& client,
                                                   LeaderOptions options) {
  if (options.identity.empty()) options.identity = make_identity();
  return std::make_unique<LeaseElector>(std::make_shared<State>(env, client, std::move(options)));
}

}  // namespace muster::client
