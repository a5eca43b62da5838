/// A client of a server that the tests make misbehave.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/strings.h"
#include "client/client.h"
#include "client/informer.h"
#include "kube/meta.h"
#include "net/loop/loop.h"

namespace muster::client {

using namespace std::chrono_literals;

/// A server of one flat table of objects with a change log, good for informers, leases and events;
/// it can be told to misbehave.
class FakeServer {
 public:
  explicit FakeServer(net::Loop& loop) : loop_(loop) {}

  // Faults.
  int refuse_lists = 0;         // answer so many lists with 500
  bool unknown_kind = false;    // 404 on everything
  bool serves_initial = false;  // watches may begin with all there is; 422 otherwise
  std::uint64_t compacted = 0;  // watches from before answer 410
  int busy = 0;                 // answer so many requests with 429 and Retry-After
  std::string last_target, last_body, last_type, last_token;
  int lists = 0, watches = 0, initials = 0, patches = 0, creates = 0;

  /// Cuts every watch in the middle of whatever it does.
  void cut_watches() {
    ++cut_;
    wake();
  }
  void end_watches() {
    ++end_;
    wake();
  }

  void put(const std::string& path, json::Value object) {
    const bool added = !objects_.contains(path);
    ++revision_;
    json::make(object, {"metadata", "resourceVersion"}) = std::to_string(revision_);
    if (json::at(object, "metadata", "uid").is_null()) {
      json::make(object, {"metadata", "uid"}) =
          added ? fmt::format("u{}", revision_) : std::string(kube::uid_of(objects_[path]));
    }
    objects_[path] = object;
    log_.push_back({revision_, added ? "ADDED" : "MODIFIED", path, object});
    wake();
  }
  void put_pod(const std::string& name, int value) {
    put("/api/v1/namespaces/ns/pods/" + name,
        json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "ns"}}},
                     {"value", value}});
  }
  void erase_pod(const std::string& name) {
    const auto path = "/api/v1/namespaces/ns/pods/" + name;
    auto object = objects_[path];
    objects_.erase(path);
    ++revision_;
    json::make(object, {"metadata", "resourceVersion"}) = std::to_string(revision_);
    log_.push_back({revision_, "DELETED", path, object});
    wake();
  }
  [[nodiscard]] std::map<std::string, int> pods() const {
    std::map<std::string, int> out;
    for (const auto& [path, object] : objects_)
      out[key_of(object)] = static_cast<int>(json::int_at(object, "value"));
    return out;
  }
  std::map<std::string, json::Value>& objects() { return objects_; }
  std::uint64_t revision() const { return revision_; }

  Task<void> handle(net::Request request, net::ResponseWriter& writer) {
    last_target = request.target;
    last_body = request.body;
    last_type = request.headers.get("Content-Type");
    last_token = request.headers.get("Authorization");
    const auto target = net::parse_target(request.target);
    const auto body = json::parse(request.body.empty() ? "null" : request.body);
    if (busy > 0) {
      --busy;
      co_await answer_status(writer, 429, "TooManyRequests", "busy", "1");
    } else if (unknown_kind) {
      co_await answer_status(
          writer, 404, "NotFound", "the server could not find the requested resource");
    } else if (request.method == "GET" && target->get("watch") == "true") {
      co_await watch(*target, writer);
    } else if (request.method == "GET" &&
               (target->path.ends_with("pods") || target->path.ends_with("events"))) {
      co_await list(*target, writer);
    } else if (request.method == "GET") {
      co_await get(target->path, writer);
    } else if (request.method == "POST") {
      ++creates;
      const auto path = target->path + "/" + std::string(kube::name_of(*body));
      if (objects_.contains(path)) {
        co_await answer_status(writer, 409, "AlreadyExists", "exists");
        co_return;
      }
      put(path, *body);
      co_await get(path, writer);
    } else if (request.method == "PUT") {
      if (!objects_.contains(target->path)) {
        co_await answer_status(writer, 404, "NotFound", "not found");
      } else if (kube::resource_version_of(*body) !=
                 kube::resource_version_of(objects_[target->path])) {
        co_await answer_status(writer, 409, "Conflict", "changed meanwhile");
      } else {
        put(target->path, *body);
        co_await get(target->path, writer);
      }
    } else if (request.method == "PATCH") {
      ++patches;
      if (!objects_.contains(target->path)) {
        co_await answer_status(writer, 404, "NotFound", "not found");
        co_return;
      }
      auto object = objects_[target->path];
      json::merge_patch(object, *body);
      put(target->path, object);
      co_await get(target->path, writer);
    } else {
      co_await answer_status(writer, 422, "Invalid", "bad");
    }
  }

  net::Handler handler() {
    return [this](net::Request request, net::ResponseWriter& writer) {
      return handle(std::move(request), writer);
    };
  }

 private:
  struct Entry {
    std::uint64_t revision;
    std::string type, path;
    json::Value object;
  };

  static Task<void> answer(net::ResponseWriter& writer,
                           int status,
                           json::Value body,
                           std::string retry_after = "") {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    if (!retry_after.empty()) response.headers.set("Retry-After", retry_after);
    response.body = json::dump(body);
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  }
  static Task<void> answer_status(net::ResponseWriter& writer,
                                  int code,
                                  std::string reason,
                                  std::string message,
                                  std::string retry_after = "") {
    json::Value body = json::Object{
        {"kind", "Status"},
        {"status", "Failure"},
        {"reason", reason},
        {"message", message},
        {"code", code},
        {"details",
         json::Object{
             {"name", "x"},
             {"kind", "pods"},
             {"causes",
              json::Array{json::Object{
                  {"reason", "FieldValueInvalid"}, {"message", "no"}, {"field", "spec.x"}}}}}}};
    co_await answer(writer, code, std::move(body), std::move(retry_after));
  }
  Task<void> get(std::string path, net::ResponseWriter& writer) {
    const auto at = objects_.find(path);
    if (at == objects_.end()) {
      co_await answer_status(writer, 404, "NotFound", "not found");
      co_return;
    }
    co_await answer(writer, 200, at->second);
  }
  Task<void> list(net::Target target, net::ResponseWriter& writer) {
    ++lists;
    if (refuse_lists > 0) {
      --refuse_lists;
      co_await answer_status(writer, 500, "InternalError", "no");
      co_return;
    }
    const auto limit = parse_int(target.get("limit")).value_or(0);
    const auto from = std::string(target.get("continue"));
    json::Array items;
    std::string next;
    for (const auto& [path, object] : objects_) {
      if (path <= from) continue;
      if (limit > 0 && static_cast<std::int64_t>(items.size()) == limit) break;
      items.push_back(object);
      next = path;
    }
    json::Object metadata{{"resourceVersion", std::to_string(revision_)}};
    if (limit > 0 && !objects_.empty() && next != objects_.rbegin()->first)
      metadata["continue"] = next;
    co_await answer(
        writer,
        200,
        json::Object{
            {"kind", "PodList"}, {"metadata", std::move(metadata)}, {"items", std::move(items)}});
  }
  Task<void> watch(net::Target target, net::ResponseWriter& writer) {
    const bool initial = target.get("sendInitialEvents") == "true";
    if (initial && (!serves_initial || target.get("resourceVersionMatch") != "NotOlderThan")) {
      co_await answer_status(
          writer,
          422,
          "Invalid",
          "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
      co_return;
    }
    if (initial && refuse_lists > 0) {
      --refuse_lists;
      co_await answer_status(writer, 500, "InternalError", "no");
      co_return;
    }
    ++watches;
    auto at = static_cast<std::uint64_t>(parse_int(target.get("resourceVersion")).value_or(0));
    net::Response head;
    auto ok = co_await writer.start(std::move(head));
    if (initial) {
      ++initials;
      std::string lines;
      for (const auto& [path, object] : objects_)
        lines += json::dump(json::Object{{"type", "ADDED"}, {"object", object}}) + "\n";
      at = revision_;
      ok = co_await write_line(
          writer,
          lines +
              fmt::format(
                  R"({{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}})",
                  at));
    } else if (at < compacted) {
      ok = co_await write_line(
          writer,
          R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"too old","code":410}})");
      ok = co_await writer.finish();
      co_return;
    }
    const std::shared_ptr<Signal> signal = loop_.make_signal();
    signals_.insert(signal);
    writer.on_close([signal] { signal->notify(); });
    const int cut = cut_, end = end_;
    while (ok && !writer.closed() && cut == cut_ && end == end_) {
      for (std::size_t i = 0; ok && i < log_.size() && cut == cut_; ++i) {
        const auto entry = log_[i];
        if (entry.revision <= at) continue;
        at = entry.revision;
        ok = co_await write_line(
            writer, json::dump(json::Object{{"type", entry.type}, {"object", entry.object}}));
      }
      co_await signal->wait(Duration::zero());
    }
    signals_.erase(signal);
    // A cut stream ends in the middle of a line.
    if (ok && cut != cut_)
      ok = co_await writer.write(std::make_shared<const std::string>(R"({"type":"ADD)"));
    if (ok) ok = co_await writer.finish();
  }
  static Task<Result<void>> write_line(net::ResponseWriter& writer, std::string line) {
    const auto written = co_await writer.write(std::make_shared<const std::string>(line + "\n"));
    co_return written;
  }
  void wake() {
    for (const auto& signal : signals_) signal->notify();
  }

  net::Loop& loop_;
  std::map<std::string, json::Value> objects_;
  std::vector<Entry> log_;
  std::uint64_t revision_ = 0;
  std::set<std::shared_ptr<Signal>> signals_;
  int cut_ = 0, end_ = 0;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest()
      : client_(make_client(
            loop_, net::make_local_client(loop_, server_.handler(), "me"), options())) {}
  static ClientOptions options() {
    ClientOptions options;
    options.token = "secret";
    return options;
  }
  void run(std::function<Task<void>()> test) { loop_.run_until_done(test()); }
  Task<bool> until(std::function<bool()> done) {
    for (int i = 0; i < 10'000 && !done(); ++i) co_await loop_.sleep(1ms);
    co_return done();
  }

  net::Loop loop_;
  FakeServer server_{loop_};
  std::unique_ptr<Client> client_;
};

}  // namespace muster::client
