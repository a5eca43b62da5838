#include "net/stream.h"

#include <fmt/core.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <zlib.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "base/strings.h"

namespace muster::net {

using asio::ip::tcp;

void Stream::start_read(asio::mutable_buffer buffer, IoOpPtr op) {
  if (prefix_.empty()) {
    do_read(buffer, std::move(op));
    return;
  }
  const auto bytes = std::min(buffer.size(), prefix_.size());
  std::memcpy(buffer.data(), prefix_.data(), bytes);
  prefix_.erase(0, bytes);
  asio::post(context(), [op = std::move(op), bytes]() mutable { op->done({}, bytes); });
}

Task<IoResult> Stream::read_some(asio::mutable_buffer buffer) {
  const auto start = [this, buffer](auto handler) { start_read(buffer, make_io_op(std::move(handler))); };
  const auto [error, bytes] =
      co_await asio::async_initiate<decltype(kAwaitTuple), void(ErrorCode, std::size_t)>(start, kAwaitTuple);
  co_return IoResult{error, bytes};
}

Task<ErrorCode> Stream::write_all(std::vector<asio::const_buffer> buffers) {
  while (true) {
    while (!buffers.empty() && buffers.front().size() == 0) buffers.erase(buffers.begin());
    if (buffers.empty()) co_return ErrorCode{};
    const auto start = [this, &buffers](auto handler) { start_write(buffers, make_io_op(std::move(handler))); };
    const auto [error, bytes] =
        co_await asio::async_initiate<decltype(kAwaitTuple), void(ErrorCode, std::size_t)>(start, kAwaitTuple);
    if (error) co_return error;
    auto left = bytes;
    while (left > 0 && !buffers.empty()) {
      const auto taken = std::min(left, buffers.front().size());
      buffers.front() += taken;
      left -= taken;
      if (buffers.front().size() == 0) buffers.erase(buffers.begin());
    }
  }
}

Task<ErrorCode> Stream::write_all(std::string_view bytes) {
  std::vector<asio::const_buffer> buffers{asio::const_buffer(bytes.data(), bytes.size())};
  const auto error = co_await write_all(std::move(buffers));
  co_return error;
}

namespace {

std::string address_of(const tcp::socket& socket) {
  ErrorCode error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return {};
  const auto text = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", text, endpoint.port()) : fmt::format("{}:{}", text, endpoint.port());
}

bool socket_is_quiet(tcp::socket& socket) {
  if (!socket.is_open()) return false;
  char byte = 0;
  const auto got = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void close_socket(tcp::socket& socket) {
  ErrorCode ignored;
  socket.close(ignored);
}

class PlainStream final : public Stream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)), address_(address_of(socket_)) {}

  asio::io_context& context() override { return static_cast<asio::io_context&>(socket_.get_executor().context()); }
  Task<ErrorCode> handshake() override { co_return ErrorCode{}; }
  Task<void> shutdown() override {
    ErrorCode ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  void cancel() override {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }
  void close() override { close_socket(socket_); }
  [[nodiscard]] bool is_open() const override { return socket_.is_open(); }
  [[nodiscard]] bool is_quiet() override { return socket_is_quiet(socket_); }
  [[nodiscard]] Peer peer() const override {
    Peer peer;
    peer.address = address_;
    return peer;
  }

 protected:
  void do_read(asio::mutable_buffer buffer, IoOpPtr op) override {
    socket_.async_read_some(buffer, [op = std::move(op)](ErrorCode error, std::size_t bytes) { op->done(error, bytes); });
  }
  void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) override {
    socket_.async_write_some(buffers, [op = std::move(op)](ErrorCode error, std::size_t bytes) { op->done(error, bytes); });
  }

 private:
  tcp::socket socket_;
  std::string address_;
};

std::vector<std::string> subject_entries(X509* certificate, int nid) {
  std::vector<std::string> values;
  auto* subject = X509_get_subject_name(certificate);
  for (int at = X509_NAME_get_index_by_NID(subject, nid, -1); at >= 0; at = X509_NAME_get_index_by_NID(subject, nid, at)) {
    auto* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, data);
    if (length < 0) continue;
    values.emplace_back(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(length));
    OPENSSL_free(utf8);
  }
  return values;
}

}  // namespace

class TlsContext {
 public:
  explicit TlsContext(asio::ssl::context::method method) : context(method) {}
  asio::ssl::context context;
};

