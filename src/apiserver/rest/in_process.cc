#include "apiserver/rest/in_process.h"

#include <fmt/core.h>

#include "apiserver/auth/auth.h"
#include "apiserver/rest/convert.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/router.h"
#include "apiserver/rest/watch.h"
#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

using client::Answer;
using Events = std::function<bool(client::WatchEvent)>;

constexpr int kTriesMax = 5;
constexpr int kRetryAfterMax_s = 30;

/// Calls `each` with the objects of the image, in the watch's own coroutine: nothing is queued.
class ObjectWatch final : public Watch {
 public:
  ObjectWatch(Core& core,
              Call& call,
              Selection selection,
              WatchWanted wanted,
              std::shared_ptr<client::StopSource> stop,
              const Events& each)
      : Watch(core, call, std::move(selection), wanted), stop_(std::move(stop)), each_(each) {
    if (stop_) stop_->on_stop = [signal = signal_] { signal->notify(); };
  }
  ~ObjectWatch() override {
    if (stop_) stop_->on_stop = nullptr;
  }

  Task<Result<void>> run() {
    co_await tell_events();
    if (error_) co_return fail(*error_);
    co_return Result<void>();
  }

 private:
  [[nodiscard]] bool closed() const override { return ended_ || (stop_ && stop_->stopped()); }
  void tell(std::string_view type, kube::ObjectPtr object) {
    if (!closed()) ended_ = !each_({std::string(type), std::move(object)});
  }

  void add(std::string_view type, const StoredPtr& stored) override {
    told_bytes_ += stored->object.text_size();
    tell(type, served_object(*call_.resource, stored));
  }
  void add_change(std::string_view type, const Change& change) override { add(type, change.after); }
  void add_bookmark(Revision revision, bool initial_end) override {
    json::Value object = {{"kind", call_.resource->info.kind},
                          {"apiVersion", call_.resource->api_version()},
                          {"metadata", {{"resourceVersion", std::to_string(revision)}}}};
    if (initial_end)
      json::make(object, {"metadata", "annotations", kube::names::kubernetes::kInitialEventsEnd}) =
          "true";
    tell("BOOKMARK", std::make_shared<const json::Value>(std::move(object)));
  }
  void add_error(const Error& error) override { error_ = error; }
  [[nodiscard]] std::size_t added() const override { return told_bytes_; }
  /// All is told; but others want the loop, too, when it was much.
  Task<bool> flush() override {
    if (told_bytes_ >= kChunkBytes) {
      told_bytes_ = 0;
      co_await core_.env.sleep(Duration::zero());
    }
    co_return !closed();
  }
  void on_change(const Change*) override { signal_->notify(); }
  Task<bool> send_taken() override { co_return true; }
  Task<bool> send_newest(const Change& change) override {
    append(change);
    const bool more = co_await flush();
    co_return more;
  }

  std::shared_ptr<client::StopSource> stop_;
  const Events& each_;
  bool ended_ = false;
  std::size_t told_bytes_ = 0;
  std::optional<Error> error_;
};

/// As HTTP spells the verb, for the counters.
std::string_view method_of(std::string_view verb) {
  if (verb == "create") return "POST";
  if (verb == "update") return "PUT";
  if (verb == "patch") return "PATCH";
  return verb == "delete" ? "DELETE" : "GET";
}

class InProcessClient final : public client::Client {
 public:
  InProcessClient(Core& core, std::string user)
      : core_(core),
        user_(component_user(user)),
        manager_(user.starts_with("system:") ? user.substr(7) : user) {}

  Task<Result<json::Value>> get(const client::Resource& resource,
                                std::string ns,
                                std::string name) override {
    Call call = begin("get", resource, std::move(ns), std::move(name));
    auto reply = co_await answer(call);
    co_return value_of(std::move(reply), Answer::kObject);
  }

  /// All at once: one snapshot in this process needs no pages.
  Task<Result<client::List>> list(const client::Resource& resource,
                                  client::ListOptions options) override {
    Call call = begin("list", resource, options.ns, "");
    select(call, options);
    const auto reply = co_await answer(call);
    if (!reply) co_return fail(reply.error());
    client::List out;
    out.resource_version = std::to_string(reply->revision);
    out.items.reserve(reply->items.size());
    for (const kube::ObjectPtr& item : reply->items) out.items.push_back(*item);
    co_return out;
  }

