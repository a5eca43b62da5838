/// Our HTTP/2 client beside one made of libnghttp2: CPU time of the client's thread per request.
///
///   http2_bench [rounds]
///
/// Both send their requests into a stream in memory that forgets them, and read the same answers,
/// which a server of libnghttp2 has made before the clock starts. So nothing is measured but
/// frames, HPACK, flow control and the bookkeeping of requests under way. Both gather what one turn
/// of the loop asks for into one write. Of all rounds the best counts.
#include <fmt/core.h>
#include <nghttp2/nghttp2.h>
#include <time.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/strings.h"
#include "net/http2/http2.h"
#include "net/loop/loop.h"

namespace {

using namespace muster;
using namespace muster::net;

constexpr int kBatch = 100;  // requests under way at a time
constexpr std::string_view kAuthority = "127.0.0.1:6443";

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

void expect(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "http2_bench: {}\n", what);
  std::exit(1);
}

struct Work {
  const char* name;
  std::string method;
  std::string body;         // of the request
  std::size_t answer_size;  // of the answer's body
  int batches;
  int per_batch;
  int status;
};

std::string target_of(int i) {
  return fmt::format("/api/v1/namespaces/default/pods/train-worker-{}/binding", i);
}

std::shared_ptr<const CommonHead> common_head(const Work& work) {
  auto head = std::make_shared<CommonHead>();
  head->method = work.method;
  head->headers.set("Accept", "application/json");
  head->headers.set("User-Agent", "muster-scheduler");
  head->headers.set("Authorization", "Bearer " + std::string(300, 't'));
  if (!work.body.empty()) head->headers.set("Content-Type", "application/json");
  return head;
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  nghttp2_nv out{};
  out.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data()));
  out.namelen = name.size();
  out.value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data()));
  out.valuelen = value.size();
  out.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return out;
}

/// A body that is sent from a string.
struct Source {
  std::string text;
  std::size_t sent = 0;
};