namespace {

class TlsStream final : public Stream {
 public:
  TlsStream(tcp::socket socket, std::shared_ptr<TlsContext> tls, bool server)
      : tls_(std::move(tls)), stream_(std::move(socket), tls_->context), server_(server), address_(address_of(stream_.next_layer())) {}

  asio::ssl::stream<tcp::socket>& ssl() { return stream_; }

  asio::io_context& context() override { return static_cast<asio::io_context&>(stream_.get_executor().context()); }
  Task<ErrorCode> handshake() override {
    const auto role = server_ ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
    const auto [error] = co_await stream_.async_handshake(role, kAwaitTuple);
    co_return error;
  }
  Task<void> shutdown() override {
    co_await stream_.async_shutdown(kAwaitTuple);
    ErrorCode ignored;
    stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void cancel() override {
    ErrorCode ignored;
    stream_.next_layer().cancel(ignored);
  }
  void close() override { close_socket(stream_.next_layer()); }
  [[nodiscard]] bool is_open() const override { return stream_.next_layer().is_open(); }
  [[nodiscard]] bool is_quiet() override {
    // Between exchanges nothing is due but the peer's close_notify.
    return socket_is_quiet(stream_.next_layer());
  }
  [[nodiscard]] Peer peer() const override {
    Peer peer;
    peer.address = address_;
    auto* ssl = const_cast<asio::ssl::stream<tcp::socket>&>(stream_).native_handle();
    auto* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return peer;
    if (server_ && SSL_get_verify_result(ssl) == X509_V_OK) {
      const auto names = subject_entries(certificate, NID_commonName);
      if (!names.empty()) peer.cert_user = names.front();
      peer.cert_groups = subject_entries(certificate, NID_organizationName);
    }
    X509_free(certificate);
    return peer;
  }

 protected:
  void do_read(asio::mutable_buffer buffer, IoOpPtr op) override {
    // OpenSSL works inside the stream while the operation runs, so the operation keeps it alive.
    stream_.async_read_some(buffer, [self = shared_from_this(), op = std::move(op)](ErrorCode error, std::size_t bytes) {
      // Peers often leave without close_notify; lengths and chunk ends tell a whole message from a cut one.
      if (error == asio::ssl::error::stream_truncated) error = asio::error::eof;
      op->done(error, bytes);
    });
  }
  void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) override {
    stream_.async_write_some(buffers, [self = shared_from_this(), op = std::move(op)](ErrorCode error, std::size_t bytes) { op->done(error, bytes); });
  }

 private:
  std::shared_ptr<TlsContext> tls_;
  asio::ssl::stream<tcp::socket> stream_;
  bool server_;
  std::string address_;
};

asio::const_buffer pem(const std::string& text) { return {text.data(), text.size()}; }

Result<void> use_key_pair(asio::ssl::context& context, const std::string& certificate, const std::string& key) {
  ErrorCode error;
  context.use_certificate_chain(pem(certificate), error);
  if (error) return fail(Code::kInvalid, fmt::format("TLS certificate is not usable PEM: {}", error.message()));
  context.use_private_key(pem(key), asio::ssl::context::pem, error);
  if (error) return fail(Code::kInvalid, fmt::format("TLS key is not usable PEM or does not fit its certificate: {}", error.message()));
  return {};
}

void harden(asio::ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  // Without resumption every handshake verifies the client's certificate itself.
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
}

/// Every CA of a PEM bundle, one by one.
Result<void> add_authorities(asio::ssl::context& context, const std::string& bundle) {
  auto* bio = BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size()));
  auto* store = SSL_CTX_get_cert_store(context.native_handle());
  int added = 0;
  while (auto* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
    ++added;
  }
  ERR_clear_error();
  BIO_free(bio);
  if (added == 0) return fail(Code::kInvalid, "CA bundle holds no certificate in PEM");
  return {};
}

}  // namespace

