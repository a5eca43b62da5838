/// The client over HTTP: paths, queries, media types, retries, and watches as streams of text.
#include <fmt/core.h>

#include "base/strings.h"
#include "client/bearer.h"
#include "client/client.h"
#include "client/watch_frames.h"
#include "client/watch_text.h"
#include "kube/meta.h"
#include "net/http/submit.h"

namespace muster::client {
namespace {

constexpr int kTriesMax = 5;
constexpr std::int64_t kRetryAfterMax_s = 30;
/// How long the events of a busy watch are gathered.
constexpr auto kGather = std::chrono::milliseconds(5);
/// An event of a watch stream holds one object; the server's own limit on objects is far below.
constexpr std::size_t kWatchEventBytesMax = 64 * 1024 * 1024;
/// Protobuf if the server has it: half the server's work for a watch, and less of ours. What else
/// there is comes as JSON.
constexpr std::string_view kFrames = "application/vnd.kubernetes.protobuf";
constexpr const char* kFramesOrLines =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json";

/// The kinds whose number makes a difference. The others are few, and some are written back as they
/// were read, where JSON loses nothing.
bool comes_by_the_thousand(const Resource& resource) {
  return resource.group.empty() && (resource.plural == "pods" || resource.plural == "nodes");
}

std::int64_t retry_after_s(const net::Response& response) {
  return parse_int(trim(response.headers.get("Retry-After"))).value_or(0);
}

Error error_of(int http_status, std::string_view body, std::string_view what) {
  const auto parsed = json::parse(body);
  if (parsed && json::string_at(*parsed, "kind") == "Status")
    return error_of_status(*parsed, http_status);
  constexpr std::size_t kShownMax = 300;
  Error error;
  error.code = code_of("", http_status);
  error.message = fmt::format(
      "{}: the server answered {}: {}", what, http_status, trim(body).substr(0, kShownMax));
  return error;
}

class Query {
 public:
  Query& add(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_.append(key).append("=").append(percent_encode(value));
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Lists of built-in kinds leave kind and apiVersion out of their items; everybody downstream wants
/// them.
void name_kind(json::Value& object, const Resource& resource) {
  if (!object.is_object()) return;
  auto& fields = object.as_object();
  if (fields.find("apiVersion") == fields.end()) fields["apiVersion"] = resource.api_version();
  if (fields.find("kind") == fields.end()) fields["kind"] = resource.kind;
}

class RestClient final : public Client {
 public:
  RestClient(Env& env, std::unique_ptr<net::Client> http, ClientOptions options)
      : env_(env),
        http_(std::move(http)),
        user_agent_(std::move(options.user_agent)),
        default_namespace_(std::move(options.default_namespace)),
        bearer_(env,
                {std::move(options.token),
                 std::move(options.token_file),
                 std::move(options.token_command),
                 options.token_expires}) {}

  Task<Result<json::Value>> get(const Resource& resource,
                                std::string ns,
                                std::string name) override {
    auto answer = co_await send("GET", object_path(resource, ns, name, ""), nullptr, "");
    co_return answer;
  }

  Task<Result<List>> list(const Resource& resource, ListOptions options) override {
    const Resource kind = resource;  // the caller's may be a temporary
    List out;
    std::string next;
    while (true) {
      Query query;
      query.add("labelSelector", options.label_selector)
          .add("fieldSelector", options.field_selector);
      if (next.empty()) query.add("resourceVersion", options.resource_version);
      if (options.limit > 0) query.add("limit", std::to_string(options.limit));
      query.add("continue", next);
      auto answer = co_await send("GET", kind.path(options.ns) + query.text(), nullptr, "");
      if (!answer && !next.empty() &&
          (answer.error().code == Code::kExpired || answer.error().code == Code::kGone)) {
        // The snapshot of the first page is forgotten: once more, in one piece.
        out.items.clear();
        next.clear();
        options.limit = 0;
        continue;
      }
      if (!answer) co_return tl::unexpected(std::move(answer.error()));
      if (out.items.empty())
        out.resource_version = json::text_at(*answer, "metadata", "resourceVersion");
      next = json::text_at(*answer, "metadata", "continue");
      auto* items = answer->is_object() ? answer->as_object().if_contains("items") : nullptr;
      if (items != nullptr && items->is_array()) {
        out.items.reserve(out.items.size() + items->as_array().size());
        for (auto& item : items->as_array()) {
          name_kind(item, kind);
          out.items.push_back(std::move(item));
        }
      }
      if (next.empty()) co_return out;
    }
  }

  Task<Result<json::Value>> create(const Resource& resource,
                                   std::string ns,
                                   json::Value object,
                                   Answer wanted) override {
    auto answer =
        co_await send("POST", resource.path(ns), std::move(object), "application/json", wanted);
    co_return answer;
  }

  Task<Result<json::Value>> update(const Resource& resource, json::Value object) override {
    auto answer = co_await put(resource, std::move(object), "");
    co_return answer;
  }
  Task<Result<json::Value>> update_status(const Resource& resource, json::Value object) override {
    auto answer = co_await put(resource, std::move(object), "status");
    co_return answer;
  }

  Task<Result<json::Value>> patch(const Resource& resource,
                                  std::string ns,
                                  std::string name,
                                  std::string subresource,
                                  PatchType type,
                                  json::Value patch,
                                  Answer wanted) override {
    auto target = object_path(resource, ns, name, subresource);
    if (type == PatchType::kApply) {
      Query query;
      query.add("fieldManager", user_agent_).add("force", "true");
      target += query.text();
    }
    auto answer = co_await send(
        "PATCH", std::move(target), std::move(patch), kube::media_type_of(type), wanted);
    co_return answer;
  }

  Task<Result<void>> remove(const Resource& resource,
                            std::string ns,
                            std::string name,
                            DeleteOptions options) override {
    json::Object body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
    if (options.grace_s >= 0) body["gracePeriodSeconds"] = options.grace_s;
    if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
    if (!options.uid.empty()) body["preconditions"] = json::Object{{"uid", options.uid}};
    auto answer = co_await send("DELETE",
                                object_path(resource, ns, name, ""),
                                json::Value(std::move(body)),
                                "application/json",
                                Answer::kNone);
    if (!answer) co_return tl::unexpected(std::move(answer.error()));
    co_return Result<void>{};
  }

  Task<Result<json::Value>> post_subresource(const Resource& resource,
                                             std::string ns,
                                             std::string name,
                                             std::string subresource,
                                             json::Value body,
                                             Answer wanted) override {
    auto answer = co_await send("POST",
                                object_path(resource, ns, name, subresource),
                                std::move(body),
                                "application/json",
                                wanted);
    co_return answer;
  }

  void submit(Post post, std::function<void(Result<void>)> done) override {
    auto submission = std::make_shared<Submission>();
    submission->target = post.name.empty()
                             ? post.resource.path(post.ns)
                             : object_path(post.resource, post.ns, post.name, post.subresource);
    submission->body = std::move(post.body);
    submission->text = std::move(post.text);
    submission->done = std::move(done);
    net::Submitter* const submitter = net::submitter_of(*http_);
    if (submitter == nullptr || bearer_.expires_soon()) {
      env_.spawn(submit_slowly(std::move(submission), 0));
      return;
    }
    auto text = submission->text.empty() ? json::dump(submission->body) : submission->text;
    submitter->submit(common_head(),
                      submission->target,
                      std::move(text),
                      [this, submission](Result<net::Response> answer) {
                        if (!answer)
                          return submission->done(tl::unexpected(std::move(answer.error())));
                        if (answer->status >= 200 && answer->status < 300)
                          return submission->done({});
                        const auto wait_s = retry_after_s(*answer);
                        const bool busy = (answer->status == 429 || answer->status >= 500) &&
                                          wait_s > 0 && wait_s <= kRetryAfterMax_s;
                        if (!busy && answer->status != 401)
                          return submission->done(fail(error_of(
                              answer->status, answer->body, "POST " + submission->target)));
                        env_.spawn(submit_slowly(submission, busy ? wait_s : 0));
                      });
  }

  Task<Result<json::Value>> raw(std::string method, std::string target, json::Value body) override {
    const std::string_view type = body.is_null()      ? ""
                                  : method == "PATCH" ? "application/merge-patch+json"
                                                      : "application/json";
    auto answer = co_await send(std::move(method), std::move(target), std::move(body), type);
    co_return answer;
  }

  Task<Result<void>> watch(Resource resource,
                           WatchOptions how,
                           std::function<bool(WatchEvent)> each) override {
    const ListOptions& options = how.list;
    Query query;
    query.add("watch", "true")
        .add("allowWatchBookmarks", "true")
        .add("resourceVersion", options.resource_version);
    if (how.initial_events)
      query.add("sendInitialEvents", "true").add("resourceVersionMatch", "NotOlderThan");
    query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
    query.add("timeoutSeconds", std::to_string(300 + env_.random() % 300));
    const auto target = resource.path(options.ns) + query.text();
    co_await bearer_.renew(/*refused=*/false);
    auto request = make_request("GET", target);
    if (comes_by_the_thousand(resource)) request.headers.set("Accept", kFramesOrLines);
    const auto what = fmt::format("watch {}", request.target);
    auto opened = co_await open(std::move(request));
    if (!opened) co_return tl::unexpected(std::move(opened.error()));
    const std::shared_ptr<net::ResponseStream> stream = std::move(opened->stream);
    if (stream->status() != 200) {
      const auto body = co_await read_body(*stream);
      co_return fail(error_of(stream->status(), body, what));
    }
    const OnStop on_stop(options.stop, stream);
    const WatchFormat format{what, how.managed_fields};
    if (stream->headers().get("Content-Type").starts_with(kFrames)) {
      auto ended =
          co_await follow_pieces(*stream, options, each, WatchFrames(), format, opened->paced);
      co_return ended;
    }
    auto ended =
        co_await follow_pieces(*stream, options, each, WatchLines(), format, opened->paced);
    co_return ended;
  }

  net::Client& http() override { return *http_; }
  [[nodiscard]] bool sends_text() const override { return true; }
  [[nodiscard]] std::string default_namespace() const override { return default_namespace_; }

 private:
  struct Submission {
    std::string target;
    json::Value body;
    std::string text;  // instead of body
    std::function<void(Result<void>)> done;
  };

  Task<Result<net::Submitter::Opened>> open(net::Request request) {
    if (net::Submitter* const submitter = net::submitter_of(*http_)) {
      auto beside = co_await submitter->stream_beside(std::move(request));
      co_return beside;
    }
    auto alone = co_await http_->stream(std::move(request));
    if (!alone) co_return tl::unexpected(std::move(alone.error()));
    co_return net::Submitter::Opened{std::move(*alone), false};
  }

  /// With a coroutine, which knows how to wait for a busy server and how to renew a token.
  Task<void> submit_slowly(std::shared_ptr<Submission> submission, std::int64_t wait_s) {
    if (wait_s > 0) co_await env_.sleep(std::chrono::seconds(wait_s));
    if (!submission->text.empty()) {
      auto body = json::parse(submission->text);
      MUSTER_CHECK(body, "a body that was composed as text is not JSON");
      submission->body = std::move(*body);
    }
    const auto answer = co_await send(
        "POST", submission->target, std::move(submission->body), "application/json", Answer::kNone);
    if (answer)
      submission->done({});
    else
      submission->done(fail(answer.error()));
  }

  /// What all submitted requests have in common, until the token changes.
  const std::shared_ptr<const net::CommonHead>& common_head() {
    const auto bearer = bearer_.token();
    if (common_head_ && common_token_ == bearer) return common_head_;
    auto request = make_request("POST", "");
    request.headers.set("Content-Type", "application/json");
    common_token_ = std::string(bearer);
    common_head_ = std::make_shared<const net::CommonHead>(
        net::CommonHead{std::move(request.method), std::move(request.headers)});
    return common_head_;
  }

  /// Lets a StopSource close the stream, for as long as the watch runs.
  struct OnStop {
    OnStop(std::shared_ptr<StopSource> s, const std::shared_ptr<net::ResponseStream>& stream)
        : source(std::move(s)) {
      if (source) source->on_stop = [stream] { stream->close(); };
    }
    ~OnStop() {
      if (source) source->on_stop = nullptr;
    }
    OnStop(const OnStop&) = delete;
    std::shared_ptr<StopSource> source;
  };

  static std::string object_path(const Resource& resource,
                                 const std::string& ns,
                                 const std::string& name,
                                 const std::string& subresource) {
    std::string path = resource.path(ns);
    path.append(1, '/').append(percent_encode(name));
    if (!subresource.empty()) path.append(1, '/').append(subresource);
    return path;
  }

  /// `Pieces` cuts the stream into events.
  template <typename Pieces>
  Task<Result<void>> follow_pieces(net::ResponseStream& stream,
                                   const ListOptions& options,
                                   const std::function<bool(WatchEvent)>& each,
                                   Pieces pieces,
                                   WatchFormat format,
                                   bool paced) {
    Duration last_read = Duration::zero();
    while (!(options.stop && options.stop->stopped())) {
      const auto bytes = co_await stream.read();
      // A busy stream is read every few milliseconds instead of for each event.
      const Duration now = env_.monotonic();
      const bool busy = now - last_read < 2 * kGather;
      last_read = now;
      if (options.stop && options.stop->stopped()) break;
      if (!bytes) co_return tl::unexpected(bytes.error());
      if (bytes->empty()) break;
      pieces.add(*bytes);
      while (const auto piece = pieces.next()) {
        auto event = Pieces::parse(*piece, format);
        if (!event) co_return tl::unexpected(std::move(event.error()));
        if (!each(std::move(*event))) co_return Result<void>{};
      }
      if (pieces.pending() > kWatchEventBytesMax) {
        co_return fail(
            Code::kInternal,
            fmt::format("{}: an event is longer than {} bytes", format.what, kWatchEventBytesMax));
      }
      if (busy && !paced && pieces.pending() == 0) co_await env_.sleep(kGather);
    }
    co_return Result<void>{};
  }

  static Task<std::string> read_body(net::ResponseStream& stream) {
    constexpr std::size_t kBodyMax = 1024 * 1024;
    std::string body;
    while (body.size() < kBodyMax) {
      const auto bytes = co_await stream.read();
      if (!bytes || bytes->empty()) break;
      body += *bytes;
    }
    co_return body;
  }

  net::Request make_request(std::string method, std::string target) {
    net::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers.set("Accept", "application/json");
    request.headers.set("User-Agent", user_agent_);
    const auto bearer = bearer_.token();
    if (!bearer.empty()) request.headers.set("Authorization", fmt::format("Bearer {}", bearer));
    return request;
  }

  Task<Result<json::Value>> put(const Resource& resource,
                                json::Value object,
                                std::string subresource) {
    const auto path = object_path(resource,
                                  std::string(kube::namespace_of(object)),
                                  std::string(kube::name_of(object)),
                                  subresource);
    auto answer = co_await send("PUT", path, std::move(object), "application/json");
    co_return answer;
  }

  /// One request and its answer as JSON. A busy server (429, 5xx) that names a time is asked again
  /// then.
  Task<Result<json::Value>> send(std::string method,
                                 std::string target,
                                 json::Value body,
                                 std::string_view content_type,
                                 Answer wanted = Answer::kObject) {
    const auto what = [&] { return fmt::format("{} {}", method, target); };
    bool renewed = false;
    const std::string text = body.is_null() ? "" : json::dump(body);
    for (int tries = 1;; ++tries) {
      co_await bearer_.renew(/*refused=*/false);
      auto request = make_request(method, target);
      request.body = text;
      if (!content_type.empty()) request.headers.set("Content-Type", std::string(content_type));
      auto response = co_await http_->request(std::move(request));
      if (!response) co_return tl::unexpected(std::move(response.error()));
      if (response->status >= 200 && response->status < 300) {
        if (wanted == Answer::kNone) co_return json::Value();
        if (trim(response->body).empty()) co_return json::Value();
        auto parsed = json::parse(response->body);
        if (parsed) co_return std::move(*parsed);
        if (!is_json(*response))
          co_return json::Value(response->body);  // /healthz and the like answer text
        co_return fail(
            Code::kInternal,
            fmt::format("{}: the answer is not JSON: {}", what(), parsed.error().message));
      }
      if (response->status == 401 && !renewed && bearer_.can_renew()) {
        renewed = true;
        co_await bearer_.renew(/*refused=*/true);
        continue;
      }
      auto error = error_of(response->status, response->body, what());
      const auto wait_s = retry_after_s(*response);
      if (error.retry_after_s == 0)
        error.retry_after_s = static_cast<int>(std::min<std::int64_t>(wait_s, 3600));
      const bool busy = response->status == 429 || response->status >= 500;
      if (!busy || wait_s <= 0 || wait_s > kRetryAfterMax_s || tries >= kTriesMax)
        co_return fail(std::move(error));
      co_await env_.sleep(std::chrono::seconds(wait_s));
    }
  }

  static bool is_json(const net::Response& response) {
    return response.headers.get("Content-Type").find("json") != std::string_view::npos;
  }

  Env& env_;
  std::unique_ptr<net::Client> http_;
  std::string user_agent_;
  std::string default_namespace_;
  Bearer bearer_;
  std::shared_ptr<const net::CommonHead> common_head_;
  std::string common_token_;
};

}  // namespace

std::unique_ptr<Client> make_client(Env& env,
                                    std::unique_ptr<net::Client> http,
                                    ClientOptions options) {
  return std::make_unique<RestClient>(env, std::move(http), std::move(options));
}

}  // namespace muster::client