ssize_t read_source(nghttp2_session*,
                    std::int32_t,
                    std::uint8_t* out,
                    std::size_t most,
                    std::uint32_t* flags,
                    nghttp2_data_source* source,
                    void*) {
  auto& from = *static_cast<Source*>(source->ptr);
  const std::size_t bytes = std::min(most, from.text.size() - from.sent);
  std::memcpy(out, from.text.data() + from.sent, bytes);
  from.sent += bytes;
  if (from.sent == from.text.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(bytes);
}

std::string take_output(nghttp2_session* session) {
  std::string out;
  const std::uint8_t* bytes = nullptr;
  for (ssize_t n = 0; (n = nghttp2_session_mem_send(session, &bytes)) > 0;)
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
  return out;
}

// ------------------------------------------------------------------------------ the library's client

/// The same promises as Http2Connection::submit: posted writes, a call per stream with a deadline,
/// `done` after the answer.
class LibraryConnection : public std::enable_shared_from_this<LibraryConnection> {
 public:
  using Done = std::function<void(int status, std::size_t bytes)>;

  explicit LibraryConnection(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7fffffff}};
    nghttp2_submit_settings(session_, 0, settings, 2);
    nghttp2_session_set_local_window_size(session_, 0, 0, 0x7fffffff);
  }
  ~LibraryConnection() { nghttp2_session_del(session_); }

  void start() {
    asio::co_spawn(stream_->context(), read_all(shared_from_this()), asio::detached);
    flush_later();
  }

  void submit(const CommonHead& head, std::string_view target, std::string body, Done done) {
    auto call = std::make_unique<Call>();
    call->source.text = std::move(body);
    call->done = std::move(done);
    call->deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    call->target = target;
    if (fields_.empty()) set_head(head);
    fields_[3] = field(":path", call->target);
    nghttp2_data_provider provider{{.ptr = &call->source}, read_source};
    const auto id = nghttp2_submit_request(session_,
                                           nullptr,
                                           fields_.data(),
                                           fields_.size(),
                                           call->source.text.empty() ? nullptr : &provider,
                                           call.get());
    expect(id > 0, "submit_request failed");
    calls_[id] = std::move(call);
    flush_later();
  }

 private:
  struct Call {
    Source source;
    std::string target;
    int status = 0;
    Headers headers;
    std::string body;
    std::chrono::steady_clock::time_point deadline;
    Done done;
  };

  /// What all requests have in common, once. Nothing of it is copied: it lives as long as they do.
  void set_head(const CommonHead& head) {
    for (const auto& [name, value] : head.headers.fields()) names_.push_back(to_lower(name));
    fields_ = {field(":method", head.method),
               field(":scheme", "https"),
               field(":authority", kAuthority),
               field(":path", "")};
    std::size_t at = 0;
    for (const auto& [name, value] : head.headers.fields())
      fields_.push_back(field(names_[at++], value));
  }

  static int on_header(nghttp2_session* session,
                       const nghttp2_frame* frame,
                       const std::uint8_t* name,
                       std::size_t name_size,
                       const std::uint8_t* value,
                       std::size_t value_size,
                       std::uint8_t,
                       void*) {
    auto* call =
        static_cast<Call*>(nghttp2_session_get_stream_user_data(session, frame->hd.stream_id));
    if (call == nullptr) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status")
      call->status = static_cast<int>(parse_int(text).value_or(0));
    else if (call->status != 201)
      call->headers.add(std::string(key), std::string(text));
    return 0;
  }
  static int on_data(nghttp2_session* session,
                     std::uint8_t,
                     std::int32_t id,
                     const std::uint8_t* bytes,
                     std::size_t size,
                     void*) {
    auto* call = static_cast<Call*>(nghttp2_session_get_stream_user_data(session, id));
    if (call != nullptr && call->status != 201)
      call->body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* self) {
    auto& connection = *static_cast<LibraryConnection*>(self);
    connection.finished_.push_back(id);
    if (connection.finished_.size() == 1)
      asio::post(connection.stream_->context(),
                 [held = connection.shared_from_this()] { held->deliver(); });
    return 0;
  }
  void deliver() {
    for (const auto id : std::exchange(finished_, {})) {
      const auto found = calls_.find(id);
      if (found == calls_.end()) continue;
      const auto call = std::move(found->second);
      calls_.erase(found);
      call->done(call->status, call->body.size());
    }
  }

  void flush_later() {
    if (std::exchange(flushing_, true)) return;
    asio::post(stream_->context(), [self = shared_from_this()] {
      asio::co_spawn(self->stream_->context(), self->flush(self), asio::detached);
    });
  }
  Task<void> flush(std::shared_ptr<LibraryConnection> self) {
    while (nghttp2_session_want_write(session_) != 0) {
      writing_ = take_output(session_);
      if (writing_.empty()) break;
      const auto error = co_await stream_->write_all(writing_);
      if (error) break;
    }
    flushing_ = false;
  }
  Task<void> read_all(std::shared_ptr<LibraryConnection> self) {
    constexpr std::size_t kReadBytes = 64 * 1024;
    const auto chunk = std::make_unique_for_overwrite<char[]>(kReadBytes);
    while (true) {
      const auto got = co_await stream_->read_some(asio::mutable_buffer(chunk.get(), kReadBytes));
      if (got.error) break;
      const auto used = nghttp2_session_mem_recv(
          session_, reinterpret_cast<const std::uint8_t*>(chunk.get()), got.bytes);
      expect(used == static_cast<ssize_t>(got.bytes), "mem_recv failed");
      if (nghttp2_session_want_write(session_) != 0) flush_later();
    }
  }

  std::shared_ptr<Stream> stream_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::unique_ptr<Call>> calls_;
  std::vector<std::int32_t> finished_;
  std::vector<nghttp2_nv> fields_;
  std::vector<std::string> names_;
  std::string writing_;
  bool flushing_ = false;
};

// ----------------------------------------------------------------------------- what the server said

/// The server's bytes: its settings, and then the answers batch by batch.
struct Recording {
  std::string settings;
  std::vector<std::string> batches;
};

struct ServerSide {
  const Work& work;
  std::vector<std::int32_t> asked;
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    const bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (ended && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
      static_cast<ServerSide*>(self)->asked.push_back(frame->hd.stream_id);
    return 0;
  }
};

