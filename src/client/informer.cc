#include "client/informer.h"

#include <fmt/core.h>

#include <deque>
#include <optional>
#include <unordered_set>

#include "base/log.h"
#include "client/watch_text.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::client {
namespace {

constexpr auto kBackoffFirst = std::chrono::milliseconds(200);
constexpr auto kBackoffMax = std::chrono::seconds(30);
constexpr auto kUnknownKindRetry = std::chrono::seconds(30);
/// A watch that ends sooner and without an event counts as refused.
constexpr auto kWatchWorthwhile = std::chrono::seconds(1);
constexpr auto kStopWait = std::chrono::seconds(5);
/// A server that says nothing for so long while it owes initial events does not know of them.
constexpr auto kInitialSilence = std::chrono::seconds(20);
/// How much of a look at everything is taken over before others get the loop.
constexpr std::size_t kPieceRows = 256;
constexpr auto kPieceTime = std::chrono::milliseconds(5);
/// More changes than these do not wait behind it: then it is taken over at once.
constexpr std::size_t kBehindMax = 10'000;

/// A look at everything, on its way into State::objects.
struct Look {
  std::vector<ObjectPtr> items;
  std::string version;
  std::unordered_set<std::string> keys;  // of the items; only when there were objects before
  std::size_t noted = 0, taken = 0;      // items whose key is noted, items taken over
  std::string swept;                     // objects up to this key are still there, or removed
  bool swept_all = false, told = false;
  std::deque<WatchEvent> behind;  // what changed since
};

/// Lives as long as its coroutine, so that an Informer may be destroyed at any time.
struct State {
  State(Env& e, Client& c, Resource r, ListOptions o)
      : env(e),
        client(c),
        resource(std::move(r)),
        options(std::move(o)),
        wake(env.make_signal()),
        looked(env.make_signal()),
        stop(std::make_shared<StopSource>()) {}

  Env& env;
  Client& client;
  Resource resource;
  ListOptions options;
  std::map<std::string, ObjectPtr> objects;
  std::deque<InformerHandlers> handlers;  // a deque: adding one while others run moves nothing
  std::string version;                    // what the next watch goes on from; empty: list first
  std::optional<Look> look;               // not taken over as a whole yet
  bool synced = false;
  bool running = false;
  bool told = false;               // the failure under way was logged
  bool by_list = false;            // the server does not begin a watch with what there is
  std::unique_ptr<Signal> wake;    // stops a sleep, and tells stop() that the coroutine has ended
  std::unique_ptr<Signal> looked;  // `look` is taken over
  std::shared_ptr<StopSource> stop;

  [[nodiscard]] std::string name() const {
    return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
  }

  void tell(const ObjectPtr& old_object, const ObjectPtr& new_object) {
    const auto count = handlers.size();  // one added meanwhile has been told of everything already
    for (std::size_t i = 0; i < count; ++i) {
      if (handlers[i].on_change) handlers[i].on_change(old_object, new_object);
    }
  }

  void set(ObjectPtr fresh) {
    auto key = key_of(*fresh);
    auto [at, added] = objects.try_emplace(std::move(key), nullptr);
    if (!added && kube::resource_version_of(*at->second) == kube::resource_version_of(*fresh))
      return;
    const auto old_object = std::exchange(at->second, fresh);
    // Deleted and made anew between two lists: the handlers must see both.
    if (old_object && kube::uid_of(*old_object) != kube::uid_of(*fresh)) {
      tell(old_object, nullptr);
      tell(nullptr, fresh);
      return;
    }
    tell(old_object, fresh);
  }

  void remove(const std::string& key, ObjectPtr last) {
    const auto at = objects.find(key);
    if (at == objects.end()) return;
    if (!last) last = at->second;
    objects.erase(at);
    tell(last, nullptr);
  }

  void apply(WatchEvent event) {
    auto event_version = std::string(kube::resource_version_of(*event.object));
    if (event.type == "ADDED" || event.type == "MODIFIED") {
      set(std::move(event.object));
    } else if (event.type == "DELETED") {
      const auto key = key_of(*event.object);
      remove(key, std::move(event.object));
    }
    if (!event_version.empty()) version = std::move(event_version);
  }

