/// An API server in this process for the tests of attacks: it is called as the cluster's admin, as
/// a component of Muster, or as somebody with a token.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "json/json.h"
#include "net/http/client.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "store/store.h"

namespace muster::apiserver {

struct Answer {
  int status = 0;
  json::Value body;
  std::string text;
  std::vector<std::string> warnings;
  [[nodiscard]] std::string message() const { return json::text_at(body, "message"); }
};

struct Ask {
  std::string method = "GET";
  std::string target;
  std::string body;
  std::string type = "application/json";
  /// A bearer token; empty: `component` asks, one of Muster's own.
  std::string token;
  std::string component = "tester";
  std::vector<std::pair<std::string, std::string>> headers;
  /// Called when the answer is there, before the test reads it.
  std::function<void()> answered;
};

class Cluster : public ::testing::Test {
 public:
  using Steps = std::function<Task<void>(Cluster&)>;

  /// Starts the server, runs the steps, stops it. `change` may set options before.
  void run(const Steps& steps, const std::function<void(ServerOptions&)>& change = nullptr) {
    auto opened = store::open(loop_, ":memory:");
    store_ = std::move(*opened);
    ServerOptions options;
    signing_key_ = *net::make_signing_key();
    options.token_key_pem = signing_key_;
    options.admin_token = "admin";
    if (change) change(options);
    server_ = std::make_unique<Server>(loop_, *store_, std::move(options));
    loop_.run_until_done(run_steps(*this, steps));
  }

  Task<Answer> ask(Ask wanted) {
    net::Request request;
    request.method = wanted.method;
    request.target = wanted.target;
    if (!wanted.type.empty()) request.headers.set("Content-Type", wanted.type);
    for (const auto& [name, value] : wanted.headers) request.headers.add(name, value);
    request.body = std::move(wanted.body);
    net::Handler handler = server_->handler();
    if (!wanted.token.empty()) {
      request.headers.set("Authorization", "Bearer " + wanted.token);
      // As from a socket: nobody vouches for the caller.
      handler = [inner = server_->handler()](net::Request given, net::ResponseWriter& writer) {
        given.peer = {};
        return inner(std::move(given), writer);
      };
    }
    const auto client = net::make_local_client(loop_, handler, wanted.component);
    const auto response = co_await client->request(std::move(request));
    if (wanted.answered) wanted.answered();
    Answer answer;
    if (!response) {
      ADD_FAILURE() << response.error().message;
      co_return answer;
    }
    answer.status = response->status;
    answer.text = response->body;
    for (const auto& warning : response->headers.all("Warning"))
      answer.warnings.emplace_back(warning);
    auto parsed = json::parse(response->body);
    if (parsed) answer.body = std::move(*parsed);
    co_return answer;
  }

  Task<Answer> admin(std::string method,
                     std::string target,
                     std::string body = "",
                     std::string type = "application/json") {
    Ask wanted;
    wanted.method = std::move(method);
    wanted.target = std::move(target);
    wanted.body = std::move(body);
    wanted.type = std::move(type);
    wanted.token = "admin";
    Answer answer = co_await ask(std::move(wanted));
    co_return answer;
  }

  /// Makes the namespace and in it a service account, which is given the cluster role there (none
  /// for an empty name); returns its token.
  Task<std::string> account(std::string ns, std::string name, std::string role) {
    (void)co_await admin(
        "POST", "/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns));
    const std::string accounts = "/api/v1/namespaces/" + ns + "/serviceaccounts";
    const Answer made =
        co_await admin("POST", accounts, fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    EXPECT_EQ(made.status, 201) << made.text;
    if (!role.empty()) {
      const Answer bound = co_await admin(
          "POST",
          "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings",
          fmt::format(
              R"({{"metadata":{{"name":"{0}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"{1}"}},"subjects":[{{"kind":"ServiceAccount","name":"{0}","namespace":"{2}"}}]}})",
              name,
              role,
              ns));
      EXPECT_EQ(bound.status, 201) << bound.text;
    }
    const Answer token = co_await admin("POST", accounts + "/" + name + "/token", "{}");
    EXPECT_EQ(token.status, 201) << token.text;
    co_return json::text_at(token.body, "status", "token");
  }

  /// The server and all that it has open go.
  void release() { server_.reset(); }

  net::Loop& loop() { return loop_; }
  std::unique_ptr<client::Client> make_client(std::string user) {
    return server_->make_client(std::move(user));
  }
  [[nodiscard]] const std::string& signing_key() const { return signing_key_; }

 private:
  static Task<void> run_steps(Cluster& self, const Steps& steps) {
    const auto started = co_await self.server_->start();
    EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().message);
    co_await steps(self);
    co_await self.server_->stop();
    co_await self.store_->close();
  }

  net::Loop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Server> server_;
  std::string signing_key_;
};

}  // namespace muster::apiserver