Recording record(const Work& work) {
  ServerSide side{work, {}};
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, ServerSide::on_frame);
  nghttp2_session *server = nullptr, *client = nullptr;
  nghttp2_session_server_new(&server, callbacks, &side);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_client_new(&client, callbacks, nullptr);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry most{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 250};
  const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7fffffff};
  nghttp2_submit_settings(server, 0, &most, 1);
  nghttp2_submit_settings(client, 0, &window, 1);
  nghttp2_session_set_local_window_size(client, 0, 0, 0x7fffffff);
  const auto feed = [](nghttp2_session* to, const std::string& bytes) {
    const auto used = nghttp2_session_mem_recv(
        to, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    expect(used == static_cast<ssize_t>(bytes.size()), "the recorder's session failed");
  };
  Recording out;
  feed(server, take_output(client));
  out.settings = take_output(server);
  feed(client, out.settings);
  const auto head = common_head(work);
  const std::string status = std::to_string(work.status);
  for (int batch = 0; batch < work.batches; ++batch) {
    std::vector<std::unique_ptr<Source>> bodies;
    for (int i = 0; i < work.per_batch; ++i) {
      const std::string target = target_of(i);
      std::vector<nghttp2_nv> fields{field(":method", work.method),
                                     field(":scheme", "https"),
                                     field(":authority", kAuthority),
                                     field(":path", target)};
      for (auto& each : fields) each.flags = NGHTTP2_NV_FLAG_NONE;
      bodies.push_back(std::make_unique<Source>(Source{work.body, 0}));
      nghttp2_data_provider provider{{.ptr = bodies.back().get()}, read_source};
      nghttp2_submit_request(client,
                             nullptr,
                             fields.data(),
                             fields.size(),
                             work.body.empty() ? nullptr : &provider,
                             nullptr);
    }
    feed(server, take_output(client));
    std::vector<std::unique_ptr<Source>> answers;
    for (const auto id : std::exchange(side.asked, {})) {
      const std::string audit = fmt::format("6f99fc88-67a2-4503-bc38-45707{:07d}", id);
      const std::string length = std::to_string(work.answer_size);
      std::vector<nghttp2_nv> fields{field(":status", status),
                                     field("audit-id", audit),
                                     field("cache-control", "no-cache, private"),
                                     field("content-type", "application/json"),
                                     field("content-length", length),
                                     field("date", "Mon, 16 Nov 2026 15:00:00 GMT")};
      for (auto& each : fields) each.flags = NGHTTP2_NV_FLAG_NONE;
      answers.push_back(std::make_unique<Source>(Source{std::string(work.answer_size, 'x'), 0}));
      nghttp2_data_provider provider{{.ptr = answers.back().get()}, read_source};
      nghttp2_submit_response(server, id, fields.data(), fields.size(), &provider);
    }
    std::string bytes = take_output(server);
    // Large answers wait for the client's credit.
    while (true) {
      feed(client, bytes);
      if (out.batches.size() == static_cast<std::size_t>(batch)) out.batches.emplace_back();
      out.batches.back() += bytes;
      feed(server, take_output(client));
      bytes = take_output(server);
      if (bytes.empty()) break;
    }
  }
  nghttp2_session_del(server);
  nghttp2_session_del(client);
  return out;
}

// ---------------------------------------------------------------------------------------- the stream

/// Forgets what is written; what is read is what feed() was given.
class MemoryStream final : public Stream {
 public:
  explicit MemoryStream(asio::io_context& context) : context_(context) {}
  void feed(const std::string& bytes) {
    given_ = &bytes;
    at_ = 0;
    if (reading_) give(std::move(reading_));
  }
  asio::io_context& context() override { return context_; }
  IoResult write_now(const std::vector<asio::const_buffer>& buffers) override {
    return {{}, asio::buffer_size(buffers)};
  }
  IoResult read_now(asio::mutable_buffer buffer) override {
    const std::size_t bytes = copy(buffer);
    return {bytes == 0 ? ErrorCode(asio::error::would_block) : ErrorCode(), bytes};
  }
  Task<ErrorCode> handshake() override { co_return ErrorCode(); }
  Task<void> shutdown() override { co_return; }
  void cancel() override {}
  void close() override {
    open_ = false;
    if (reading_)
      asio::post(context_,
                 [op = std::move(reading_)] { op->done(asio::error::operation_aborted, 0); });
  }
  [[nodiscard]] bool is_open() const override { return open_; }
  [[nodiscard]] bool is_quiet() override { return true; }
  [[nodiscard]] Peer peer() const override { return {}; }

 protected:
  void do_read(asio::mutable_buffer buffer, IoOpPtr op) override {
    buffer_ = buffer;
    if (given_ != nullptr && at_ < given_->size())
      give(std::move(op));
    else
      reading_ = std::move(op);
  }
  void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) override {
    const std::size_t bytes = asio::buffer_size(buffers);
    asio::post(context_, [op = std::move(op), bytes] { op->done({}, bytes); });
  }

 private:
  std::size_t copy(asio::mutable_buffer buffer) {
    if (given_ == nullptr) return 0;
    const std::size_t bytes = std::min(buffer.size(), given_->size() - at_);
    std::memcpy(buffer.data(), given_->data() + at_, bytes);
    at_ += bytes;
    return bytes;
  }
  void give(IoOpPtr op) {
    const std::size_t bytes = copy(buffer_);
    asio::post(context_, [op = std::move(op), bytes] { op->done({}, bytes); });
  }

  asio::io_context& context_;
  const std::string* given_ = nullptr;
  std::size_t at_ = 0;
  asio::mutable_buffer buffer_;
  IoOpPtr reading_;
  bool open_ = true;
};

