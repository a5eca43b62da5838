#include "client/events.h"

#include <fmt/core.h>

#include <deque>
#include <list>
#include <unordered_map>

#include "base/log.h"
#include "json/text.h"
#include "kube/meta.h"

namespace muster::client {
namespace {

/// Nanoseconds, so that events sorted by name are sorted by time, as client-go names them; the last
/// three digits only keep two recorders apart.
std::uint64_t event_stamp(Env& env) {
  return static_cast<std::uint64_t>(env.now().us) * 1000 + env.random() % 1000;
}

/// A gang of ten thousand makes as many events at once; each is a few hundred bytes here.
constexpr std::size_t kQueueMax = 20'000;
constexpr std::size_t kKnownMax = 4'096;
constexpr std::size_t kMessageBytesMax = 1'024;
/// Many together are read together, which costs less a piece.
constexpr int kInFlightMax = 96;
constexpr Duration kHoldMax = std::chrono::seconds(10);
constexpr Duration kHoldLook = std::chrono::milliseconds(50);
constexpr Duration kFlushMax = std::chrono::seconds(5);

/// One event that exists (or will): the same object, reason and message only count it up.
struct Known {
  std::string key;
  // The object it is about, and where in it.
  std::string api_version, kind, ns, name, uid, resource_version, field_path;
  std::string type, reason, message;
  std::string event_ns, event_name;
  int count = 0;
  Time first, last;
  Duration queued_at = Duration::zero();
  bool created = false;  // the server has it
  bool queued = false;
  bool writing = false;
};
using KnownPtr = std::shared_ptr<Known>;

struct State {
  State(Env& e, Client& c, std::string component_name, std::string host_name)
      : env(e),
        client(c),
        component(std::move(component_name)),
        host(std::move(host_name)),
        idle(env.make_signal()) {}
  Env& env;
  Client& client;
  std::string component, host;
  std::function<bool()> busy;  // what goes first; may be empty
  std::deque<KnownPtr> queue;
  std::list<KnownPtr> recent;  // most recently used first
  std::unordered_map<std::string, std::list<KnownPtr>::iterator> by_key;
  int in_flight = 0;
  std::unique_ptr<Timer> look;  // set while events are held
  bool ended = false;
  bool flushing = false;
  bool pump_due = false;
  std::uint64_t dropped = 0;
  std::unique_ptr<Signal> idle;
};

std::string cut(std::string text) {
  if (text.size() <= kMessageBytesMax) return text;
  auto end = kMessageBytesMax - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // not inside a character
  text.resize(end);
  return text + "...";
}

json::Value make_event(const State& state, const Known& known) {
  json::Object involved{{"kind", known.kind}};
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) involved[key] = value;
  };
  add("namespace", known.ns);
  add("name", known.name);
  add("uid", known.uid);
  add("apiVersion", known.api_version);
  add("resourceVersion", known.resource_version);
  add("fieldPath", known.field_path);
  json::Object source{{"component", state.component}};
  if (!state.host.empty()) source["host"] = state.host;
  return json::Object{
      {"kind", "Event"},
      {"apiVersion", "v1"},
      {"metadata", json::Object{{"name", known.event_name}, {"namespace", known.event_ns}}},
      {"involvedObject", std::move(involved)},
      {"reason", known.reason},
      {"message", known.message},
      {"source", std::move(source)},
      {"type", known.type},
      {"count", known.count},
      {"firstTimestamp", format_time(known.first)},
      {"lastTimestamp", format_time(known.last)},
      {"eventTime", nullptr},
      {"reportingComponent", state.component},
      {"reportingInstance", state.host}};
}

