#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <memory>
#include <thread>

#include "base/test_turns.h"
#include "net/http/client.h"
#include "net/http/front.h"
#include "net/http/http.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;

// ----------------------------------------------------------------------------------------- Targets

TEST(Target, IsSplitAndDecoded) {
  const auto target =
      parse_target("/api/v1/pods?labelSelector=a%3Db%2Cc&watch=true&x=1+2&x=3&flag");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->path, "/api/v1/pods");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"api", "v1", "pods"}));
  EXPECT_EQ(target->get("labelSelector"), "a=b,c");
  EXPECT_EQ(target->all("x"), (std::vector<std::string>{"1 2", "3"}));
  EXPECT_TRUE(target->has("flag"));
  EXPECT_FALSE(target->has("fla"));
  EXPECT_EQ(target->get("none"), "");
}

TEST(Target, KeepsTrailingSlashInPathButNotInSegments) {
  const auto target = parse_target("/version/");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/version/");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"version"}));
  EXPECT_TRUE(parse_target("/")->segments.empty());
}

TEST(Target, RefusesTricks) {
  for (const std::string_view text : {"",
                                      "api",
                                      "/a/../b",
                                      "/a/%2e%2e/b",
                                      "/a/%2E./b",
                                      "/./a",
                                      "/a%2fb",
                                      "/a%00b",
                                      "/a%0ab",
                                      "/a%zz",
                                      "/a%2",
                                      "/a?x=%",
                                      "/a?%00=1",
                                      "/a#b",
                                      "http://x/a"}) {
    const auto target = parse_target(text);
    EXPECT_FALSE(target) << text;
    if (!target) EXPECT_EQ(target.error().code, Code::kBadRequest);
  }
}

TEST(Headers, CompareNamesWithoutCase) {
  Headers headers;
  headers.add("Accept", "a");
  headers.add("ACCEPT", "b");
  EXPECT_EQ(headers.get("accept"), "a");
  EXPECT_EQ(headers.all("accept").size(), 2u);
  headers.set("accept", "c");
  EXPECT_EQ(headers.all("Accept"), (std::vector<std::string_view>{"c"}));
}

// ------------------------------------------------------------------------- Tokens and certificates

TEST(Token, HoldsOnlyWithItsOwnKeyAndText) {
  const auto key = make_signing_key();
  const auto other = make_signing_key();
  ASSERT_TRUE(key && other);
  const auto token = sign_token(*key, R"({"sub":"alice"})");
  ASSERT_TRUE(token);
  const auto payload = verify_token(*key, *token);
  ASSERT_TRUE(payload) << payload.error().message;
  EXPECT_EQ(*payload, R"({"sub":"alice"})");
  EXPECT_FALSE(verify_token(*other, *token));
  auto changed = *token;
  changed[changed.find('.') + 3] ^= 1;
  EXPECT_FALSE(verify_token(*key, changed));
  EXPECT_FALSE(verify_token(*key, "eyJhbGciOiJub25lIn0.e30."));
  EXPECT_FALSE(verify_token(*key, "x"));
}

TEST(Digest, IsSha256) {
  EXPECT_EQ(sha256("abc").size(), 32u);
  EXPECT_EQ(static_cast<unsigned char>(sha256("abc")[0]), 0xbau);
  EXPECT_EQ(random_uuid().size(), 36u);
  EXPECT_NE(random_uuid(), random_uuid());
}

// ------------------------------------------------------------- Server and client over real sockets

/// Everything a server does holds for both: on the loop's thread, and with a thread of its own.
bool apart = false;
class Sockets : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { apart = GetParam(); }
  void TearDown() override { apart = false; }
};
Result<std::unique_ptr<Server>> listen_here(Loop& loop, ServerOptions options, Handler handler) {
  return apart ? listen_apart(loop, std::move(options), std::move(handler))
               : listen(loop, std::move(options), std::move(handler));
}
class ServerTest : public Sockets {};
class StreamTest : public Sockets {};
class TlsTest : public Sockets {};
class WebSocketTest : public Sockets {};
class UpgradeTest : public Sockets {};
std::string thread_of(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Apart" : "OnTheLoop";
}
INSTANTIATE_TEST_SUITE_P(, ServerTest, testing::Bool(), thread_of);
INSTANTIATE_TEST_SUITE_P(, StreamTest, testing::Bool(), thread_of);
INSTANTIATE_TEST_SUITE_P(, TlsTest, testing::Bool(), thread_of);
INSTANTIATE_TEST_SUITE_P(, WebSocketTest, testing::Bool(), thread_of);
INSTANTIATE_TEST_SUITE_P(, UpgradeTest, testing::Bool(), thread_of);

