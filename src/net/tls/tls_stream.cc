/// TLS over a non-blocking socket. One piece: reading, writing and the handshake share one machine
/// inside OpenSSL, and each can want what another is waiting for.
///
/// OpenSSL reads and writes the socket itself, without a copy between, and a write that the socket
/// takes at once costs one call and no turn of the loop; only when the socket is full or empty is
/// the loop asked to wait. An idle connection holds no buffers (SSL_MODE_RELEASE_BUFFERS), so a
/// thousand watches are cheap. What a server sends after the handshake goes round OpenSSL's record
/// layer where it can (tls_records.h).
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>

#include "net/loop/socket.h"
#include "net/loop/stream.h"
#include "net/tls/tls_records.h"

namespace muster::net {

using asio::ip::tcp;

class TlsContext {
 public:
  explicit TlsContext(asio::ssl::context::method method) : context(method) {}
  asio::ssl::context context;
};

namespace {

/// What one record holds at most; small pieces are gathered up to here, so that a chunk and its
/// frame are one record.
constexpr std::size_t kRecordBytes = 16 * 1024;
/// A record, and some short answers to the peer's new keys.
constexpr std::size_t kRestBytesMax = 2 * kRecordBytes;
constexpr std::size_t kSealedBytes = TlsRecords::kHeadBytes + kRecordBytes + TlsRecords::kTailBytes;

// A BIO over a descriptor: OpenSSL's own would raise SIGPIPE when the peer has gone.

struct BioSocket {
  int descriptor = -1;
  /// OpenSSL's records are counted wrong and go nowhere: the stream makes its own.
  bool mute = false;
};

const BioSocket& socket_of(BIO* bio) { return *static_cast<const BioSocket*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  if (socket_of(bio).mute) return size;
  const auto sent = ::send(
      socket_of(bio).descriptor, data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto got =
      ::recv(socket_of(bio).descriptor, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

std::vector<std::string> subject_entries(X509* certificate, int nid) {
  std::vector<std::string> values;
  auto* subject = X509_get_subject_name(certificate);
  for (int at = X509_NAME_get_index_by_NID(subject, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(subject, nid, at)) {
    auto* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, data);
    if (length < 0) continue;
    values.emplace_back(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(length));
    OPENSSL_free(utf8);
  }
  return values;
}

class TlsStream final : public Stream {
 public:
  TlsStream(tcp::socket socket, std::shared_ptr<TlsContext> tls, bool server)
      : tls_(std::move(tls)),
        socket_(std::move(socket)),
        ssl_(SSL_new(tls_->context.native_handle())),
        server_(server),
        address_(address_of(socket_)) {
    MUSTER_CHECK(ssl_ != nullptr, "no memory for a TLS connection");
    ErrorCode ignored;
    socket_.native_non_blocking(true, ignored);
    BIO* bio = BIO_new(socket_method());
    bio_socket_.descriptor = socket_.native_handle();
    BIO_set_data(bio, &bio_socket_);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_app_data(ssl_, this);
    if (server_) {
      SSL_set_accept_state(ssl_);
    } else {
      SSL_set_connect_state(ssl_);
    }
  }
  ~TlsStream() override { SSL_free(ssl_); }
  TlsStream(const TlsStream&) = delete;

  SSL* ssl() { return ssl_; }

  /// OpenSSL tells secrets as lines of a key log: which one, whose, and the secret in hexadecimal
  /// digits.
  static void on_secret(const SSL* ssl, const char* line) {
    constexpr std::string_view kOurs = "SERVER_TRAFFIC_SECRET_0 ";
    const std::string_view text(line);
    if (!text.starts_with(kOurs)) return;
    long size = 0;
    unsigned char* const bytes = OPENSSL_hexstr2buf(line + text.rfind(' ') + 1, &size);
    if (bytes == nullptr) return;
    static_cast<TlsStream*>(SSL_get_app_data(ssl))
        ->secret_.assign(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
    OPENSSL_clear_free(bytes, static_cast<std::size_t>(size));
  }

  asio::io_context& context() override {
    return static_cast<asio::io_context&>(socket_.get_executor().context());
  }

  Task<ErrorCode> handshake() override {
    const auto error = co_await drive([](SSL* ssl) { return SSL_do_handshake(ssl); });
    if (!error && server_) seal_from_now_on();
    co_return error;
  }

  /// Twice: the first sends our close_notify, the second waits for the peer's.
  Task<void> shutdown() override {
    for (int i = 0; i < 2; ++i) {
      const auto error = co_await drive([](SSL* ssl) {
        const int done = SSL_shutdown(ssl);
        return done == 0 ? 1 : done;
      });
      if (error) break;
    }
    ErrorCode ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void cancel() override {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }
  void close() override { close_socket(socket_); }
  [[nodiscard]] bool is_open() const override { return socket_.is_open(); }
  [[nodiscard]] bool is_quiet() override {
    // Between exchanges nothing is due but the peer's close_notify.
    return SSL_has_pending(ssl_) == 0 && socket_is_quiet(socket_);
  }

  [[nodiscard]] bool chose_http2() const override {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl_, &name, &length);
    return std::string_view(reinterpret_cast<const char*>(name), length) == "h2";
  }

  [[nodiscard]] Peer peer() const override {
    Peer peer;
    peer.address = address_;
    auto* certificate = SSL_get1_peer_certificate(ssl_);
    if (certificate == nullptr) return peer;
    if (server_ && SSL_get_verify_result(ssl_) == X509_V_OK) {
      const auto names = subject_entries(certificate, NID_commonName);
      if (!names.empty()) peer.cert_user = names.front();
      peer.cert_groups = subject_entries(certificate, NID_organizationName);
    }
    X509_free(certificate);
    return peer;
  }

  IoResult read_now(asio::mutable_buffer buffer) override {
    IoResult result;
    if (!socket_.is_open()) {
      result.error = asio::error::bad_descriptor;
      return result;
    }
    // A record at a time, and a server that flushes each answer makes a record of each.
    while (result.bytes < buffer.size()) {
      std::size_t got = 0;
      ERR_clear_error();
      const int done = SSL_read_ex(ssl_,
                                   static_cast<char*>(buffer.data()) + result.bytes,
                                   buffer.size() - result.bytes,
                                   &got);
      if (done != 1) {
        result.error = error_of(done);
        break;
      }
      result.bytes += got;
    }
    return result;
  }

  IoResult write_now(const std::vector<asio::const_buffer>& buffers) override {
    IoResult result;
    if (!socket_.is_open()) {
      result.error = asio::error::bad_descriptor;
      return result;
    }
    wrote_last_ = true;
    if (records_) return write_sealed(buffers);
    char gathered[kRecordBytes];
    Pieces pieces(buffers);
    while (true) {
      const asio::const_buffer piece = pieces.next(gathered, sizeof gathered);
      if (piece.size() == 0) return result;
      std::size_t written = 0;
      ERR_clear_error();
      const int done = SSL_write_ex(ssl_, piece.data(), piece.size(), &written);
      if (done != 1) {
        result.error = error_of(done);
        return result;
      }
      pieces.took(written);
      result.bytes += written;
    }
  }

  void expect_write() const override {
    fetch(&bio_socket_);
    fetch(&rest_);
    if (records_) records_->expect();
  }

 protected:
  void do_read(asio::mutable_buffer buffer, IoOpPtr op) override {
    read_or_wait(buffer, std::move(op), /*inside=*/true);
  }
  void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) override {
    write_or_wait(std::move(buffers), std::move(op), /*inside=*/true);
  }

 private:
  /// The handshake has sent all that it sends, so the next record is the first of its key.
  void seal_from_now_on() {
    records_ = TlsRecords::make(ssl_, std::exchange(secret_, {}));
    if (!records_) return;
    bio_socket_.mute = true;
    SSL_set_msg_callback(ssl_, on_message);
  }

  /// OpenSSL itself has something to say: that we close, that the peer's record was bad, or that
  /// the peer's new key asks for ours.
  static void on_message(
      int sent, int, int type, const void* data, std::size_t size, SSL* ssl, void*) {
    if (sent == 0 || (type != SSL3_RT_ALERT && type != SSL3_RT_HANDSHAKE)) return;
    auto& self = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
    const std::string_view text(static_cast<const char*>(data), size);
    char record[kSealedBytes];
    if (text.size() > kRecordBytes) return;
    self.rest_.append(record, self.records_->seal(static_cast<std::uint8_t>(type), text, record));
    if (type == SSL3_RT_HANDSHAKE && text.front() == SSL3_MT_KEY_UPDATE)
      self.records_->update_key();
    if (self.rest_text_ == 0)
      (void)self.send_rest();  // what the socket does not take goes before the next write
    if (self.rest_.size() > kRestBytesMax)
      ::shutdown(self.bio_socket_.descriptor, SHUT_RDWR);  // asks for keys and does not read
  }

  /// As the caller of write_now() wants it: a record that the socket did not take whole counts as
  /// not taken, and the same text comes again at the beginning of the next write.
  IoResult write_sealed(const std::vector<asio::const_buffer>& buffers) {
    IoResult result;
    if (!rest_.empty()) {
      result.error = send_rest();
      if (result.error) return result;
      result.bytes = std::exchange(rest_text_, 0);
    }
    char record[kSealedBytes];
    char* const room = record + TlsRecords::kHeadBytes;
    Pieces pieces(buffers);
    pieces.took(result.bytes);
    while (true) {
      const asio::const_buffer piece = pieces.next(room, kRecordBytes);
      if (piece.size() == 0) return result;
      const std::string_view text(static_cast<const char*>(piece.data()),
                                  std::min(piece.size(), kRecordBytes));
      const std::size_t size = records_->seal(SSL3_RT_APPLICATION_DATA, text, record);
      const auto sent = ::send(bio_socket_.descriptor, record, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent != static_cast<ssize_t>(size)) {
        result.error = send_error(sent);
        rest_.assign(record + std::max<ssize_t>(sent, 0), record + size);
        rest_text_ = text.size();
        return result;
      }
      pieces.took(text.size());
      result.bytes += text.size();
    }
  }

  ErrorCode send_rest() {
    const auto sent =
        ::send(bio_socket_.descriptor, rest_.data(), rest_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const bool all = sent == static_cast<ssize_t>(rest_.size());
    const ErrorCode error = all ? ErrorCode{} : send_error(sent);
    if (all) {
      rest_ = {};
    } else if (sent > 0) {
      rest_.erase(0, static_cast<std::size_t>(sent));
    }
    return error;
  }

  static ErrorCode send_error(ssize_t sent) {
    if (sent >= 0 || errno == EAGAIN || errno == EINTR) return asio::error::would_block;
    return ErrorCode(errno, boost::system::system_category());
  }

  /// Answers an operation; never inside the call that started it.
  void finish(IoOpPtr op, IoResult result, bool inside) {
    if (!inside) {
      op->done(result.error, result.bytes);
      return;
    }
    asio::post(socket_.get_executor(), [self = shared_from_this(), op = std::move(op), result] {
      op->done(result.error, result.bytes);
    });
  }

  void read_or_wait(asio::mutable_buffer buffer, IoOpPtr op, bool inside) {
    IoResult result;
    if (!socket_.is_open()) {
      result.error = asio::error::operation_aborted;
      finish(std::move(op), result, inside);
      return;
    }
    // Peers speak in turns: after a write nothing of theirs can be here yet, and asking would cost
    // a call of the kernel.
    const bool early = std::exchange(wrote_last_, false) && SSL_has_pending(ssl_) == 0;
    if (!early) {
      ERR_clear_error();
      const int done = SSL_read_ex(ssl_, buffer.data(), buffer.size(), &result.bytes);
      if (done != 1) result.error = error_of(done);
      if (result.error != asio::error::would_block) {
        finish(std::move(op), result, inside);
        return;
      }
    }
    const auto want = early ? tcp::socket::wait_read : wanted();
    socket_.async_wait(want,
                       [this, self = shared_from_this(), buffer, op = std::move(op)](
                           const ErrorCode& error) mutable {
                         if (error) {
                           op->done(error, 0);
                         } else {
                           read_or_wait(buffer, std::move(op), /*inside=*/false);
                         }
                       });
  }

  void write_or_wait(std::vector<asio::const_buffer> buffers, IoOpPtr op, bool inside) {
    IoResult result = write_now(buffers);
    if (result.bytes > 0) result.error = {};
    if (result.error != asio::error::would_block) {
      finish(std::move(op), result, inside);
      return;
    }
    const auto want = records_ ? tcp::socket::wait_write : wanted();
    socket_.async_wait(
        want,
        [this, self = shared_from_this(), buffers = std::move(buffers), op = std::move(op)](
            const ErrorCode& error) mutable {
          if (error) {
            op->done(error, 0);
          } else {
            write_or_wait(std::move(buffers), std::move(op), /*inside=*/false);
          }
        });
  }

  /// Repeats a call of OpenSSL until it neither wants to read nor to write.
  Task<ErrorCode> drive(int (*step)(SSL*)) {
    const auto self = shared_from_this();
    while (true) {
      if (!socket_.is_open()) co_return asio::error::operation_aborted;
      ERR_clear_error();
      const int done = step(ssl_);
      if (done == 1) co_return ErrorCode{};
      const ErrorCode error = error_of(done);
      if (error != asio::error::would_block) co_return error;
      const auto [waited] = co_await socket_.async_wait(wanted(), kAwaitTuple);
      if (waited) co_return waited;
    }
  }

  [[nodiscard]] tcp::socket::wait_type wanted() const {
    return SSL_want_write(ssl_) ? tcp::socket::wait_write : tcp::socket::wait_read;
  }

  /// would_block when OpenSSL waits for the socket.
  [[nodiscard]] ErrorCode error_of(int done) const {
    const int failed = errno;
    switch (SSL_get_error(ssl_, done)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return asio::error::would_block;
      case SSL_ERROR_ZERO_RETURN:
        return asio::error::eof;
      case SSL_ERROR_SYSCALL:
        if (failed == 0) return asio::error::eof;
        return ErrorCode(failed, boost::system::system_category());
      default:
        return ErrorCode(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category());
    }
  }

  std::shared_ptr<TlsContext> tls_;
  tcp::socket socket_;
  BioSocket bio_socket_;
  SSL* ssl_;
  bool server_;
  std::string address_;

  std::string secret_;  // of what we send, during a handshake
  std::unique_ptr<TlsRecords> records_;
  std::string rest_;           // sealed, and not taken by the socket
  std::size_t rest_text_ = 0;  // what they hold of the next write's text
  bool wrote_last_ = false;    // since the last read
};

asio::const_buffer pem(const std::string& text) { return {text.data(), text.size()}; }

Result<void> use_key_pair(asio::ssl::context& context,
                          const std::string& certificate,
                          const std::string& key) {
  ErrorCode error;
  context.use_certificate_chain(pem(certificate), error);
  if (error)
    return fail(Code::kInvalid,
                fmt::format("TLS certificate is not usable PEM: {}", error.message()));
  context.use_private_key(pem(key), asio::ssl::context::pem, error);
  if (error)
    return fail(Code::kInvalid,
                fmt::format("TLS key is not usable PEM or does not fit its certificate: {}",
                            error.message()));
  return {};
}

void harden(asio::ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  // Without resumption every handshake verifies the client's certificate itself. Peers often leave
  // without close_notify; lengths and chunk ends tell a whole message from a cut one.
  SSL_CTX_set_options(context.native_handle(),
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
  // A write that the socket did not take whole is repeated from elsewhere in memory.
  SSL_CTX_set_mode(context.native_handle(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.native_handle(), 1);
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

Result<std::shared_ptr<TlsContext>> make_tls_server(const TlsServerOptions& options) {
  auto tls = std::make_shared<TlsContext>(asio::ssl::context::tls_server);
  harden(tls->context);
  // Tickets are for resumption; and without them the first record after the handshake is one of
  // ours.
  SSL_CTX_set_num_tickets(tls->context.native_handle(), 0);
  SSL_CTX_set_keylog_callback(tls->context.native_handle(), TlsStream::on_secret);
  auto pair = use_key_pair(tls->context, options.certificate_pem, options.key_pem);
  if (!pair) return tl::unexpected(std::move(pair.error()));
  if (!options.client_ca_pem.empty()) {
    auto added = add_authorities(tls->context, options.client_ca_pem);
    if (!added) return tl::unexpected(std::move(added.error()));
    // A certificate is asked for but not demanded, and a bad one does not end the handshake: its
    // holder is then nobody in particular and gets an HTTP answer that says so.
    SSL_CTX_set_verify(
        tls->context.native_handle(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  }
  return tls;
}

Result<std::shared_ptr<TlsContext>> make_tls_client(const TlsClientOptions& options) {
  auto tls = std::make_shared<TlsContext>(asio::ssl::context::tls_client);
  harden(tls->context);
  // A client has few connections and keeps them busy: their buffers stay.
  SSL_CTX_clear_mode(tls->context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
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
    if (error)
      return fail(Code::kInternal,
                  fmt::format("the system's CA certificates cannot be read: {}", error.message()));
    return tls;
  }
  auto added = add_authorities(tls->context, options.ca_pem);
  if (!added) return tl::unexpected(std::move(added.error()));
  return tls;
}

std::shared_ptr<Stream> make_tls_server_stream(tcp::socket socket,
                                               std::shared_ptr<TlsContext> tls) {
  return std::make_shared<TlsStream>(std::move(socket), std::move(tls), /*server=*/true);
}

std::shared_ptr<Stream> make_tls_client_stream(tcp::socket socket,
                                               std::shared_ptr<TlsContext> tls,
                                               const std::string& name,
                                               bool offer_http2) {
  auto stream = std::make_shared<TlsStream>(std::move(socket), std::move(tls), /*server=*/false);
  ErrorCode error;
  asio::ip::make_address(name, error);
  SSL* ssl = stream->ssl();
  if (error) {
    SSL_set_tlsext_host_name(ssl, name.c_str());
    SSL_set1_host(ssl, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str());
  }
  if (offer_http2) {
    constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
    SSL_set_alpn_protos(stream->ssl(), kProtocols, sizeof kProtocols - 1);
  }
  return stream;
}

}  // namespace muster::net
