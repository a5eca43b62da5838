#include "client/events.h"

#include <fmt/core.h>

#include <deque>
#include <list>
#include <map>

#include "base/log.h"
#include "kube/meta.h"

namespace muster::client {
namespace {

/// Nanoseconds, so that events sorted by name are sorted by time, as client-go names them; the last three digits only
/// keep two recorders apart.
std::uint64_t event_stamp(Env& env) { return static_cast<std::uint64_t>(env.now().us) * 1000 + env.random() % 1000; }

constexpr std::size_t kQueueMax = 20'000;  // the Scheduled events of a large gang
constexpr std::size_t kKnownMax = 4'096;
constexpr std::size_t kMessageBytesMax = 1'024;

/// One event that exists (or will): the same object, reason and message only count it up.
struct Known {
  std::string key;
  json::Value object;  // as it is created
  std::string ns, name;
  int count = 0;
  Time last;
  bool created = false;  // the server has it
  bool queued = false;
};
using KnownPtr = std::shared_ptr<Known>;

struct State {
  State(Env& e, Client& c, std::string component_name, std::string host_name)
      : env(e), client(c), component(std::move(component_name)), host(std::move(host_name)), idle(env.make_signal()) {}
  Env& env;
  Client& client;
  std::string component, host;
  std::deque<KnownPtr> queue;
  std::list<KnownPtr> recent;  // most recently used first
  std::map<std::string, std::list<KnownPtr>::iterator> by_key;
  bool writing = false;
  bool ended = false;
  std::uint64_t dropped = 0;
  std::unique_ptr<Signal> idle;
};

std::string cut(std::string text) {
  if (text.size() <= kMessageBytesMax) return text;
  auto end = kMessageBytesMax - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  text.resize(end);
  return text + "...";
}

json::Value make_event(const State& state, const json::Value& object, const std::string& field_path, const std::string& type,
                       const std::string& reason, const std::string& message, const std::string& name, const std::string& ns) {
  json::Object involved{{"kind", json::text(json::at(object, "kind"))}};
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) involved[key] = value;
  };
  add("namespace", kube::namespace_of(object));
  add("name", kube::name_of(object));
  add("uid", kube::uid_of(object));
  add("apiVersion", json::as_string(json::at(object, "apiVersion")));
  add("resourceVersion", kube::resource_version_of(object));
  add("fieldPath", field_path);
  json::Object source{{"component", state.component}};
  if (!state.host.empty()) source["host"] = state.host;
  return json::Object{{"kind", "Event"},
                      {"apiVersion", "v1"},
                      {"metadata", json::Object{{"name", name}, {"namespace", ns}}},
                      {"involvedObject", std::move(involved)},
                      {"reason", reason},
                      {"message", message},
                      {"source", std::move(source)},
                      {"type", type},
                      {"eventTime", nullptr},
                      {"reportingComponent", state.component},
                      {"reportingInstance", state.host}};
}

/// Creates the event, or counts up the one that exists.
Task<void> write_one(std::shared_ptr<State> state, KnownPtr known) {
  const auto last = format_time(known->last);
  if (known->created) {
    json::Value patch = json::Object{{"count", known->count}, {"lastTimestamp", last}};
    const auto patched = co_await state->client.patch(resources::kEvents, known->ns, known->name, "", PatchType::kMerge, std::move(patch), Answer::kNone);
    if (patched) co_return;
    if (patched.error().code != Code::kNotFound) {
      log::debug("client", "event not counted up name={} error=\"{}\"", known->name, patched.error().message);
      co_return;
    }
    // Events expire; a new one under a new name begins.
    known->created = false;
    known->name = fmt::format("{}.{:016x}", json::text(json::at(known->object, "involvedObject", "name")), event_stamp(state->env));
    json::make(known->object, {"metadata", "name"}) = known->name;
    known->count = 1;
    json::make(known->object, {"firstTimestamp"}) = last;
  }
  json::make(known->object, {"count"}) = known->count;
  json::make(known->object, {"lastTimestamp"}) = last;
  json::Value copy = known->object;
  const auto created = co_await state->client.create(resources::kEvents, known->ns, std::move(copy), Answer::kNone);
  if (created) {
    known->created = true;
  } else {
    // An event is a courtesy: a namespace on its way out refuses it, and nothing depends on it.
    log::debug("client", "event not written name={} error=\"{}\"", known->name, created.error().message);
  }
}

Task<void> write_all(std::shared_ptr<State> state) {
  while (!state->queue.empty() && !state->ended) {
    const auto known = state->queue.front();
    state->queue.pop_front();
    known->queued = false;
    co_await write_one(state, known);
  }
  state->writing = false;
  state->idle->notify();
}

class LoopEventRecorder final : public EventRecorder {
 public:
  explicit LoopEventRecorder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~LoopEventRecorder() override { state_->ended = true; }

  void record(const json::Value& object, std::string type, std::string reason, std::string message) override {
    record_field(object, "", std::move(type), std::move(reason), std::move(message));
  }

  void record_field(const json::Value& object, std::string field_path, std::string type, std::string reason, std::string message) override {
    message = cut(std::move(message));
    auto key = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", json::as_string(json::at(object, "kind")), kube::namespace_of(object), kube::name_of(object),
                           kube::uid_of(object), field_path, type, reason, message);
    const auto known = find_or_make(std::move(key), object, field_path, type, reason, message);
    ++known->count;
    known->last = state_->env.now();
    if (known->queued) return;
    if (state_->queue.size() >= kQueueMax) {
      state_->queue.front()->queued = false;
      state_->queue.pop_front();
      if (state_->dropped++ % 1000 == 0) log::warn("client", "events are dropped, the server is too slow dropped={}", state_->dropped);
    }
    known->queued = true;
    state_->queue.push_back(known);
    if (state_->writing) return;
    state_->writing = true;
    state_->env.spawn(write_all(state_));
  }

  Task<void> flush() override {
    const auto state = state_;
    while (state->writing) co_await state->idle->wait(Duration::zero());
  }

 private:
  KnownPtr find_or_make(std::string key, const json::Value& object, const std::string& field_path, const std::string& type,
                        const std::string& reason, const std::string& message) {
    auto& state = *state_;
    const auto at = state.by_key.find(key);
    if (at != state.by_key.end()) {
      state.recent.splice(state.recent.begin(), state.recent, at->second);
      return *at->second;
    }
    auto known = std::make_shared<Known>();
    known->key = std::move(key);
    known->name = fmt::format("{}.{:016x}", kube::name_of(object), event_stamp(state.env));
    const auto ns = kube::namespace_of(object);
    known->ns = ns.empty() ? "default" : std::string(ns);
    known->object = make_event(state, object, field_path, type, reason, message, known->name, known->ns);
    json::make(known->object, {"firstTimestamp"}) = format_time(state.env.now());
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

std::unique_ptr<EventRecorder> make_event_recorder(Env& env, Client& client, std::string component, std::string host) {
  return std::make_unique<LoopEventRecorder>(std::make_shared<State>(env, client, std::move(component), std::move(host)));
}

}  // namespace muster::client