// --------------------------------------------------------------------------------------- measuring

/// Microseconds of CPU for each request of the work. `ask` sends request i and calls back at its
/// end.
using Ended = std::function<void()>;
using Ask = std::function<void(int i, Ended ended)>;

Task<double> measure(
    Loop& loop, MemoryStream& stream, const Recording& recording, const Work& work, Ask ask) {
  const std::shared_ptr<Signal> done = loop.make_signal();
  stream.feed(recording.settings);
  co_await loop.sleep(std::chrono::milliseconds(5));
  const double begun = cpu_us();
  for (const std::string& answers : recording.batches) {
    int left = work.per_batch;
    for (int i = 0; i < work.per_batch; ++i) {
      ask(i, [&left, &done] {
        if (--left == 0) done->notify();
      });
    }
    asio::post(loop.context(), [&] { stream.feed(answers); });
    const bool ended = co_await done->wait(std::chrono::seconds(30));
    expect(ended, "answers are missing");
  }
  co_return (cpu_us() - begun) / (work.batches * work.per_batch);
}

Task<double> ours(Loop& loop, const Recording& recording, const Work& work) {
  const auto stream = std::make_shared<MemoryStream>(loop.context());
  const auto connection = start_http2(stream, std::string(kAuthority), "", nullptr);
  const auto head = common_head(work);
  const Ask submit = [&](int i, Ended ended) {
    connection->submit(head,
                       target_of(i),
                       work.body,
                       std::chrono::seconds(60),
                       [&work, ended = std::move(ended)](const Result<Response>& answer, bool) {
                         expect(answer && answer->status == work.status, "our answer is wrong");
                         ended();
                       });
  };
  const Ask get = [&](int i, Ended ended) {
    loop.spawn(
        [](Http2Connection& c, const CommonHead& h, const Work& w, int n, Ended end) -> Task<void> {
          Request request{h.method, target_of(n), h.headers, "", {}};
          bool untouched = false;
          const auto answer =
              co_await c.request(std::move(request), std::chrono::seconds(60), untouched);
          expect(answer && answer->body.size() == w.answer_size, "our answer is wrong");
          end();
        }(*connection, *head, work, i, std::move(ended)));
  };
  const double us =
      co_await measure(loop, *stream, recording, work, work.body.empty() ? get : submit);
  connection->close();
  co_await loop.sleep(std::chrono::milliseconds(1));
  co_return us;
}

Task<double> librarys(Loop& loop, const Recording& recording, const Work& work) {
  const auto stream = std::make_shared<MemoryStream>(loop.context());
  const auto connection = std::make_shared<LibraryConnection>(stream);
  connection->start();
  const auto head = common_head(work);
  const double us = co_await measure(loop, *stream, recording, work, [&](int i, Ended ended) {
    connection->submit(*head,
                       target_of(i),
                       work.body,
                       [&work, ended = std::move(ended)](int status, std::size_t bytes) {
                         expect(
                             status == work.status && (status == 201 || bytes == work.answer_size),
                             "the library's answer is wrong");
                         ended();
                       });
  });
  stream->close();
  co_await loop.sleep(std::chrono::milliseconds(1));
  co_return us;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::string binding =
      R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"train-worker-7"},)"
      R"("target":{"apiVersion":"v1","kind":"Node","name":"node-12"}})";
  const Work works[] = {
      {"POST of a binding, answer of 200 bytes", "POST", binding, 200, 200, kBatch, 201},
      {"GET of an object of 2 KiB", "GET", "", 2048, 200, kBatch, 200},
      {"GET of a list of 1 MiB", "GET", "", 1024 * 1024, 40, 4, 200}};
  Loop loop;
  fmt::print(
      "| CPU µs of the client for each request | by hand | libnghttp2 {} | library / by hand |\n",
      NGHTTP2_VERSION);
  fmt::print("|---|---|---|---|\n");
  for (const Work& work : works) {
    const Recording recording = record(work);
    double hand = 1e18, library = 1e18;
    loop.run_until_done(
        [](Loop& l, const Recording& r, const Work& w, int n, double& a, double& b) -> Task<void> {
          for (int i = 0; i < n; ++i) {
            const double first = co_await ours(l, r, w);
            const double second = co_await librarys(l, r, w);
            a = std::min(a, first);
            b = std::min(b, second);
          }
        }(loop, recording, work, rounds, hand, library));
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} |\n", work.name, hand, library, library / hand);
  }
  return 0;
}