  void begin_look(std::vector<ObjectPtr> items, std::string its_version) {
    look.emplace();
    look->items = std::move(items);
    look->version = std::move(its_version);
    look->swept_all = objects.empty();
    if (look->swept_all) look->noted = look->items.size();
  }

  /// Goes on with what is gone, then with what is there, then with what changed since. False:
  /// nothing is left.
  bool take_row() {
    if (!look) return false;
    if (look->noted < look->items.size()) {
      look->keys.insert(key_of(*look->items[look->noted++]));
    } else if (const auto next = objects.upper_bound(look->swept);
               !look->swept_all && next != objects.end()) {
      look->swept = next->first;
      if (!look->keys.contains(look->swept)) remove(std::string(look->swept), nullptr);
    } else if (look->taken < look->items.size()) {
      look->swept_all = true;
      set(std::move(look->items[look->taken++]));
    } else if (!look->told) {
      look->told = true;
      version = look->version;
      mark_synced();
    } else if (!look->behind.empty()) {
      auto event = std::move(look->behind.front());
      look->behind.pop_front();
      apply(std::move(event));
    } else {
      look.reset();
    }
    return look.has_value();
  }

  /// False: there is more.
  bool take_piece() {
    const Duration begun = env.monotonic();
    for (std::size_t rows = 1; !stop->stopped() && take_row(); ++rows) {
      if (rows == kPieceRows || (rows % 16 == 0 && env.monotonic() - begun >= kPieceTime))
        return false;
    }
    return true;
  }

  /// A change that came while a look is taken over has to wait for it.
  void take_change(WatchEvent event) {
    if (!look) return apply(std::move(event));
    look->behind.push_back(std::move(event));
    if (look->behind.size() <= kBehindMax) return;
    while (!stop->stopped() && take_row()) {
    }
  }

  /// Notes on who wrote what are of no use here, but for kinds of several versions, where they tell
  /// which one somebody wrote.
  [[nodiscard]] bool wants_managed_fields() const {
    return resource.group == kube::groups::kKubeflow;
  }

  void mark_synced() {
    if (synced) return;
    synced = true;
    const auto count = handlers.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (handlers[i].on_synced) handlers[i].on_synced();
    }
  }
};

/// What to do after a step failed.
enum class Next { kGoOn, kBackOff, kUnknownKind };

/// Takes over what is left of a look, with a turn for others before each piece.
Task<void> finish_look(std::shared_ptr<State> state) {
  while (state->look && !state->stop->stopped()) {
    co_await state->env.sleep(Duration::zero());
    (void)state->take_piece();
  }
  state->looked->notify();
}

void log_once(State& state, std::string_view what, const Error& error) {
  if (std::exchange(state.told, true)) return;
  log::warn(
      "client", "informer {} failed resource={} error=\"{}\"", what, state.name(), error.message);
}

/// What a list, or a watch that should begin with one, failed of.
Task<Next> look_failed(std::shared_ptr<State> state,
                       std::string_view what,
                       Error error,
                       bool& from_cache) {
  if (error.code == Code::kNotFound) {
    state->begin_look({}, "");
    if (!state->take_piece()) co_await finish_look(state);
    co_return Next::kUnknownKind;
  }
  const bool version_refused =
      error.code == Code::kExpired || error.code == Code::kGone || error.code == Code::kTimeout;
  if (from_cache && version_refused) {
    from_cache = false;
    co_return Next::kGoOn;
  }
  log_once(*state, what, error);
  co_return Next::kBackOff;
}

Task<Next> list_once(std::shared_ptr<State> state, bool& from_cache) {
  auto options = state->options;
  // The first time any state the server has at hand will do; a relist must not go back behind what
  // was seen, unless the server says that it cannot tell any more.
  options.resource_version = !from_cache ? "" : state->version.empty() ? "0" : state->version;
  auto list = co_await state->client.list(state->resource, std::move(options));
  if (state->stop->stopped()) co_return Next::kGoOn;
  if (!list) {
    const Next next = co_await look_failed(state, "list", list.error(), from_cache);
    co_return next;
  }
  from_cache = true;
  state->told = false;
  std::vector<ObjectPtr> items;
  items.reserve(list->items.size());
  for (auto& item : list->items)
    items.push_back(std::make_shared<const json::Value>(std::move(item)));
  state->begin_look(std::move(items), list->resource_version);
  if (!state->take_piece()) co_await finish_look(state);
  co_return Next::kGoOn;
}