/// A server with a handler on a port of its own, and a client for it.
struct Fixture {
  explicit Fixture(Handler handler, ServerOptions options = {}, ClientOptions client_options = {}) {
    const bool tls = !options.certificate_pem.empty();
    auto made = listen_here(loop, std::move(options), std::move(handler));
    EXPECT_TRUE(made) << made.error().message;
    server = std::move(*made);
    client_options.url =
        std::string(tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(server->port());
    auto connected = make_client(loop, std::move(client_options));
    EXPECT_TRUE(connected) << connected.error().message;
    client = std::move(*connected);
  }
  ~Fixture() {
    loop.run_until_done([](Fixture& f) -> Task<void> { co_await f.server->stop(); }(*this));
  }
  void run(std::function<Task<void>()> test) { loop.run_until_done(test()); }
  Loop loop;
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;
};

Request get(std::string target) {
  Request request;
  request.method = "GET";
  request.target = std::move(target);
  return request;
}

Task<void> echo(Request request, ResponseWriter& writer) {
  Response response;
  response.headers.set("Content-Type", "text/plain");
  response.headers.set("X-Peer", request.peer.address);
  response.body = request.method + " " + request.target + " " + request.body;
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

/// A plain socket under the test's own control, used from a thread of its own.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~RawSocket() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void send(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  std::string read_until(std::string_view mark) {
    std::string text;
    char buffer[4096];
    while (text.find(mark) == std::string::npos) {
      const auto got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string read_all() { return read_until(std::string_view("\x01\x02never\x03", 8)); }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

/// Runs `peer` in a thread while the loop serves it.
void run_with(Loop& loop, std::function<void()> peer) {
  loop.run_until_done([](Loop& l, std::function<void()> p) -> Task<void> {
    co_await l.run_on_worker(std::move(p));
  }(loop, std::move(peer)));
}

TEST_P(ServerTest, AnswersManyRequestsOnOneConnection) {
  Fixture f(echo);
  f.run([&]() -> Task<void> {
    std::string peer;
    for (int i = 0; i < 20; ++i) {
      auto request = get("/x");
      request.method = "POST";
      request.body = std::to_string(i);
      const auto response = co_await f.client->request(std::move(request));
      if (!response) ADD_FAILURE() << response.error().message;
      if (!response) co_return;
      EXPECT_EQ(response->status, 200);
      EXPECT_EQ(response->body, "POST /x " + std::to_string(i));
      if (i == 0) peer = response->headers.get("X-Peer");
      EXPECT_EQ(response->headers.get("X-Peer"), peer);
    }
  });
}

TEST_P(ServerTest, AnswersPipelinedRequestsInOrder) {
  Fixture f(echo);
  std::string text;
  run_with(f.loop, [&] {
    RawSocket socket(f.server->port());
    socket.send(
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    text = socket.read_all();
  });
  const auto one = text.find("GET /1"), two = text.find("GET /2"), three = text.find("GET /3");
  EXPECT_LT(one, two);
  EXPECT_LT(two, three);
  EXPECT_NE(three, std::string::npos);
}

TEST_P(ServerTest, RefusesWhatIsTooLargeWithAStatus) {
  ServerOptions options;
  options.body_bytes_max = 1000;
  Fixture f(echo, options);
  f.run([&]() -> Task<void> {
    auto request = get("/x");
    request.method = "POST";
    request.body.assign(2'000'000, 'x');
    const auto response = co_await f.client->request(std::move(request));
    if (!response) ADD_FAILURE() << response.error().message;
    if (!response) co_return;
    EXPECT_EQ(response->status, 413);
    EXPECT_EQ(
        response->body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"Request entity too large: limit is "
        "1000\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n");
  });
}

TEST_P(ServerTest, RefusesGarbageAndOversizedHeads) {
  ServerOptions options;
  options.header_bytes_max = 4096;
  Fixture f(echo, options);
  std::string garbage, oversized;
  run_with(f.loop, [&] {
    RawSocket one(f.server->port());
    one.send("\x16\x03\x01 this is not HTTP\r\n\r\n");
    garbage = one.read_all();
    RawSocket two(f.server->port());
    two.send("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(8000, 'y') + "\r\n\r\n");
    oversized = two.read_all();
  });
  EXPECT_TRUE(garbage.starts_with("HTTP/1.1 400 ")) << garbage;
  EXPECT_TRUE(oversized.starts_with("HTTP/1.1 431 ")) << oversized;
}

TEST_P(ServerTest, CutsASlowHeadOrBodyWith408) {
  ServerOptions options;
  options.head_timeout = 100ms;
  options.body_timeout = 100ms;
  Fixture f(echo, options);
  std::string slow, silent, half;
  run_with(f.loop, [&] {
    RawSocket one(f.server->port());
    one.send("GET / HTTP/1.1\r\nHost");
    slow = one.read_all();
    RawSocket two(f.server->port());
    silent = two.read_all();
    RawSocket three(f.server->port());
    three.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
    half = three.read_all();
  });
  EXPECT_TRUE(half.starts_with("HTTP/1.1 408 ")) << half;
  EXPECT_TRUE(slow.starts_with("HTTP/1.1 408 ")) << slow;
  EXPECT_EQ(silent, "");
}

TEST_P(ServerTest, SendsContinueWhenAsked) {
  Fixture f(echo);
  std::string first, answer;
  run_with(f.loop, [&] {
    RawSocket socket(f.server->port());
    socket.send(
        "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
    first = socket.read_until("\r\n\r\n");
    socket.send("hi");
    answer = socket.read_all();
  });
  EXPECT_TRUE(first.starts_with("HTTP/1.1 100 "));
  EXPECT_TRUE(answer.ends_with("POST /x hi")) << answer;
}

TEST_P(ServerTest, HandlerThatThrowsGives500) {
  Fixture f([](Request, ResponseWriter&) -> Task<void> {
    throw std::runtime_error("boom");
    co_return;
  });
  f.run([&]() -> Task<void> {
    const auto response = co_await f.client->request(get("/"));
    EXPECT_TRUE(response);
    if (response) EXPECT_EQ(response->status, 500);
  });
}

TEST_P(ServerTest, CompressesLongAnswersWhenAsked) {
  Fixture f([](Request, ResponseWriter& writer) -> Task<void> {
    Response response;
    response.body.assign(300'000, 'a');
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  });
  f.run([&]() -> Task<void> {
    auto request = get("/");
    request.headers.set("Accept-Encoding", "deflate, gzip;q=0.5");
    const auto packed = co_await f.client->request(std::move(request));
    const auto plain = co_await f.client->request(get("/"));
    if (!packed || !plain) ADD_FAILURE();
    if (!packed || !plain) co_return;
    EXPECT_EQ(plain->body.size(), 300'000u);
    EXPECT_EQ(packed->headers.get("Content-Encoding"), "gzip");
    EXPECT_LT(packed->body.size(), 10'000u);
    std::string out(300'000, '\0');
    z_stream z{};
    inflateInit2(&z, 15 + 16);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed->body.data()));
    z.avail_in = static_cast<uInt>(packed->body.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
    EXPECT_EQ(out, plain->body);
  });
}

// ----------------------------------------------------------------------------------------- Streams

/// Writes "0\n" … until `count`, then finishes.
Handler counter(int count) {
  return [count](Request, ResponseWriter& writer) -> Task<void> {
    Response head;
    auto ok = co_await writer.start(std::move(head));
    for (int i = 0; ok && i < count; ++i)
      ok = co_await writer.write(std::make_shared<const std::string>(std::to_string(i) + "\n"));
    if (ok) ok = co_await writer.finish();
  };
}

Task<std::string> read_all(ResponseStream& stream) {
  std::string text;
  while (true) {
    const auto piece = co_await stream.read();
    if (!piece) co_return "error: " + piece.error().message;
    if (piece->empty()) co_return text;
    text += *piece;
  }
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST_P(StreamTest, ArrivesWholeAndTheConnectionIsKept) {
  Fixture f(counter(1000));
  f.run([&]() -> Task<void> {
    auto stream = co_await f.client->stream(get("/"));
    if (!stream) ADD_FAILURE() << stream.error().message;
    if (!stream) co_return;
    const auto text = co_await read_all(**stream);
    EXPECT_EQ(text, numbers(1000));
    for (int i = 0; i < 3; ++i) {
      const auto response = co_await f.client->request(get("/"));
      EXPECT_TRUE(response);
      if (response) EXPECT_EQ(response->body, numbers(1000));
    }
  });
}

struct Gone {
  explicit Gone(Loop& loop) : done(loop.make_signal()) {}
  bool called = false;
  bool write_failed = false;
  std::unique_ptr<Signal> done;
};

/// Streams one line, then waits for the client to go.
Handler waits_for_close(Loop& loop, Gone& gone) {
  return [&loop, &gone](Request, ResponseWriter& writer) -> Task<void> {
    const std::shared_ptr<Signal> wake = loop.make_signal();
    Response head;
    auto ok = co_await writer.start(std::move(head));
    writer.on_close([&gone, wake] {
      gone.called = true;
      wake->notify();
    });
    ok = co_await writer.write(std::make_shared<const std::string>("first\n"));
    while (!writer.closed()) co_await wake->wait(5s);
    ok = co_await writer.write(std::make_shared<const std::string>("second\n"));
    gone.write_failed = !ok;
    gone.done->notify();
  };
}

TEST_P(StreamTest, HandlerIsToldWhenTheClientGoes) {
  Loop loop;
  Gone gone(loop);
  auto server = listen_here(loop, ServerOptions{}, waits_for_close(loop, gone));
  ASSERT_TRUE(server);
  ClientOptions options;
  options.url = "http://127.0.0.1:" + std::to_string((*server)->port());
  auto client = make_client(loop, options);
  ASSERT_TRUE(client);
  loop.run_until_done([](Client& c, Server& s, Gone& g) -> Task<void> {
    auto stream = co_await c.stream(get("/"));
    EXPECT_TRUE(stream);
    const auto first = co_await (*stream)->read();
    EXPECT_TRUE(first);
    if (first) EXPECT_EQ(*first, "first\n");
    stream->reset();
    (void)co_await g.done->wait(10s);
    co_await s.stop();
  }(**client, **server, gone));
  EXPECT_TRUE(gone.called);
  EXPECT_TRUE(gone.write_failed);
}

TEST_P(StreamTest, SlowConsumerIsCut) {
  ServerOptions options;
  options.write_timeout = 200ms;
  bool failed = false;
  Loop loop;
  const auto over = loop.make_signal();
  auto server =
      listen_here(loop, options, [&failed, &over](Request, ResponseWriter& writer) -> Task<void> {
        Response head;
        auto ok = co_await writer.start(std::move(head));
        const auto chunk = std::make_shared<const std::string>(1 << 20, 'x');
        for (int i = 0; ok && i < 1000; ++i) ok = co_await writer.write(chunk);
        failed = !ok;
        over->notify();
      });
  ASSERT_TRUE(server);
  loop.run_until_done([](Server& s, Signal& end) -> Task<void> {
    RawSocket socket(s.port());
    socket.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");  // and never reads
    (void)co_await end.wait(10s);
    co_await s.stop();
  }(**server, *over));
  EXPECT_TRUE(failed);
}

TEST_P(StreamTest, UnfinishedStreamIsSeenAsCut) {
  Fixture f([](Request, ResponseWriter& writer) -> Task<void> {
    Response head;
    auto ok = co_await writer.start(std::move(head));
    ok = co_await writer.write(std::make_shared<const std::string>("half"));
  });
  f.run([&]() -> Task<void> {
    auto stream = co_await f.client->stream(get("/"));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const auto text = co_await read_all(**stream);
    EXPECT_TRUE(text.starts_with("error: ")) << text;
  });
}

TEST_P(ServerTest, StopEndsStreams) {
  Loop loop;
  Gone gone(loop);
  auto server = listen_here(loop, ServerOptions{}, waits_for_close(loop, gone));
  ASSERT_TRUE(server);
  ClientOptions options;
  options.url = "http://127.0.0.1:" + std::to_string((*server)->port());
  auto client = make_client(loop, options);
  loop.run_until_done([](Client& c, Server& s) -> Task<void> {
    auto stream = co_await c.stream(get("/"));
    EXPECT_TRUE(stream);
    co_await s.stop();
  }(**client, **server));
  EXPECT_TRUE(gone.done);
}

// --------------------------------------------------------------------------------------------- TLS

struct Pki {
  Pki() {
    Loop clock;
    now = clock.now();
    ca = *make_ca("test-ca", now);
    other_ca = *make_ca("other-ca", now);
    CertificateRequest request;
    request.common_name = "test-ca";  // the CA's own name must not confuse anybody
    request.dns_names = {"localhost", "muster.test"};
    request.addresses = {"127.0.0.1", "::1"};
    request.server = true;
    server = *make_certificate(ca, request, now);
    CertificateRequest user;
    user.common_name = "alice";
    user.organizations = {"team-a", "system:masters"};
    alice = *make_certificate(ca, user, now);
    mallory = *make_certificate(other_ca, user, now);
  }
  ServerOptions server_options() const {
    ServerOptions options;
    options.certificate_pem = server.certificate_pem;
    options.key_pem = server.key_pem;
    options.client_ca_pem = ca.certificate_pem;
    return options;
  }
  Time now;
  KeyPair ca, other_ca, server, alice, mallory;
};

Task<void> whoami(Request request, ResponseWriter& writer) {
  Response response;
  response.body = request.peer.cert_user.value_or("nobody");
  for (const auto& group : request.peer.cert_groups) response.body += "," + group;
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

TEST_P(TlsTest, ClientCertificateNamesTheUser) {
  const Pki pki;
  struct Case {
    const char* name;
    KeyPair pair;
    std::string want;
  };
  for (const auto& c : {Case{"signed by the CA", pki.alice, "alice,team-a,system:masters"},
                        Case{"signed by another", pki.mallory, "nobody"},
                        Case{"none", {}, "nobody"}}) {
    ClientOptions options;
    options.ca_pem = pki.ca.certificate_pem;
    options.certificate_pem = c.pair.certificate_pem;
    options.key_pem = c.pair.key_pem;
    Fixture f(whoami, pki.server_options(), options);
    f.run([&]() -> Task<void> {
      for (int i = 0; i < 2; ++i) {
        const auto response = co_await f.client->request(get("/"));
        if (!response) ADD_FAILURE() << c.name << ": " << response.error().message;
        if (response) EXPECT_EQ(response->body, c.want) << c.name;
      }
    });
  }
}

TEST_P(TlsTest, ServerMustBeWhoItClaims) {
  const Pki pki;
  struct Case {
    const char* name;
    std::string ca, server_name;
    bool insecure, ok;
  };
  for (const auto& c :
       {Case{"address in the certificate", pki.ca.certificate_pem, "", false, true},
        Case{"name in the certificate", pki.ca.certificate_pem, "muster.test", false, true},
        Case{"name not in it", pki.ca.certificate_pem, "evil.test", false, false},
        Case{"unknown CA", pki.other_ca.certificate_pem, "", false, false},
        Case{"unknown CA, unchecked", pki.other_ca.certificate_pem, "", true, true}}) {
    ClientOptions options;
    options.ca_pem = c.ca;
    options.server_name = c.server_name;
    options.insecure = c.insecure;
    Fixture f(echo, pki.server_options(), options);
    f.run([&]() -> Task<void> {
      const auto response = co_await f.client->request(get("/"));
      EXPECT_EQ(static_cast<bool>(response), c.ok) << c.name;
    });
  }
}

TEST_P(TlsTest, StreamsToo) {
  const Pki pki;
  ClientOptions options;
  options.ca_pem = pki.ca.certificate_pem;
  Fixture f(counter(5000), pki.server_options(), options);
  f.run([&]() -> Task<void> {
    auto stream = co_await f.client->stream(get("/"));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const auto text = co_await read_all(**stream);
    EXPECT_EQ(text, numbers(5000));
  });
}

// ---------------------------------------------------------------------- WebSocket and raw upgrades

Task<void> ws_echo(Request request, ResponseWriter& writer) {
  if (request.target == "/refuse") {
    Response response;
    response.status = 403;
    response.body = "no";
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
    co_return;
  }
  auto socket = co_await writer.upgrade_websocket("v5.channel.k8s.io");
  if (!socket) co_return;
  while (true) {
    auto message = co_await (*socket)->read();
    if (!message || !*message) co_return;
    if ((*message)->data == "bye") {
      co_await (*socket)->close(1000, "as asked");
      co_return;
    }
    const auto written = co_await (*socket)->write(std::move(**message));
    if (!written) co_return;
  }
}

Task<void> talk(Client& client) {
  auto socket = co_await client.websocket(get("/x"), "v5.channel.k8s.io");
  if (!socket) ADD_FAILURE() << socket.error().message;
  if (!socket) co_return;
  EXPECT_EQ((*socket)->subprotocol(), "v5.channel.k8s.io");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{70'000}, std::size_t{2'000'000}}) {
    WebSocket::Message message;
    message.binary = size != 5;
    message.data.assign(size, 'q');
    const auto written = co_await (*socket)->write(std::move(message));
    EXPECT_TRUE(written);
    auto back = co_await (*socket)->read();
    EXPECT_TRUE(back && *back);
    if (!back || !*back) co_return;
    EXPECT_EQ((*back)->data.size(), size);
    EXPECT_EQ((*back)->binary, size != 5);
  }
  WebSocket::Message bye;
  bye.data = "bye";
  const auto written = co_await (*socket)->write(std::move(bye));
  EXPECT_TRUE(written);
  const auto end = co_await (*socket)->read();
  EXPECT_TRUE(end);
  if (end) EXPECT_FALSE(*end);
  const auto refused = co_await client.websocket(get("/refuse"), "x");
  EXPECT_FALSE(refused);
  if (!refused) EXPECT_EQ(refused.error().code, Code::kForbidden) << refused.error().message;
}

TEST_P(WebSocketTest, EchoesOverPlainSockets) {
  Fixture f(ws_echo);
  f.run([&]() -> Task<void> { co_await talk(*f.client); });
}

TEST_P(WebSocketTest, EchoesOverTls) {
  const Pki pki;
  ClientOptions options;
  options.ca_pem = pki.ca.certificate_pem;
  Fixture f(ws_echo, pki.server_options(), options);
  f.run([&]() -> Task<void> { co_await talk(*f.client); });
}

TEST(WebSocket, EchoesInProcess) {
  Loop loop;
  const auto client = make_local_client(loop, ws_echo, "me");
  loop.run_until_done([](Client& c) -> Task<void> { co_await talk(c); }(*client));
}

TEST_P(UpgradeTest, GivesRawBytes) {
  Fixture f([](Request, ResponseWriter& writer) -> Task<void> {
    Headers headers;
    headers.set("Upgrade", "SPDY/3.1");
    auto stream = co_await writer.upgrade_raw(std::move(headers));
    if (!stream) co_return;
    while (true) {
      auto bytes = co_await (*stream)->read();
      if (!bytes || bytes->empty()) co_return;
      const auto written = co_await (*stream)->write("<" + *bytes + ">");
      if (!written) co_return;
    }
  });
  std::string head, early, later;
  run_with(f.loop, [&] {
    RawSocket socket(f.server->port());
    socket.send(
        "POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly");
    head = socket.read_until("<early>");
    socket.send("later");
    later = socket.read_until(">");
  });
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  EXPECT_NE(head.find("Connection: Upgrade\r\n"), std::string::npos);
  EXPECT_NE(head.find("Upgrade: SPDY/3.1\r\n"), std::string::npos);
  EXPECT_EQ(later, "<later>");
}

// --------------------------------------------------------------------------- The in-process client

TEST(LocalClient, RequestsStreamsAndNamesTheUser) {
  Loop loop;
  const auto client = make_local_client(
      loop,
      [](Request request, ResponseWriter& writer) -> Task<void> {
        if (request.target == "/stream") {
          const auto handler = counter(100'000);
          co_await handler(std::move(request), writer);
          co_return;
        }
        if (request.target == "/silent") co_return;
        Response response;
        response.body = request.peer.trusted_user.value_or("?");
        const auto sent = co_await writer.send(std::move(response));
        (void)sent;
      },
      "system:scheduler");
  loop.run_until_done([](Client& c) -> Task<void> {
    const auto response = co_await c.request(get("/who"));
    EXPECT_TRUE(response);
    if (response) EXPECT_EQ(response->body, "system:scheduler");
    auto stream = co_await c.stream(get("/stream"));
    EXPECT_TRUE(stream);
    const auto text = co_await read_all(**stream);
    EXPECT_EQ(text, numbers(100'000));
    const auto silent = co_await c.request(get("/silent"));
    EXPECT_FALSE(silent);
    const auto no_stream = co_await c.stream(get("/silent"));
    EXPECT_FALSE(no_stream);
    const auto sent_as_stream = co_await c.stream(get("/who"));
    EXPECT_TRUE(sent_as_stream);
    const auto who = co_await read_all(**sent_as_stream);
    EXPECT_EQ(who, "system:scheduler");
  }(*client));
}

TEST(LocalClient, ClosingTellsTheHandler) {
  Loop loop;
  Gone gone(loop);
  const auto client = make_local_client(loop, waits_for_close(loop, gone), "me");
  loop.run_until_done([](Client& c, Gone& g) -> Task<void> {
    auto stream = co_await c.stream(get("/"));
    EXPECT_TRUE(stream);
    const auto first = co_await (*stream)->read();
    if (first) EXPECT_EQ(*first, "first\n");
    stream->reset();
    (void)co_await g.done->wait(10s);
  }(*client, gone));
  EXPECT_TRUE(gone.called);
  EXPECT_TRUE(gone.write_failed);
}

TEST(LocalClient, AFastWriterWaitsForASlowReader) {
  Loop loop;
  std::size_t written_bytes = 0;
  const auto client = make_local_client(
      loop,
      [&](Request, ResponseWriter& writer) -> Task<void> {
        Response head;
        auto ok = co_await writer.start(std::move(head));
        const auto chunk = std::make_shared<const std::string>(100'000, 'x');
        for (int i = 0; ok && i < 100; ++i) {
          ok = co_await writer.write(chunk);
          if (ok) written_bytes += chunk->size();
        }
        if (ok) ok = co_await writer.finish();
      },
      "me");
  loop.run_until_done([](Loop& l, Client& c, std::size_t& bytes) -> Task<void> {
    auto stream = co_await c.stream(get("/"));
    co_await turns(l, 1000);
    EXPECT_LE(bytes, 1024u * 1024u);
    const auto text = co_await read_all(**stream);
    EXPECT_EQ(text.size(), 10'000'000u);
  }(loop, *client, written_bytes));
}

// ---------------------------------------------------------------------------------------- The loop

TEST(Loop, SignalRemembersOneNotifyAndWakesAll) {
  Loop loop;
  const auto signal = loop.make_signal();
  int woken = 0;
  loop.run_until_done([](Loop& l, Signal& s, int& w) -> Task<void> {
    s.notify();
    const bool at_once = co_await s.wait(Duration::zero());
    EXPECT_TRUE(at_once);
    const bool timed = co_await s.wait(5ms);
    EXPECT_FALSE(timed);
    for (int i = 0; i < 3; ++i) {
      l.spawn([](Signal& inner, int& count) -> Task<void> {
        const bool ok = co_await inner.wait(Duration::zero());
        if (ok) ++count;
      }(s, w));
    }
    co_await turns(l, 10);
    s.notify();
    co_await turns(l, 10);
    EXPECT_EQ(w, 3);
  }(loop, *signal, woken));
}

TEST(Loop, TimersAndWorkers) {
  Loop loop;
  int fired = 0;
  loop.run_until_done([](Loop& l, int& f) -> Task<void> {
    const auto kept = l.after(1ms, [&f] { ++f; });
    auto dropped = l.after(1ms, [&f] { f += 100; });
    dropped.reset();
    std::thread::id worker;
    co_await l.run_on_worker([&worker] { worker = std::this_thread::get_id(); });
    EXPECT_NE(worker, std::this_thread::get_id());
    // Due after both.
    const auto later = l.make_signal();
    const auto last = l.after(2ms, [&later] { later->notify(); });
    (void)co_await later->wait(10s);
    EXPECT_EQ(f, 1);
  }(loop, fired));
  std::thread stopper([&loop] { loop.stop(); });
  loop.run();
  stopper.join();
}

}  // namespace
}  // namespace muster::net
