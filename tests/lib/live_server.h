// An API server in the test's own process, with a client for it: for behaviour of a room that shows
// only when a server answers.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "apiserver/server.h"
#include "client/client.h"
#include "client/informer.h"
#include "net/http/client.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "store/store.h"

namespace muster {

class LiveServer {
 public:
  LiveServer() {
    char path[] = "/tmp/live-server-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~LiveServer() { std::filesystem::remove_all(folder_); }

  net::Loop loop;
  net::Handler handler;                    // the server's own: a test may put something before it
  std::unique_ptr<client::Client> client;  // of one who may do everything

  /// Another one, through a handler that sees each request and its answer as text.
  std::unique_ptr<client::Client> client_of(net::Handler through) {
    return client::make_client(loop,
                               net::make_local_client(loop, std::move(through), "system:muster"),
                               client::ClientOptions{});
  }

  /// Runs `scenario` while the server is up.
  void run(std::function<Task<void>()> scenario) {
    loop.run_until_done(up_during(std::move(scenario)));
  }

  /// From now on `until` looks again whenever something of this resource changes.
  client::Informer& follow(const client::Resource& resource) {
    auto& informer = informers_->get(resource);
    client::InformerHandlers handlers;
    handlers.on_change = [this](const auto&, const auto&) { changed_->notify(); };
    informer.add_handlers(std::move(handlers));
    informer.start();
    return informer;
  }

  /// Waits until `holds`. What is followed wakes it; the rest, counters of the room under test, is
  /// looked at every few milliseconds.
  Task<void> until(std::string what, std::function<bool()> holds) {
    const auto end = loop.monotonic() + std::chrono::seconds(20);
    while (!holds()) {
      if (loop.monotonic() > end) {
        ADD_FAILURE() << "waited in vain until " << what;
        co_return;
      }
      co_await changed_->wait(std::chrono::milliseconds(5));
    }
  }

  Task<void> create(const client::Resource& resource, std::string yaml) {
    auto object = json::parse_yaml_one(yaml);
    const auto made =
        co_await client->create(resource, resource.namespaced ? "default" : "", std::move(*object));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
  }

  Task<void> bind(std::string pod, std::string node) {
    json::Value body = json::Object{{"apiVersion", "v1"},
                                    {"kind", "Binding"},
                                    {"metadata", json::Object{{"name", pod}}},
                                    {"target", json::Object{{"kind", "Node"}, {"name", node}}}};
    const auto done = co_await client->post_subresource(
        client::resources::kPods, "default", pod, "binding", std::move(body));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }

 private:
  Task<void> up_during(std::function<Task<void>()> scenario) {
    auto store = store::open(loop, folder_ + "/db");
    if (!store) {
      ADD_FAILURE() << store.error().message;
      co_return;
    }
    apiserver::ServerOptions options;
    const auto key = net::make_signing_key();
    if (key) options.token_key_pem = *key;
    apiserver::Server server(loop, **store, std::move(options));
    const auto started = co_await server.start();
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    handler = server.handler();
    client = server.make_client("system:muster");
    changed_ = loop.make_signal();
    informers_ = std::make_unique<client::Informers>(loop, *client);
    co_await scenario();
    co_await informers_->stop_all();
    informers_.reset();
    co_await server.stop();
    client.reset();
    co_await (*store)->close();
  }

  std::string folder_;
  std::unique_ptr<Signal> changed_;
  std::unique_ptr<client::Informers> informers_;
};

}  // namespace muster
