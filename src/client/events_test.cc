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

}  // namespace
}  // namespace muster::client
