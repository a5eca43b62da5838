/// How fast net/ moves requests and streams. Server and client each have a loop on a thread of
/// their own, over loopback; the in-process rows use one loop.
///
///   net_bench [seconds per row]
#include <fmt/core.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "net/http/client.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"

namespace {

using namespace muster;
using namespace muster::net;

constexpr int kConcurrent = 32;
constexpr std::size_t kBodyBytes = 2048;  // a pod
constexpr std::size_t kLineBytes = 1024;  // a watch event

Task<void> handle(Request request, ResponseWriter& writer) {
  static const std::string body(kBodyBytes, 'p');
  static const auto line =
      std::make_shared<const std::string>(std::string(kLineBytes - 1, 'w') + "\n");
  Response response;
  response.headers.set("Content-Type", "application/json");
  if (request.target != "/watch") {
    response.body = body;
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
    co_return;
  }
  auto ok = co_await writer.start(std::move(response));
  while (ok && !writer.closed()) ok = co_await writer.write(line);
}

struct Count {
  std::uint64_t done = 0;
  std::uint64_t bytes = 0;
  int running = 0;
  bool stop = false;
};

Task<void> ask(Client& client, Count& count) {
  ++count.running;
  while (!count.stop) {
    Request request;
    request.method = "GET";
    request.target = "/api/v1/namespaces/default/pods/web-0";
    const auto response = co_await client.request(std::move(request));
    if (!response) {
      fmt::print(stderr, "net_bench: {}\n", response.error().message);
      std::exit(1);
    }
    ++count.done;
    count.bytes += response->body.size();
  }
  --count.running;
}

Task<void> follow(Client& client, Count& count) {
  ++count.running;
  Request request;
  request.method = "GET";
  request.target = "/watch";
  auto stream = co_await client.stream(std::move(request));
  while (stream && !count.stop) {
    const auto piece = co_await (*stream)->read();
    if (!piece || piece->empty()) break;
    count.bytes += piece->size();
  }
  --count.running;
}

using Worker = Task<void> (*)(Client&, Count&);

void measure(
    const char* name, Loop& loop, Client& client, Worker worker, int concurrent, int seconds) {
  Count count;
  const auto begun = loop.monotonic();
  loop.run_until_done([](Loop& l, Client& c, Count& n, Worker w, int many, int s) -> Task<void> {
    for (int i = 0; i < many; ++i) l.spawn(w(c, n));
    co_await l.sleep(std::chrono::seconds(s));
    n.stop = true;
    for (int i = 0; i < 500 && n.running > 0; ++i) co_await l.sleep(std::chrono::milliseconds(10));
  }(loop, client, count, worker, concurrent, seconds));
  const double took = static_cast<double>((loop.monotonic() - begun).count()) / 1e6;
  const bool lines = count.done == 0;
  const double each = static_cast<double>(lines ? count.bytes / kLineBytes : count.done);
  fmt::print("{:34} {:>10.0f} {}/s {:>8.1f} MB/s\n",
             name,
             each / took,
             lines ? "events  " : "requests",
             static_cast<double>(count.bytes) / took / 1e6);
}

void over_sockets(const char* kind, ServerOptions options, const std::string& ca, int seconds) {
  const bool tls = !options.certificate_pem.empty();
  Loop server_loop, client_loop;
  auto server = listen(server_loop, std::move(options), handle);
  if (!server) std::exit(1);
  std::thread thread([&server_loop] { server_loop.run(); });
  ClientOptions client_options;
  client_options.url = fmt::format("{}://127.0.0.1:{}", tls ? "https" : "http", (*server)->port());
  client_options.ca_pem = ca;
  auto client = make_client(client_loop, std::move(client_options));
  if (!client) std::exit(1);
  measure(fmt::format("{}, {} connections", kind, kConcurrent).c_str(),
          client_loop,
          **client,
          ask,
          kConcurrent,
          seconds);
  measure(fmt::format("{}, 1 watch", kind).c_str(), client_loop, **client, follow, 1, seconds);
  measure(
      fmt::format("{}, 100 watches", kind).c_str(), client_loop, **client, follow, 100, seconds);
  client->reset();
  server_loop.stop();
  thread.join();
  server_loop.run_until_done([](Server& s) -> Task<void> { co_await s.stop(); }(**server));
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 3;
  over_sockets("HTTP", ServerOptions{}, "", seconds);

  Loop loop;
  const auto ca = make_ca("bench", loop.now());
  CertificateRequest request;
  request.common_name = "bench";
  request.addresses = {"127.0.0.1"};
  request.server = true;
  const auto pair = make_certificate(*ca, request, loop.now());
  ServerOptions options;
  options.certificate_pem = pair->certificate_pem;
  options.key_pem = pair->key_pem;
  over_sockets("HTTPS", options, ca->certificate_pem, seconds);

  const auto local = make_local_client(loop, handle, "bench");
  measure(
      "in-process",
      loop,
      *local,
      [](Client& client, Count& count) -> Task<void> {
        // Never suspends by itself, so it must look at the clock.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        ++count.running;
        while (std::chrono::steady_clock::now() < end) {
          Request get;
          get.method = "GET";
          get.target = "/api/v1/namespaces/default/pods/web-0";
          const auto response = co_await client.request(std::move(get));
          ++count.done;
          count.bytes += response->body.size();
        }
        --count.running;
      },
      1,
      1);
  measure("in-process, 1 watch", loop, *local, follow, 1, seconds);
  return 0;
}
