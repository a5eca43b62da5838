/// A TLS server whose answers stay open and are written to from outside, as watches are, and a
/// client to read them. For tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "net/http/client.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"

namespace muster::net {

struct TestStreams {
  using Listen = Result<std::unique_ptr<Server>> (*)(Loop&, ServerOptions, Handler);
  /// What keeps an answer open. The writer is among `writers` as long as it runs.
  using Hold = std::function<Task<void>(ResponseWriter&)>;

  Loop loop;
  std::set<ResponseWriter*> writers;
  std::unique_ptr<Signal> changed = loop.make_signal();  // a writer came or went
  /// For a hold to wait on; here, since holds end with the server.
  std::unique_ptr<Signal> done = loop.make_signal();
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;

  TestStreams(Listen listen_as, Hold hold) : hold_(std::move(hold)) {
    const auto ca = make_ca("test", loop.now());
    CertificateRequest wanted;
    wanted.common_name = "server";
    wanted.addresses = {"127.0.0.1"};
    wanted.server = true;
    const auto pair = make_certificate(*ca, wanted, loop.now());
    ServerOptions options;
    options.certificate_pem = pair->certificate_pem;
    options.key_pem = pair->key_pem;
    server = std::move(*listen_as(
        loop, options, [this](Request, ResponseWriter& writer) { return answer(writer); }));
    ClientOptions to;
    to.url = "https://127.0.0.1:" + std::to_string(server->port());
    to.ca_pem = ca->certificate_pem;
    client = std::move(*make_client(loop, to));
  }
  ~TestStreams() {
    loop.run_until_done([](TestStreams& s) -> Task<void> { co_await s.server->stop(); }(*this));
  }
  TestStreams(const TestStreams&) = delete;

  /// That many more answers, whose handlers have begun.
  Task<std::vector<std::unique_ptr<ResponseStream>>> open(std::size_t count) {
    std::vector<std::unique_ptr<ResponseStream>> streams;
    for (std::size_t i = 0; i < count; ++i) {
      Request request;
      request.method = "GET";
      request.target = "/";
      auto stream = co_await client->stream(std::move(request));
      EXPECT_TRUE(stream);
      if (stream) streams.push_back(std::move(*stream));
    }
    while (writers.size() < count) co_await changed->wait(Duration::zero());
    co_return streams;
  }

 private:
  Task<void> answer(ResponseWriter& writer) {
    Response head;
    const auto started = co_await writer.start(std::move(head));
    if (!started) co_return;
    writers.insert(&writer);
    changed->notify();
    co_await hold_(writer);
    writers.erase(&writer);
    changed->notify();
  }

  Hold hold_;
};

inline Task<std::string> read_bytes(ResponseStream& stream, std::size_t count) {
  std::string text;
  while (text.size() < count) {
    const auto piece = co_await stream.read();
    if (!piece || piece->empty()) break;
    text += *piece;
  }
  co_return text;
}

}  // namespace muster::net