/// make_event() as text.
std::string event_text(const State& state, const Known& known) {
  std::string out;
  out.reserve(640 + known.message.size());
  const auto add = [&out](std::string_view before, std::string_view value) {
    out += before;
    json::append_string(out, value);
  };
  const auto add_if = [&add](std::string_view before, std::string_view value) {
    if (!value.empty()) add(before, value);
  };
  add(R"({"kind":"Event","apiVersion":"v1","metadata":{"name":)", known.event_name);
  add(R"(,"namespace":)", known.event_ns);
  add(R"(},"involvedObject":{"kind":)", known.kind);
  add_if(R"(,"namespace":)", known.ns);
  add_if(R"(,"name":)", known.name);
  add_if(R"(,"uid":)", known.uid);
  add_if(R"(,"apiVersion":)", known.api_version);
  add_if(R"(,"resourceVersion":)", known.resource_version);
  add_if(R"(,"fieldPath":)", known.field_path);
  add(R"(},"reason":)", known.reason);
  add(R"(,"message":)", known.message);
  add(R"(,"source":{"component":)", state.component);
  add_if(R"(,"host":)", state.host);
  add(R"(},"type":)", known.type);
  out.append(R"(,"count":)").append(std::to_string(known.count));
  add(R"(,"firstTimestamp":)", format_time(known.first));
  add(R"(,"lastTimestamp":)", format_time(known.last));
  add(R"(,"eventTime":null,"reportingComponent":)", state.component);
  add(R"(,"reportingInstance":)", state.host);
  out += '}';
  return out;
}

void pump(const std::shared_ptr<State>& state);

void written(const std::shared_ptr<State>& state, const KnownPtr& known) {
  known->writing = false;
  --state->in_flight;
  // Counted up while it was being written.
  if (known->queued) state->queue.push_back(known);
  pump(state);
  if (state->queue.empty() && state->in_flight == 0) state->idle->notify();
}

/// Most events come once: a create of which only the end is of interest.
void create(const std::shared_ptr<State>& state, const KnownPtr& known) {
  Post post{resources::kEvents, known->event_ns, "", "", {}, ""};
  if (state->client.sends_text())
    post.text = event_text(*state, *known);
  else
    post.body = make_event(*state, *known);
  state->client.submit(std::move(post), [state, known](const Result<void>& done) {
    known->created = static_cast<bool>(done);
    // An event is a courtesy: a namespace on its way out refuses it, and nothing depends on it.
    if (!done)
      log::debug("client",
                 "event not written name={} error=\"{}\"",
                 known->event_name,
                 done.error().message);
    written(state, known);
  });
}

Task<void> count_up(std::shared_ptr<State> state, KnownPtr known) {
  json::Value patch =
      json::Object{{"count", known->count}, {"lastTimestamp", format_time(known->last)}};
  const auto patched = co_await state->client.patch(resources::kEvents,
                                                    known->event_ns,
                                                    known->event_name,
                                                    "",
                                                    PatchType::kMerge,
                                                    std::move(patch),
                                                    Answer::kNone);
  if (!patched && patched.error().code == Code::kNotFound) {
    // Events expire; a new one under a new name begins.
    known->created = false;
    known->event_name = fmt::format("{}.{:016x}", known->name, event_stamp(state->env));
    known->count = 1;
    known->first = known->last;
    create(state, known);
    co_return;
  }
  if (!patched)
    log::debug("client",
               "event not counted up name={} error=\"{}\"",
               known->event_name,
               patched.error().message);
  written(state, known);
}

void write(const std::shared_ptr<State>& state, const KnownPtr& known) {
  // From here on what is recorded counts for the next write.
  known->queued = false;
  known->writing = true;
  if (known->created)
    state->env.spawn(count_up(state, known));
  else
    create(state, known);
}

void pump(const std::shared_ptr<State>& state) {
  while (!state->ended && !state->queue.empty()) {
    const bool held = state->busy && !state->flushing && state->busy();
    const bool overdue = state->env.monotonic() - state->queue.front()->queued_at > kHoldMax;
    if (state->in_flight >= (!held ? kInFlightMax : overdue ? 1 : 0)) {
      if (!held || state->look) return;
      state->look = state->env.after(kHoldLook, [weak = std::weak_ptr(state)] {
        if (const auto alive = weak.lock()) {
          alive->look.reset();
          pump(alive);
        }
      });
      return;
    }
    const auto known = state->queue.front();
    state->queue.pop_front();
    ++state->in_flight;
    write(state, known);
  }
}