  Task<Result<json::Value>> create(const client::Resource& resource,
                                   std::string ns,
                                   json::Value object,
                                   Answer wanted) override {
    Call call = begin("create", resource, std::move(ns), "");
    call.object = std::make_shared<const json::Value>(std::move(object));
    auto reply = co_await answer(call);
    co_return value_of(std::move(reply), wanted);
  }

  Task<Result<json::Value>> update(const client::Resource& resource, json::Value object) override {
    return put(resource, std::move(object), "");
  }
  Task<Result<json::Value>> update_status(const client::Resource& resource,
                                          json::Value object) override {
    return put(resource, std::move(object), "status");
  }

  Task<Result<json::Value>> patch(const client::Resource& resource,
                                  std::string ns,
                                  std::string name,
                                  std::string subresource,
                                  kube::PatchType type,
                                  json::Value patch,
                                  Answer wanted) override {
    Call call = begin("patch", resource, std::move(ns), std::move(name), std::move(subresource));
    call.patch = type;
    call.object = std::make_shared<const json::Value>(std::move(patch));
    if (type == kube::PatchType::kApply) {
      option(call, "fieldManager", manager_);
      option(call, "force", "true");
    }
    auto reply = co_await answer(call);
    co_return value_of(std::move(reply), wanted);
  }

  Task<Result<void>> remove(const client::Resource& resource,
                            std::string ns,
                            std::string name,
                            client::DeleteOptions options) override {
    Call call = begin("delete", resource, std::move(ns), std::move(name));
    json::Object body;
    if (options.grace_s >= 0) body["gracePeriodSeconds"] = options.grace_s;
    if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
    if (!options.uid.empty()) body["preconditions"] = json::Object{{"uid", options.uid}};
    call.object = std::make_shared<const json::Value>(std::move(body));
    const auto reply = co_await answer(call);
    if (!reply) co_return fail(reply.error());
    co_return Result<void>();
  }

  Task<Result<json::Value>> post_subresource(const client::Resource& resource,
                                             std::string ns,
                                             std::string name,
                                             std::string subresource,
                                             json::Value body,
                                             Answer wanted) override {
    Call call = begin("create", resource, std::move(ns), std::move(name), std::move(subresource));
    call.object = std::make_shared<const json::Value>(std::move(body));
    auto reply = co_await answer(call);
    co_return value_of(std::move(reply), wanted);
  }

  void submit(client::Post post, std::function<void(Result<void>)> done) override {
    MUSTER_CHECK(post.text.empty(), "a post of text to a client that takes trees");
    auto call = std::make_unique<Call>(begin("create",
                                             post.resource,
                                             std::move(post.ns),
                                             std::move(post.name),
                                             std::move(post.subresource)));
    call->object = std::make_shared<const json::Value>(std::move(post.body));
    core_.env.spawn(answer_later(std::move(call), std::move(done)));
  }

  Task<Result<void>> watch(client::Resource resource,
                           client::WatchOptions options,
                           Events each) override {
    const Gate::Pass pass(core_.gate);
    Call call = begin("watch", resource, options.list.ns, "");
    select(call, options.list);
    option(call, "allowWatchBookmarks", "true");
    if (options.initial_events) {
      option(call, "sendInitialEvents", "true");
      option(call, "resourceVersionMatch", "NotOlderThan");
    }
    audit::Record record(core_, call);
    const auto fine = check(call, record);
    if (!fine) co_return fine;
    if (!call.resource->has_verb("watch")) co_return fail(method_not_allowed());
    auto selection = parse_selection(call);
    if (!selection) co_return fail(selection.error());
    const auto wanted = parse_watch_wanted(call);
    if (!wanted) co_return fail(wanted.error());
    core_.router->count("WATCH", 200);
    record.set_started(200);
    ObjectWatch watch(core_, call, std::move(*selection), *wanted, options.list.stop, each);
    auto ended = co_await watch.run();
    co_return ended;
  }

  Task<Result<json::Value>> raw(std::string method, std::string target, json::Value body) override {
    return text().raw(std::move(method), std::move(target), std::move(body));
  }

  net::Client& http() override { return text().http(); }
  [[nodiscard]] bool sends_text() const override { return false; }
  [[nodiscard]] std::string default_namespace() const override { return "default"; }

 private:
  Call begin(std::string_view verb,
             const client::Resource& resource,
             std::string ns,
             std::string name,
             std::string subresource = "") {
    Call call;
    call.in_process = true;
    call.user = user_;
    call.manager = manager_;
    call.verb = verb;
    call.resource = core_.resources.find(resource.group, resource.version, resource.plural);
    if (resource.namespaced) call.ns = std::move(ns);
    call.name = std::move(name);
    call.subresource = std::move(subresource);
    return call;
  }