void tune_socket(tcp::socket& socket) {
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  // A peer that vanished is noticed within two minutes; one that merely does not read is left in peace.
  const int idle_s = 60, interval_s = 15, probes = 4;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::shared_ptr<Stream> make_plain_stream(tcp::socket socket) { return std::make_shared<PlainStream>(std::move(socket)); }

Result<std::shared_ptr<TlsContext>> make_tls_server(const TlsServerOptions& options) {
  auto tls = std::make_shared<TlsContext>(asio::ssl::context::tls_server);
  harden(tls->context);
  auto pair = use_key_pair(tls->context, options.certificate_pem, options.key_pem);
  if (!pair) return tl::unexpected(std::move(pair.error()));
  if (!options.client_ca_pem.empty()) {
    auto added = add_authorities(tls->context, options.client_ca_pem);
    if (!added) return tl::unexpected(std::move(added.error()));
    // A certificate is asked for but not demanded, and a bad one does not end the handshake: its holder is
    // then nobody in particular and gets an HTTP answer that says so.
    SSL_CTX_set_verify(tls->context.native_handle(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  }
  return tls;
}

Result<std::shared_ptr<TlsContext>> make_tls_client(const TlsClientOptions& options) {
  auto tls = std::make_shared<TlsContext>(asio::ssl::context::tls_client);
  harden(tls->context);
  if (!options.certificate_pem.empty()) {
    auto pair = use_key_pair(tls->context, options.certificate_pem, options.key_pem);
    if (!pair) return tl::unexpected(std::move(pair.error()));
  }
  if (options.insecure) {
    tls->context.set_verify_mode(asio::ssl::verify_none);
    return tls;
  }
  tls->context.set_verify_mode(asio::ssl::verify_peer);
  if (options.ca_pem.empty()) {
    ErrorCode error;
    tls->context.set_default_verify_paths(error);
    if (error) return fail(Code::kInternal, fmt::format("the system's CA certificates cannot be read: {}", error.message()));
    return tls;
  }
  auto added = add_authorities(tls->context, options.ca_pem);
  if (!added) return tl::unexpected(std::move(added.error()));
  return tls;
}

std::shared_ptr<Stream> make_tls_server_stream(tcp::socket socket, std::shared_ptr<TlsContext> tls) {
  return std::make_shared<TlsStream>(std::move(socket), std::move(tls), /*server=*/true);
}

std::shared_ptr<Stream> make_tls_client_stream(tcp::socket socket, std::shared_ptr<TlsContext> tls, const std::string& name) {
  auto stream = std::make_shared<TlsStream>(std::move(socket), std::move(tls), /*server=*/false);
  ErrorCode error;
  asio::ip::make_address(name, error);
  if (error) SSL_set_tlsext_host_name(stream->ssl().native_handle(), name.c_str());
  // Asio replaces the verification mode's callback only; with verify_none it is never asked.
  if (SSL_get_verify_mode(stream->ssl().native_handle()) != SSL_VERIFY_NONE) {
    stream->ssl().set_verify_callback(asio::ssl::host_name_verification(name));
  }
  return stream;
}

Deadline::Deadline(asio::io_context& context, std::function<void()> expired) : timer_(context), expired_(std::move(expired)) {}

void Deadline::set(Duration from_now) {
  at_ = Clock::now() + from_now;
  if (at_ < armed_) arm(at_);
}

void Deadline::arm(Clock::time_point when) {
  armed_ = when;
  timer_.expires_at(when);
  timer_.async_wait([this, alive = alive_](const ErrorCode& error) {
    if (error || !*alive) return;
    armed_ = kNever;
    if (at_ == kNever) return;
    if (Clock::now() < at_) {
      arm(at_);
      return;
    }
    at_ = kNever;
    expired_();
  });
}

Error io_error(std::string_view what, const ErrorCode& error) {
  Error out;
  out.code = error == asio::error::timed_out ? Code::kTimeout : Code::kUnavailable;
  out.message = fmt::format("{}: {}", what, error == asio::error::eof ? "connection closed by the other side" : error.message());
  return out;
}

std::string gzip(std::string_view text) {
  z_stream z{};
  constexpr int kGzipWindow = 15 + 16;
  // Level 1: lists of objects shrink tenfold already, at a fraction of the default level's time.
  if (deflateInit2(&z, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int end = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return end == Z_STREAM_END ? out : std::string();
}

bool accepts_gzip(const Headers& headers) {
  for (const auto value : headers.all("Accept-Encoding")) {
    for (const auto& part : split(value, ',')) {
      const auto pieces = split(part, ';');
      if (to_lower(trim(pieces.front())) != "gzip") continue;
      return pieces.size() < 2 || replace_all(pieces[1], " ", "") != "q=0";
    }
  }
  return false;
}

}  // namespace muster::net
