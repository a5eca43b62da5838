/// The two clients of one server, over HTTP and in its own process, beside each other: the same
/// calls have the same ends.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "client/events.h"
#include "client/watch_text.h"
#include "kube/meta.h"
#include "net/http/client.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "store/store.h"

namespace muster::apiserver {
namespace {

namespace r = kube::resources;
using client::Client;
using kube::PatchType;

json::Value yaml(std::string_view text) { return *json::parse_yaml_one(text); }

class InProcessTest : public ::testing::Test {
 public:
  InProcessTest() {
    store_ = std::move(*store::open(loop_, ":memory:"));
    ServerOptions options;
    options.token_key_pem = *net::make_signing_key();
    server_ = std::make_unique<Server>(loop_, *store_, std::move(options));
  }

  void run(const std::function<Task<void>()>& steps) { loop_.run_until_done(whole(steps)); }

  /// What became of a call, without what differs from one call to the next.
  static std::string end_of(const Result<json::Value>& answer) {
    if (!answer) return end_of(answer.error());
    json::Value value = *answer;
    for (const char* each :
         {"uid", "resourceVersion", "creationTimestamp", "managedFields", "name"})
      json::remove(value, {"metadata", each});
    return json::dump(value);
  }
  static std::string end_of(const Result<void>& answer) {
    return answer ? "ok" : end_of(answer.error());
  }
  static std::string end_of(const Error& error) {
    std::string out = fmt::format("{} {}", http_status_of(error.code), error.message);
    for (const Cause& cause : error.causes)
      out += fmt::format(" [{} {} {}]", cause.reason, cause.field, cause.message);
    return out;
  }

  net::Loop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> direct_, http_;