/// Everything there is and then what changes, until the stream ends. `listed`: the next watch may
/// go on from state.version.
Task<Next> watch_from_start(const std::shared_ptr<State>& state, bool& from_cache, bool& listed) {
  WatchOptions options;
  options.list = state->options;
  options.list.resource_version = !from_cache ? "" : state->version.empty() ? "0" : state->version;
  options.initial_events = true;
  options.managed_fields = state->wants_managed_fields();
  // Ended from outside, and from here when the server owes the initial events for too long.
  const auto end = std::make_shared<StopSource>();
  options.list.stop = end;
  state->stop->on_stop = [end] { end->stop(); };
  std::vector<ObjectPtr> items;
  bool whole = false, silent = false;
  Duration heard = state->env.monotonic();
  std::unique_ptr<Timer> look;
  const std::function<void()> look_later = [&] {
    look = state->env.after(kInitialSilence, [&] {
      if (whole) return;
      silent = state->env.monotonic() - heard >= kInitialSilence;
      if (silent)
        end->stop();
      else
        look_later();
    });
  };
  look_later();
  const auto ended =
      co_await state->client.watch(state->resource, std::move(options), [&](WatchEvent event) {
        heard = state->env.monotonic();
        if (state->stop->stopped()) return false;
        if (whole) {
          state->take_change(std::move(event));
        } else if (is_initial_end(event)) {
          whole = true;
          look.reset();
          from_cache = true;
          state->told = false;
          state->begin_look(std::exchange(items, {}),
                            std::string(kube::resource_version_of(*event.object)));
          if (!state->take_piece()) state->env.spawn(finish_look(state));
        } else if (event.type == "ADDED") {
          items.push_back(std::move(event.object));
        }
        return true;
      });
  state->stop->on_stop = nullptr;
  while (state->look && !state->stop->stopped()) co_await state->looked->wait(Duration::zero());
  if (state->stop->stopped()) co_return Next::kGoOn;
  if (whole) {
    if (!ended)
      log::debug("client",
                 "informer watch ended resource={} error=\"{}\"",
                 state->name(),
                 ended.error().message);
    listed = static_cast<bool>(ended) && !state->version.empty();
    co_return Next::kGoOn;
  }
  const bool refused =
      !ended && (ended.error().code == Code::kInvalid || ended.error().code == Code::kBadRequest ||
                 ended.error().code == Code::kMethodNotAllowed);
  if (refused || silent) {
    state->by_list = true;
    co_return Next::kGoOn;
  }
  Next next = Next::kBackOff;
  if (!ended) next = co_await look_failed(state, "watch", ended.error(), from_cache);
  co_return next;
}

/// Follows until the stream ends. False: list again before the next watch.
Task<bool> watch_once(const std::shared_ptr<State>& state, bool& fruitful) {
  WatchOptions options;
  options.list = state->options;
  options.list.resource_version = state->version;
  options.list.stop = state->stop;
  options.managed_fields = state->wants_managed_fields();
  const auto begun = state->env.monotonic();
  bool any = false;
  const auto ended =
      co_await state->client.watch(state->resource, std::move(options), [&](WatchEvent event) {
        any = true;
        if (!state->stop->stopped()) state->apply(std::move(event));
        return !state->stop->stopped();
      });
  fruitful = any || state->env.monotonic() - begun >= kWatchWorthwhile;
  if (state->stop->stopped()) co_return true;
  if (!ended) {
    log::debug("client",
               "informer watch ended resource={} error=\"{}\"",
               state->name(),
               ended.error().message);
    co_return false;
  }
  co_return true;
}

