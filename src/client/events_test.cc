#include "client/events.h"

#include <fmt/core.h>

#include "client/informer.h"
#include "client/test_client.h"

namespace muster::client {
namespace {

TEST_F(ClientTest, EventsAreCountedUp) {
  const auto recorder = make_event_recorder(loop_, *client_, "muster-scheduler", "host-1");
  const json::Value pod =
      json::Object{{"kind", "Pod"},
                   {"apiVersion", "v1"},
                   {"metadata", json::Object{{"name", "p"}, {"namespace", "ns"}, {"uid", "u1"}}}};
  run([&]() -> Task<void> {
    recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    co_await recorder->flush();
    for (int i = 0; i < 4; ++i) recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    recorder->record_field(
        pod, "spec.containers{main}", "Normal", "Started", "Started container main");
    co_await recorder->flush();
    EXPECT_EQ(server_.creates, 2);
    EXPECT_EQ(server_.patches, 1);
    bool seen = false;
    for (const auto& [path, event] : server_.objects()) {
      EXPECT_TRUE(path.starts_with("/api/v1/namespaces/ns/events/p."));
      EXPECT_EQ(json::string_at(event, "source", "component"), "muster-scheduler");
      EXPECT_EQ(json::string_at(event, "reportingComponent"), "muster-scheduler");
      EXPECT_EQ(json::string_at(event, "involvedObject", "uid"), "u1");
      if (json::string_at(event, "reason") != "FailedScheduling") continue;
      seen = true;
      EXPECT_EQ(json::int_at(event, "count"), 5);
    }
    EXPECT_TRUE(seen);
    // Expired on the server: begins anew.
    server_.objects().clear();
    recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    co_await recorder->flush();
    EXPECT_EQ(server_.objects().size(), 1u);
    EXPECT_EQ(json::int_at(server_.objects().begin()->second, "count"), 1);
  });
}

TEST_F(ClientTest, EventsReadTheSameAsTextAndAsTree) {
  std::vector<json::Value> bodies;
  const auto handler = [&bodies](net::Request request, net::ResponseWriter& writer) -> Task<void> {
    if (const auto* tree = std::any_cast<ObjectPtr>(&request.value))
      bodies.push_back(**tree);
    else
      bodies.push_back(json::parse(request.body).value_or(json::Value()));
    net::Response response;
    response.status = 201;
    (void)co_await writer.send(std::move(response));
  };
  const json::Value pod = json::Object{
      {"kind", "Pod"},
      {"apiVersion", "v1"},
      {"metadata",
       json::Object{{"name", "p"}, {"namespace", "ns"}, {"uid", "u1"}, {"resourceVersion", "7"}}}};
  const json::Value node =
      json::Object{{"kind", "Node"}, {"metadata", json::Object{{"name", "n"}}}};
  for (const bool trees : {false, true}) {
    const auto client =
        make_client(loop_, net::make_local_client(loop_, handler, "me", trees), options());
    for (const std::string host : {"", "host-1"}) {
      const auto recorder = make_event_recorder(loop_, *client, "muster", host);
      run([&]() -> Task<void> {
        recorder->record(pod, "Normal", "Scheduled", "Successfully assigned \"ns/p\" to\nn");
        recorder->record_field(
            pod, "spec.containers{main}", "Normal", "Started", "Gestartet: \xc3\xa4");
        recorder->record(node, "Warning", "Silent", "");
        co_await recorder->flush();
      });
    }
  }
  ASSERT_EQ(bodies.size(), 12U);
  for (json::Value& body : bodies) {
    for (const auto* time : {"firstTimestamp", "lastTimestamp"})
      EXPECT_FALSE(json::string_at(body, time).empty());
    json::remove(body, {"metadata", "name"});  // holds the time
    json::remove(body, {"firstTimestamp"});
    json::remove(body, {"lastTimestamp"});
  }
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(json::dump(bodies[i]), json::dump(bodies[i + 6]));
}

}  // namespace
}  // namespace muster::client