class LoopEventRecorder final : public EventRecorder {
 public:
  explicit LoopEventRecorder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~LoopEventRecorder() override {
    state_->ended = true;
    state_->busy = nullptr;
    state_->look.reset();
  }

  void record(const json::Value& object,
              std::string type,
              std::string reason,
              std::string message) override {
    record_field(object, "", std::move(type), std::move(reason), std::move(message));
  }

  void record_field(const json::Value& object,
                    std::string field_path,
                    std::string type,
                    std::string reason,
                    std::string message) override {
    auto& state = *state_;
    const auto known = find_or_make(
        object, std::move(field_path), std::move(type), std::move(reason), cut(std::move(message)));
    ++known->count;
    known->last = state.env.now();
    if (known->queued) return;
    known->queued = true;
    known->queued_at = state.env.monotonic();
    if (known->writing) return;
    if (state.queue.size() >= kQueueMax) {
      state.queue.front()->queued = false;
      state.queue.pop_front();
      if (state.dropped++ % 1000 == 0)
        log::warn("client", "events are dropped, the server is too slow dropped={}", state.dropped);
    }
    state.queue.push_back(known);
    // Not at once: what is recorded again in this turn counts for the same write.
    if (std::exchange(state.pump_due, true)) return;
    state.env.post([weak = std::weak_ptr(state_)] {
      const auto alive = weak.lock();
      if (!alive) return;
      alive->pump_due = false;
      pump(alive);
    });
  }

  void hold_while(std::function<bool()> busy) override { state_->busy = std::move(busy); }

  Task<void> flush() override {
    const auto state = state_;
    const Duration end = state->env.monotonic() + kFlushMax;
    state->flushing = true;
    pump(state);
    while ((!state->queue.empty() || state->in_flight > 0) && !state->ended) {
      const Duration left = end - state->env.monotonic();
      if (left <= Duration::zero()) break;
      co_await state->idle->wait(left);
    }
    state->flushing = false;
  }

 private:
  KnownPtr find_or_make(const json::Value& object,
                        std::string field_path,
                        std::string type,
                        std::string reason,
                        std::string message) {
    auto& state = *state_;
    std::string key;
    for (const std::string_view part : {json::string_at(object, "kind"),
                                        kube::namespace_of(object),
                                        kube::name_of(object),
                                        kube::uid_of(object),
                                        std::string_view(field_path),
                                        std::string_view(type),
                                        std::string_view(reason),
                                        std::string_view(message)}) {
      key.append(part).append(1, '|');
    }
    const auto at = state.by_key.find(key);
    if (at != state.by_key.end()) {
      state.recent.splice(state.recent.begin(), state.recent, at->second);
      return *at->second;
    }
    auto known = std::make_shared<Known>();
    known->key = std::move(key);
    known->api_version = json::text_at(object, "apiVersion");
    known->kind = json::text_at(object, "kind");
    known->ns = kube::namespace_of(object);
    known->name = kube::name_of(object);
    known->uid = kube::uid_of(object);
    known->resource_version = kube::resource_version_of(object);
    known->field_path = std::move(field_path);
    known->type = std::move(type);
    known->reason = std::move(reason);
    known->message = std::move(message);
    known->event_name = fmt::format("{}.{:016x}", known->name, event_stamp(state.env));
    known->event_ns = known->ns.empty() ? "default" : known->ns;
    known->first = state.env.now();
    state.recent.push_front(known);
    state.by_key[known->key] = state.recent.begin();
    if (state.recent.size() > kKnownMax) {
      state.by_key.erase(state.recent.back()->key);
      state.recent.pop_back();
    }
    return known;
  }

  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<EventRecorder> make_event_recorder(Env& env,
                                                   Client& client,
                                                   std::string component,
                                                   std::string host) {
  return std::make_unique<LoopEventRecorder>(
      std::make_shared<State>(env, client, std::move(component), std::move(host)));
}

}  // namespace muster::client