 private:
  Task<void> whole(const std::function<Task<void>()>& steps) {
    const auto started = co_await server_->start();
    EXPECT_TRUE(started.has_value());
    direct_ = server_->make_client("system:tester");
    client::ClientOptions options;
    options.user_agent = "tester";
    http_ = client::make_client(
        loop_, net::make_local_client(loop_, server_->handler(), "system:tester"), options);
    co_await steps();
    direct_.reset();
    http_.reset();
    co_await server_->stop();
    co_await store_->close();
  }
};

/// One life of a ConfigMap and a Deployment, with every verb and its refusals.
Task<std::vector<std::string>> life(Client& client, std::string ns) {
  std::vector<std::string> ends;
  const auto note = [&](auto answer) { ends.push_back(InProcessTest::end_of(answer)); };
  const auto made = co_await client.create(
      r::kConfigMaps, ns, yaml("{metadata: {name: a, labels: {app: x}}, data: {k: '1'}}"));
  note(made);
  const auto twice = co_await client.create(r::kConfigMaps, ns, yaml("{metadata: {name: a}}"));
  note(twice);
  const auto bad = co_await client.create(r::kConfigMaps, ns, yaml("{metadata: {name: 'A b'}}"));
  note(bad);
  const auto wrong = co_await client.create(
      r::kConfigMaps, ns, yaml("{kind: Secret, apiVersion: v1, metadata: {name: b}}"));
  note(wrong);
  const auto missing = co_await client.get(r::kConfigMaps, ns, "none");
  note(missing);
  const auto unknown = co_await client.get({"", "v1", "nonsense", "Nonsense"}, ns, "none");
  ends.push_back(unknown ? "?" : std::to_string(http_status_of(unknown.error().code)));
  json::Value stale = made.value_or(json::Value());
  json::make(stale, {"metadata", "resourceVersion"}) = "1";
  const auto conflict = co_await client.update(r::kConfigMaps, std::move(stale));
  note(conflict);
  const auto merged = co_await client.patch(
      r::kConfigMaps, ns, "a", "", PatchType::kMerge, yaml("{data: {k: null, l: '2'}}"));
  note(merged);
  const auto picked = co_await client.patch(
      r::kConfigMaps, ns, "a", "", PatchType::kJson, yaml("[{op: remove, path: /data/none}]"));
  note(picked);
  const auto applied = co_await client.patch(
      r::kConfigMaps,
      ns,
      "a",
      "",
      PatchType::kApply,
      yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {m: '3'}}"));
  note(applied);
  ends.push_back(
      applied ? json::text_at(json::array_at(*applied, "metadata", "managedFields")[0], "manager")
              : "");
  const auto scaled = co_await client.patch(
      r::kDeployments, ns, "none", "scale", PatchType::kMerge, yaml("{spec: {replicas: 2}}"));
  note(scaled);
  const auto custom = co_await client.patch(
      r::kQueues, "", "default", "", PatchType::kStrategic, yaml("{spec: {weight: 2}}"));
  note(custom);
  client::ListOptions selected{.ns = ns, .label_selector = "app=x"};
  const auto some = co_await client.list(r::kConfigMaps, selected);
  ends.push_back(
      some ? fmt::format("{} {}", some->items.size(), json::string_at(some->items[0], "kind"))
           : InProcessTest::end_of(some.error()));
  selected.label_selector = "a b c";
  const auto none = co_await client.list(r::kConfigMaps, selected);
  ends.push_back(none ? "?" : InProcessTest::end_of(none.error()));
  const auto kept = co_await client.remove(r::kConfigMaps, ns, "a", {.uid = "another"});
  ends.push_back(kept ? "?" : std::to_string(http_status_of(kept.error().code)));
  const auto gone = co_await client.remove(r::kConfigMaps, ns, "a", {});
  note(gone);
  const auto evicted = co_await client.post_subresource(
      r::kPods, ns, "none", "eviction", yaml("{metadata: {name: none}}"));
  note(evicted);
  const auto status = co_await client.update_status(
      r::kPods, yaml(fmt::format("{{metadata: {{name: none, namespace: {}}}}}", ns)));
  note(status);
  const auto version = co_await client.raw("GET", "/healthz", nullptr);
  note(version);
  co_return ends;
}

TEST_F(InProcessTest, TheSameCallsHaveTheSameEndsAsOverHttp) {
  run([this]() -> Task<void> {
    const auto direct = co_await life(*direct_, "default");
    const auto http = co_await life(*http_, "default");
    EXPECT_EQ(direct.size(), http.size());
    for (std::size_t i = 0; i < std::min(direct.size(), http.size()); ++i)
      EXPECT_EQ(direct[i], http[i]) << "call " << i;
  });
}

/// Statuses of one pod. `whole`: each patch names the pod, too, and is handled as one that may change
/// all of it.
Task<std::vector<std::string>> statuses(Client& scheduler, Client& agent, bool whole) {
  std::vector<std::string> ends;
  const std::string name = whole ? "whole" : "alone";
  json::Value pod =
      yaml("{metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: i}]}}");
  json::make(pod, {"metadata", "name"}) = name;
  const auto made = co_await scheduler.create(r::kPods, "default", std::move(pod));
  const auto bound = co_await scheduler.post_subresource(
      r::kPods, "default", name, "binding", yaml("{target: {kind: Node, name: node-0}}"));
  EXPECT_TRUE(made && bound) << InProcessTest::end_of(made) << InProcessTest::end_of(bound);
  if (!made) co_return ends;
  for (const std::string_view status : {
           "{phase: Running, podIPs: [{ip: 10.0.0.1}], startTime: '2026-11-15T12:14:33Z'}",
           "{conditions: [{type: Ready, status: 'True', reason: null}, {type: PodScheduled}]}",
           "{conditions: [{type: Ready, status: 'False'}], phase: Failed}",
           "{conditions: [{type: Ready, status: 'False'}], phase: Failed}",
           "{podIPs: [{$patch: delete, ip: 10.0.0.1}], message: '', hostIP: 1.2.3.4}",
           "{phase: Failed, nonsense: 1}",
           "{phase: 7}",
           "null",
       }) {
    json::Value patch = json::Object{{"status", yaml(status)}};
    json::make(patch, {"metadata", "uid"}) = json::at(*made, "metadata", "uid");
    if (whole) json::make(patch, {"metadata", "name"}) = name;
    const auto answer = co_await agent.patch(
        r::kPods, "default", name, "status", PatchType::kStrategic, std::move(patch));
    std::string end = InProcessTest::end_of(answer);
    // What is not said of a wrong value: which pod had it.
    if (!answer) end = end.substr(0, 12) + end.substr(std::min(end.size(), end.rfind("json:")));
    if (answer) {
      for (const json::Value& entry : json::array_at(*answer, "metadata", "managedFields"))
        end += fmt::format(
            "\n{} {}", json::text_at(entry, "manager"), json::text_at(entry, "fieldsV1"));
    }
    ends.push_back(std::move(end));
  }
  json::Value other = yaml("{metadata: {uid: another}, status: {phase: Running}}");
  if (whole) json::make(other, {"metadata", "name"}) = name;
  const auto refused = co_await agent.patch(
      r::kPods, "default", name, "status", PatchType::kMerge, std::move(other));
  ends.push_back(refused ? "?" : refused.error().causes.at(0).message);
  co_return ends;
}

TEST_F(InProcessTest, AStatusAloneIsWrittenAsOneWithTheRest) {
  run([&]() -> Task<void> {
    const auto scheduler = server_->make_client("system:scheduler");
    const auto alone = co_await statuses(*scheduler, *direct_, false);
    const auto whole = co_await statuses(*scheduler, *direct_, true);
    EXPECT_EQ(alone.size(), 9U);
    // The volume of the token has a random name.
    const auto plain = [](std::vector<std::string> ends) {
      for (std::string& end : ends) {
        for (auto at = end.find("kube-api-access-"); at != std::string::npos;
             at = end.find("kube-api-access-", at + 1))
          end.replace(at + 16, 5, "?????");
      }
      return ends;
    };
    EXPECT_EQ(plain(alone), plain(whole));
  });
}

TEST_F(InProcessTest, AnObjectThatJsonCannotHoldIsRefused) {
  run([this]() -> Task<void> {
    json::Value object = yaml("{metadata: {name: a}, data: {}}");
    json::make(object, {"data", "k"}) = "\xff\xfe";
    const auto made = co_await direct_->create(r::kConfigMaps, "default", std::move(object));
    EXPECT_FALSE(made);
    if (!made) EXPECT_EQ(made.error().code, Code::kBadRequest);
  });
}

TEST_F(InProcessTest, AWatchBeginsWithWhatThereIsAndTellsWhatChanges) {
  run([this]() -> Task<void> {
    for (const char* name : {"a", "b"})
      (void)co_await direct_->create(
          r::kConfigMaps, "default", yaml(fmt::format("{{metadata: {{name: {}}}}}", name)));
    const auto stop = std::make_shared<client::StopSource>();
    std::vector<std::string> seen;
    const auto changed = loop_.make_signal();
    const auto ended = loop_.make_signal();
    const auto watching = [&]() -> Task<void> {
      client::WatchOptions options;
      options.list.ns = "default";
      options.list.field_selector = "metadata.name!=kube-root-ca.crt";
      options.list.stop = stop;
      options.initial_events = true;
      const auto end = co_await direct_->watch(
          r::kConfigMaps, std::move(options), [&](const client::WatchEvent& event) {
            seen.push_back(fmt::format("{} {}",
                                       client::is_initial_end(event) ? "END" : event.type,
                                       kube::name_of(*event.object)));
            changed->notify();
            return true;
          });
      EXPECT_TRUE(end.has_value());
      ended->notify();
    };
    loop_.spawn(watching());
    while (seen.size() < 3) co_await changed->wait(std::chrono::seconds(10));
    (void)co_await direct_->remove(r::kConfigMaps, "default", "a", {});
    while (seen.size() < 4) co_await changed->wait(std::chrono::seconds(10));
    EXPECT_EQ(seen, (std::vector<std::string>{"ADDED a", "ADDED b", "END ", "DELETED a"}));
    stop->stop();
    const bool stopped = co_await ended->wait(std::chrono::seconds(10));
    EXPECT_TRUE(stopped);
  });
}

TEST_F(InProcessTest, AWatchOfTheForgottenPastIsTold) {
  run([this]() -> Task<void> {
    client::WatchOptions options;
    options.list.resource_version = "999999999";
    options.initial_events = true;
    const auto end = co_await direct_->watch(
        r::kConfigMaps, std::move(options), [](const client::WatchEvent&) { return true; });
    EXPECT_FALSE(end);
    if (!end) EXPECT_EQ(http_status_of(end.error().code), 504);
  });
}

TEST_F(InProcessTest, EventsReadTheSameAsTextAndAsTree) {
  const json::Value pod = yaml(
      "{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: default, uid: u1, resourceVersion: '7'}}");
  const json::Value node = yaml("{kind: Node, apiVersion: v1, metadata: {name: node-1}}");
  run([&]() -> Task<void> {
    std::vector<std::vector<std::string>> told;
    for (Client* each : {direct_.get(), http_.get()}) {
      for (const std::string host : {"", "host-1"}) {
        const auto recorder = client::make_event_recorder(loop_, *each, "muster", host);
        recorder->record(pod, "Normal", "Scheduled", "Successfully assigned \"ns/p\" to\nn");
        recorder->record_field(
            pod, "spec.containers{main}", "Normal", "Started", "Gestartet: \xc3\xa4");
        recorder->record(node, "Warning", "Silent", "no heartbeat");
        co_await recorder->flush();
      }
      const auto events = co_await direct_->list(r::kEvents, {});
      auto& texts = told.emplace_back();
      for (json::Value event : events ? events->items : std::vector<json::Value>()) {
        for (const auto* time : {"firstTimestamp", "lastTimestamp"}) {
          EXPECT_FALSE(json::string_at(event, time).empty());
          json::remove(event, {time});
        }
        const std::string name = json::text_at(event, "metadata", "name");
        texts.push_back(end_of(Result<json::Value>(event)));
        (void)co_await direct_->remove(
            r::kEvents, std::string(kube::namespace_of(event)), name, {});
      }
      std::sort(texts.begin(), texts.end());
      EXPECT_EQ(texts.size(), 6U);
    }
    EXPECT_EQ(told[0], told[1]);
  });
}

}  // namespace
}  // namespace muster::apiserver
