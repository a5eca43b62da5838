/// What the server's own records are to a client that knows OpenSSL's alone.
#include "net/tls/tls_records.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/loop/stream.h"
#include "net/tls/tls.h"

namespace muster::net {
namespace {

constexpr std::size_t kAnswerBytes = 100'000;  // several records

std::string answer_text() {
  std::string text;
  while (text.size() < kAnswerBytes) text += std::to_string(text.size()) + " ";
  return text;
}

/// What the kernel keeps of either side of a slow connection.
constexpr int kSmallBufferBytes = 32 * 1024;

void keep_little(int descriptor) {
  for (const int which : {SO_RCVBUF, SO_SNDBUF}) {
    EXPECT_EQ(
        ::setsockopt(descriptor, SOL_SOCKET, which, &kSmallBufferBytes, sizeof kSmallBufferBytes),
        0);
  }
}

/// A blocking connection, for workers.
class RawClient {
 public:
  RawClient(std::uint16_t port, int version, const char* suite, bool slow = false)
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    if (suite != nullptr) EXPECT_EQ(SSL_CTX_set_ciphersuites(context_, suite), 1) << suite;
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (slow) keep_little(fd_);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd_);
    EXPECT_EQ(SSL_connect(ssl_), 1);
  }
  ~RawClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ::close(fd_);
  }
  RawClient(const RawClient&) = delete;

  SSL* ssl() { return ssl_; }
  [[nodiscard]] int descriptor() const { return fd_; }
  void ask(std::string_view more_headers = "") {
    const std::string text = "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(more_headers) + "\r\n";
    EXPECT_EQ(SSL_write(ssl_, text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }
  /// The body of the next answer.
  std::string read_answer() {
    std::string text;
    char bytes[16 * 1024];
    while (true) {
      const auto head = text.find("\r\n\r\n");
      if (head != std::string::npos && text.size() >= head + 4 + answer_text().size())
        return text.substr(head + 4);
      const int got = SSL_read(ssl_, bytes, sizeof bytes);
      if (got <= 0) return "cut off after " + std::to_string(text.size()) + " bytes";
      text.append(bytes, static_cast<std::size_t>(got));
    }
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  int fd_ = -1;
};

KeyPair server_certificate(Time now) {
  const auto ca = make_ca("test", now);
  CertificateRequest wanted;
  wanted.common_name = "server";
  wanted.server = true;
  return *make_certificate(*ca, wanted, now);
}

/// Runs `client` beside a server that answers every request with the same text.
void with_server(const std::function<void(std::uint16_t)>& client) {
  Loop loop;
  const auto pair = server_certificate(loop.now());
  ServerOptions options;
  options.certificate_pem = pair.certificate_pem;
  options.key_pem = pair.key_pem;
  const auto server =
      std::move(*listen(loop, options, [](Request, ResponseWriter& writer) -> Task<void> {
        Response response;
        response.body = answer_text();
        (void)co_await writer.send(std::move(response));
      }));
  loop.run_until_done(
      [](Loop& l, Server& s, std::function<void(std::uint16_t)> work) -> Task<void> {
        const std::uint16_t port = s.port();
        co_await l.run_on_worker([work = std::move(work), port] { work(port); });
        co_await s.stop();
      }(loop, *server, client));
}

TEST(TlsRecords, EveryProtocolAndSuiteReadsThem) {
  struct Case {
    int version;
    const char* suite;
  };
  for (const Case c : {Case{TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256"},
                       Case{TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384"},
                       Case{TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256"},
                       Case{TLS1_2_VERSION, nullptr}}) {
    with_server([c](std::uint16_t port) {
      RawClient client(port, c.version, c.suite);
      for (int i = 0; i < 3; ++i) {
        client.ask();
        EXPECT_TRUE(client.read_answer() == answer_text())
            << (c.suite != nullptr ? c.suite : "TLS 1.2");
      }
    });
  }
}

TEST(TlsRecords, AClientMayAskForNewKeys) {
  with_server([](std::uint16_t port) {
    RawClient client(port, TLS1_3_VERSION, nullptr);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
      client.ask();
      EXPECT_TRUE(client.read_answer() == answer_text()) << "after update " << i;
    }
  });
}

TEST(TlsRecords, TheEndIsSaid) {
  with_server([](std::uint16_t port) {
    RawClient client(port, TLS1_3_VERSION, nullptr);
    client.ask("Connection: close\r\n");
    EXPECT_TRUE(client.read_answer() == answer_text());
    char byte = 0;
    const int got = SSL_read(client.ssl(), &byte, 1);
    EXPECT_EQ(SSL_get_error(client.ssl(), got), SSL_ERROR_ZERO_RETURN);  // close_notify
  });
}

TEST(TlsRecords, AForgedRecordIsAnsweredWithAnAlert) {
  with_server([](std::uint16_t port) {
    RawClient client(port, TLS1_3_VERSION, nullptr);
    client.ask();
    EXPECT_TRUE(client.read_answer() == answer_text());
    const std::string forged = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x');
    EXPECT_EQ(::send(client.descriptor(), forged.data(), forged.size(), 0),
              static_cast<ssize_t>(forged.size()));
    char byte = 0;
    EXPECT_LE(SSL_read(client.ssl(), &byte, 1), 0);
    EXPECT_EQ(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
    ERR_clear_error();
  });
}

/// Runs `client` beside a server's end of one slow connection.
void with_stream(const std::function<void(std::uint16_t)>& client,
                 const std::function<Task<void>(Stream&)>& server) {
  Loop loop;
  const auto pair = server_certificate(loop.now());
  TlsServerOptions options;
  options.certificate_pem = pair.certificate_pem;
  options.key_pem = pair.key_pem;
  const auto tls = *make_tls_server(options);
  asio::ip::tcp::acceptor acceptor(loop.context(), {asio::ip::address_v4::loopback(), 0});
  keep_little(acceptor.native_handle());
  const auto serve = [&]() -> Task<void> {
    const std::uint16_t port = acceptor.local_endpoint().port();
    bool ended = false;
    const auto end = loop.make_signal();
    const auto run = [&]() -> Task<void> {
      co_await loop.run_on_worker([&client, port] { client(port); });
      ended = true;
      end->notify();
    };
    loop.spawn(run());
    asio::ip::tcp::socket socket(loop.context());
    const auto [error] = co_await acceptor.async_accept(socket, kAwaitTuple);
    EXPECT_FALSE(error);
    const auto stream = make_tls_server_stream(std::move(socket), tls);
    const auto failed = co_await stream->handshake();
    EXPECT_FALSE(failed) << failed.message();
    co_await server(*stream);
    stream->close();
    while (!ended) co_await end->wait(Duration::zero());
  };
  loop.run_until_done(serve());
}

// The server writes until the socket is full, and only then reads: what the client asks finds a
// sealed record that has not left.
TEST(TlsRecords, ASlowClientMayAskForNewKeysWhileRecordsWait) {
  std::string text;
  while (text.size() < 2'000'000) text += std::to_string(text.size()) + " ";
  int updates = 0;  // the server's, seen by the client
  int stops = 0;    // the socket was full
  with_stream(
      [&](std::uint16_t port) {
        RawClient client(port, TLS1_3_VERSION, nullptr, /*slow=*/true);
        SSL_set_msg_callback_arg(client.ssl(), &updates);
        SSL_set_msg_callback(
            client.ssl(),
            [](int sent, int, int type, const void* data, std::size_t, SSL*, void* count) {
              if (sent == 0 && type == SSL3_RT_HANDSHAKE &&
                  *static_cast<const char*>(data) == SSL3_MT_KEY_UPDATE)
                ++*static_cast<int*>(count);
            });
        std::string got;
        while (got.size() < text.size()) {
          EXPECT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
          EXPECT_EQ(SSL_write(client.ssl(), "x", 1), 1);
          char bytes[10'000];  // less than a record
          const int size = SSL_read(client.ssl(), bytes, sizeof bytes);
          if (size <= 0) break;
          got.append(bytes, static_cast<std::size_t>(size));
        }
        EXPECT_TRUE(got == text) << got.size() << " bytes of " << text.size();
      },
      [&](Stream& stream) -> Task<void> {
        std::string_view rest = text;
        while (!rest.empty()) {
          const auto written = stream.write_now({asio::buffer(rest)});
          rest.remove_prefix(written.bytes);
          if (!written.error) continue;
          EXPECT_EQ(written.error, asio::error::would_block);
          ++stops;
          char asked = 0;
          const auto read = co_await stream.read_some(asio::buffer(&asked, 1));
          EXPECT_FALSE(read.error) << read.error.message();
          if (read.error) co_return;
        }
        // The client still asks while it reads the last of it.
        char asked = 0;
        while (true) {
          const auto read = co_await stream.read_some(asio::buffer(&asked, 1));
          if (read.error) break;
        }
      });
  EXPECT_GT(stops, 10);
  // What answers the last questions may come behind the last of the text.
  EXPECT_GT(updates, stops / 2);
}

TEST(TlsRecords, WhoAsksForKeysAndNeverReadsIsCutOff) {
  with_stream(
      [](std::uint16_t port) {
        RawClient client(port, TLS1_3_VERSION, nullptr, /*slow=*/true);
        // Each answer is 27 bytes, so a few thousand are more than anybody keeps. The last fail
        // when the connection is cut.
        for (int i = 0; i < 100'000; ++i) {
          SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
          if (SSL_write(client.ssl(), "x", 1) != 1) break;
        }
        ERR_clear_error();
      },
      [](Stream& stream) -> Task<void> {
        const std::string text(2'000'000, 'x');
        const auto written = stream.write_now({asio::buffer(text)});
        EXPECT_EQ(written.error, asio::error::would_block);
        int asked = 0;
        char byte = 0;
        while (true) {
          const auto read = co_await stream.read_some(asio::buffer(&byte, 1));
          if (read.error) break;
          ++asked;
        }
        EXPECT_GT(asked, 100);
        EXPECT_LT(asked, 5'000);
      });
}

}  // namespace
}  // namespace muster::net