  /// Options are named as in a query; empty ones are left out.
  static void option(Call& call, std::string key, std::string value) {
    if (!value.empty()) call.target.query.emplace_back(std::move(key), std::move(value));
  }
  static void select(Call& call, const client::ListOptions& options) {
    option(call, "labelSelector", options.label_selector);
    option(call, "fieldSelector", options.field_selector);
    option(call, "resourceVersion", options.resource_version);
  }

  /// What routing and RBAC refuse of a request over HTTP.
  Result<void> check(const Call& call, audit::Record& record) const {
    record.begin();
    const bool misplaced =
        !call.resource || (call.resource->info.namespaced && call.ns.empty() && !call.name.empty());
    if (misplaced) return fail(no_such_path());
    if (!call.subresource.empty() && !call.resource->has_subresource(call.subresource))
      return fail(call.resource->custom() ? not_found(*call.resource, call.name) : no_such_path());
    return core_.router->authorize(call, record);
  }

  /// A server that is busy and names a time is asked again then.
  Task<Result<Reply>> answer(Call& call) {
    for (int tries = 1;; ++tries) {
      Result<Reply> reply;
      audit::Record record(core_, call);
      if (const auto fine = check(call, record); !fine) {
        reply = fail(fine.error());
      } else {
        const Gate::Pass pass(core_.gate);
        try {
          reply = co_await core_.router->perform(call, Accepted{});
        } catch (const std::exception& bug) {
          log::error("apiserver", "{} threw what=\"{}\"", call.verb, bug.what());
          reply = fail(Code::kInternal,
                       fmt::format("{} \"{}\": the server gave no answer", call.verb, call.name));
        }
      }
      core_.router->count(method_of(call.verb),
                          reply ? reply->status : http_status_of(reply.error().code));
      if (reply) {
        record.set_answer(*reply, reply->object);
        co_return reply;
      }
      if (core_.audit) record.set_answer(error_response(reply.error()));
      const Error& error = reply.error();
      if (http_status_of(error.code) < 500 || error.retry_after_s <= 0 ||
          error.retry_after_s > kRetryAfterMax_s || tries >= kTriesMax)
        co_return reply;
      co_await core_.env.sleep(std::chrono::seconds(error.retry_after_s));
    }
  }

  Task<void> answer_later(std::unique_ptr<Call> call, std::function<void(Result<void>)> done) {
    const auto reply = co_await answer(*call);
    if (reply)
      done({});
    else
      done(fail(reply.error()));
  }

  static Result<json::Value> value_of(Result<Reply> reply, Answer wanted) {
    if (!reply) return fail(std::move(reply.error()));
    if (wanted == Answer::kNone) return json::Value();
    if (reply->object) return json::Value(*reply->object, json::Storage());
    return json::parse(reply->body);  // what no object is made for: usage
  }

  Task<Result<json::Value>> put(const client::Resource& resource,
                                json::Value object,
                                std::string subresource) {
    Call call = begin("update",
                      resource,
                      std::string(kube::namespace_of(object)),
                      std::string(kube::name_of(object)),
                      std::move(subresource));
    call.object = std::make_shared<const json::Value>(std::move(object));
    auto reply = co_await answer(call);
    if (!reply || !call.resource || !is_large(call))
      co_return value_of(std::move(reply), Answer::kObject);
    // A copy of thousands of tasks, and what was sent is taken apart.
    Result<json::Value> value;
    co_await core_.env.run_on_worker([&] {
      value = value_of(std::move(reply), Answer::kObject);
      call.object.reset();
    });
    co_return value;
  }

  /// For what has no verb: the same server through its handler.
  client::Client& text() {
    if (text_) return *text_;
    client::ClientOptions options;
    options.user_agent = manager_;
    const auto handler = [router = core_.router.get()](net::Request request,
                                                       net::ResponseWriter& writer) {
      return router->handle(std::move(request), writer);
    };
    text_ = client::make_client(
        core_.env, net::make_local_client(core_.env, handler, user_.name), std::move(options));
    return *text_;
  }

  Core& core_;
  const User user_;
  const std::string manager_;
  std::unique_ptr<client::Client> text_;
};

}  // namespace

std::unique_ptr<client::Client> make_in_process_client(Core& core, std::string user) {
  return std::make_unique<InProcessClient>(core, std::move(user));
}

}  // namespace muster::apiserver
