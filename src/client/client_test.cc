#include "client/client.h"

#include <fmt/core.h>

#include "client/test_client.h"

namespace muster::client {
namespace {

TEST_F(ClientTest, ErrorsCarryWhatTheStatusSays) {
  run([&]() -> Task<void> {
    const auto got = co_await client_->get(resources::kPods, "ns", "nosuch");
    EXPECT_FALSE(got);
    if (got) co_return;
    EXPECT_EQ(got.error().code, Code::kNotFound);
    EXPECT_EQ(got.error().message, "not found");
    EXPECT_EQ(got.error().subject.kind, "pods");
    EXPECT_EQ(got.error().causes.size(), 1u);
    if (!got.error().causes.empty()) EXPECT_EQ(got.error().causes[0].field, "spec.x");
    EXPECT_EQ(server_.last_token, "Bearer secret");
  });
}

TEST_F(ClientTest, RetriesABusyServerThatNamesATime) {
  run([&]() -> Task<void> {
    server_.put_pod("a", 1);
    server_.busy = 1;
    const auto got = co_await client_->get(resources::kPods, "ns", "a");
    EXPECT_TRUE(got);
  });
}

TEST_F(ClientTest, ListsInPagesAndNamesKinds) {
  run([&]() -> Task<void> {
    for (int i = 0; i < 25; ++i) server_.put_pod(fmt::format("p{:02}", i), i);
    ListOptions options;
    options.limit = 10;
    const auto list = co_await client_->list(resources::kPods, options);
    if (!list) ADD_FAILURE() << list.error().message;
    if (!list) co_return;
    EXPECT_EQ(list->items.size(), 25u);
    EXPECT_EQ(list->resource_version, "25");
    EXPECT_EQ(json::string_at(list->items[3], "kind"), "Pod");
    EXPECT_EQ(json::string_at(list->items[3], "apiVersion"), "v1");
    EXPECT_EQ(server_.lists, 3);
  });
}

TEST_F(ClientTest, RequestsLookAsKubernetesWants) {
  run([&]() -> Task<void> {
    DeleteOptions options;
    options.grace_s = 0;
    options.uid = "u1";
    const auto removed = co_await client_->remove(resources::kPods, "ns", "a", options);
    EXPECT_FALSE(removed);
    EXPECT_EQ(server_.last_target, "/api/v1/namespaces/ns/pods/a");
    EXPECT_EQ(
        server_.last_body,
        R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background","preconditions":{"uid":"u1"}})");
    json::Value patch = json::Object{{"a", 1}};
    const auto patched = co_await client_->patch(
        resources::kPyTorchJobs, "ns", "j", "status", PatchType::kApply, std::move(patch));
    EXPECT_FALSE(patched);
    EXPECT_EQ(
        server_.last_target,
        "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/j/status?fieldManager=muster&force=true");
    EXPECT_EQ(server_.last_type, "application/apply-patch+yaml");
    EXPECT_EQ(resources::kNodes.path("ns"), "/api/v1/nodes");
    EXPECT_EQ(resources::kPods.path(""), "/api/v1/pods");
  });
}

TEST_F(ClientTest, SubmittedPostsSayHowTheyEnded) {
  run([&]() -> Task<void> {
    std::vector<std::string> ends;
    const auto submit = [&](const std::string& name) {
      const std::size_t before = ends.size();
      client_->submit(
          {resources::kPods,
           "ns",
           "",
           "",
           json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "ns"}}}}},
          [&ends, name](const Result<void>& done) {
            ends.push_back(name + (done ? " ok" : " " + done.error().message));
          });
      EXPECT_EQ(ends.size(), before) << "called inside of submit()";
    };
    submit("a");
    auto ok = co_await until([&] { return ends.size() == 1; });
    submit("a");
    ok = co_await until([&] { return ends.size() == 2; });
    // A server that names a time is asked again then.
    server_.busy = 2;
    const Duration begun = loop_.monotonic();
    submit("b");
    ok = co_await until([&] { return ends.size() == 3; });
    EXPECT_TRUE(ok);
    EXPECT_EQ(ends, (std::vector<std::string>{"a ok", "a exists", "b ok"}));
    EXPECT_GE(loop_.monotonic() - begun, 2s);
    EXPECT_EQ(server_.last_type, "application/json");
    EXPECT_EQ(server_.last_token, "Bearer secret");
    // The subresource of an object.
    client_->submit({resources::kPods,
                     "ns",
                     "a",
                     "binding",
                     json::Object{{"metadata", json::Object{{"name", "x"}}}}},
                    [&](const Result<void>&) { ends.clear(); });
    ok = co_await until([&] { return ends.empty(); });
    EXPECT_EQ(server_.last_target, "/api/v1/namespaces/ns/pods/a/binding");
  });
}

TEST_F(ClientTest, ARefusedTokenIsAskedForAnew) {
  ClientOptions renewing;
  renewing.token = "old";
  renewing.token_command.argv = {
      "/bin/sh", "-c", R"(echo '{"kind":"ExecCredential","status":{"token":"new"}}')"};
  std::vector<std::string> tokens;
  const auto http = [&](net::Request request, net::ResponseWriter& writer) -> Task<void> {
    tokens.emplace_back(request.headers.get("Authorization"));
    net::Response response;
    response.status = tokens.back() == "Bearer new" ? 200 : 401;
    response.body = "{}";
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  };
  const auto client = make_client(loop_, net::make_local_client(loop_, http, "me"), renewing);
  run([&]() -> Task<void> {
    const auto got = co_await client->get(resources::kPods, "ns", "a");
    EXPECT_TRUE(got);
  });
  EXPECT_EQ(tokens, (std::vector<std::string>{"Bearer old", "Bearer new"}));
}

}  // namespace
}  // namespace muster::client