Task<void> run(std::shared_ptr<State> state) {
  Duration backoff = kBackoffFirst;
  bool from_cache = true;
  bool listed = false;
  while (!state->stop->stopped()) {
    Next next = Next::kGoOn;
    if (!listed && !state->by_list) {
      const auto begun = state->env.monotonic();
      next = co_await watch_from_start(state, from_cache, listed);
      if (state->env.monotonic() - begun >= kWatchWorthwhile) backoff = kBackoffFirst;
      // A stream that breaks again and again right behind its beginning must not cost a list each
      // time at once.
      else if (next == Next::kGoOn && !state->by_list && from_cache)
        next = Next::kBackOff;
    } else if (!listed) {
      next = co_await list_once(state, from_cache);
      listed = next == Next::kGoOn && from_cache && !state->version.empty();
      // An empty version would watch from "now" and could miss what happened since the list.
      if (next == Next::kGoOn && from_cache && !listed) next = Next::kBackOff;
    } else {
      bool fruitful = false;
      listed = co_await watch_once(state, fruitful);
      if (fruitful) {
        backoff = kBackoffFirst;
        continue;
      }
      next = Next::kBackOff;
    }
    if (state->stop->stopped()) break;
    if (next == Next::kBackOff) {
      // Spread, so that many clients do not come back in step.
      const auto spread = Duration(static_cast<std::int64_t>(
          state->env.random() % static_cast<std::uint64_t>(backoff.count() / 2 + 1)));
      co_await state->wake->wait(backoff + spread);
      backoff = std::min<Duration>(backoff * 2, kBackoffMax);
    } else if (next == Next::kUnknownKind) {
      co_await state->wake->wait(kUnknownKindRetry);
    }
  }
  state->running = false;
  state->wake->notify();
}

class WatchingInformer final : public Informer {
 public:
  explicit WatchingInformer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~WatchingInformer() override {
    state_->handlers.clear();
    end();
  }

  void start() override {
    if (state_->running || state_->stop->stopped()) return;
    state_->running = true;
    state_->env.spawn(run(state_));
  }
  Task<void> stop() override {
    const auto state = state_;
    end();
    const auto begun = state->env.monotonic();
    while (state->running && state->env.monotonic() - begun < kStopWait)
      co_await state->wake->wait(kStopWait);
  }
  [[nodiscard]] bool synced() const override { return state_->synced; }
  [[nodiscard]] const std::map<std::string, ObjectPtr>& objects() const override {
    return state_->objects;
  }
  [[nodiscard]] ObjectPtr find(const std::string& key) const override {
    const auto at = state_->objects.find(key);
    return at == state_->objects.end() ? nullptr : at->second;
  }
  void add_handlers(InformerHandlers handlers) override {
    const auto state = state_;
    state->handlers.push_back(handlers);
    if (handlers.on_change) {
      std::vector<ObjectPtr> objects;  // a handler may change things
      objects.reserve(state->objects.size());
      for (const auto& [key, object] : state->objects) objects.push_back(object);
      for (const ObjectPtr& object : objects) handlers.on_change(nullptr, object);
    }
    if (state->synced && handlers.on_synced) handlers.on_synced();
  }

 private:
  void end() {
    if (!state_->stop->stopped()) state_->stop->stop();
    state_->wake->notify();
  }
  std::shared_ptr<State> state_;
};

}  // namespace

std::string key_of(const json::Value& object) {
  const auto ns = kube::namespace_of(object);
  const auto name = kube::name_of(object);
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  if (!ns.empty()) key.append(ns).append(1, '/');
  return key.append(name);
}

std::unique_ptr<Informer> make_informer(Env& env,
                                        Client& client,
                                        const Resource& resource,
                                        ListOptions options) {
  return std::make_unique<WatchingInformer>(
      std::make_shared<State>(env, client, resource, std::move(options)));
}

Informer& Informers::get(const Resource& resource, ListOptions options) {
  auto key = fmt::format("{}|{}|{}|{}|{}|{}",
                         resource.group,
                         resource.version,
                         resource.plural,
                         options.ns,
                         options.label_selector,
                         options.field_selector);
  auto& place = by_key_[key];
  if (!place) place = make_informer(env_, client_, resource, std::move(options));
  return *place;
}

void Informers::start_all() {
  for (auto& [key, informer] : by_key_) informer->start();
}

Task<void> Informers::wait_synced() {
  const std::shared_ptr<Signal> changed = env_.make_signal();
  for (auto& [key, informer] : by_key_) {
    if (informer->synced()) continue;
    InformerHandlers handlers;
    handlers.on_synced = [changed] { changed->notify(); };
    informer->add_handlers(std::move(handlers));
  }
  for (auto& [key, informer] : by_key_) {
    while (!informer->synced()) co_await changed->wait(Duration::zero());
  }
}

Task<void> Informers::stop_all() {
  for (auto& [key, informer] : by_key_) co_await informer->stop();
}

}  // namespace muster::client
