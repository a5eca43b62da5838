#include "client/client.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/strings.h"
#include "client/events.h"
#include "client/informer.h"
#include "client/kubeconfig.h"
#include "client/leader.h"
#include "client/submit.h"
#include "client/watch_text.h"
#include "client/work_queue.h"
#include "kube/meta.h"
#include "net/loop.h"

namespace muster::client {
namespace {

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
      out[key_of(object)] = static_cast<int>(json::as_int(json::at(object, "value")));
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
      for (const auto& [path, object] : std::map(objects_))
        ok = co_await write_line(writer,
                                 json::dump(json::Object{{"type", "ADDED"}, {"object", object}}));
      at = revision_;
      ok = co_await write_line(
          writer,
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

TEST_F(ClientTest, ErrorsCarryWhatTheStatusSays) {
  run([&]() -> Task<void> {
    const auto got = co_await client_->get(resources::kPods, "ns", "nosuch");
    EXPECT_FALSE(got);
    if (got) co_return;
    EXPECT_EQ(got.error().code, Code::kNotFound);
    EXPECT_EQ(got.error().message, "not found");
    EXPECT_EQ(got.error().subject.kind, "pods");
    EXPECT_EQ(got.error().causes.size(), 1u);
    if (!got.error().causes.empty()) EXPECT_EQ(got.error().causes[0].field, "spec.x");
    EXPECT_EQ(server_.last_token, "Bearer secret");
  });
}

TEST_F(ClientTest, RetriesABusyServerThatNamesATime) {
  run([&]() -> Task<void> {
    server_.put_pod("a", 1);
    server_.busy = 1;
    const auto got = co_await client_->get(resources::kPods, "ns", "a");
    EXPECT_TRUE(got);
  });
}

TEST_F(ClientTest, ListsInPagesAndNamesKinds) {
  run([&]() -> Task<void> {
    for (int i = 0; i < 25; ++i) server_.put_pod(fmt::format("p{:02}", i), i);
    ListOptions options;
    options.limit = 10;
    const auto list = co_await client_->list(resources::kPods, options);
    if (!list) ADD_FAILURE() << list.error().message;
    if (!list) co_return;
    EXPECT_EQ(list->items.size(), 25u);
    EXPECT_EQ(list->resource_version, "25");
    EXPECT_EQ(json::as_string(json::at(list->items[3], "kind")), "Pod");
    EXPECT_EQ(json::as_string(json::at(list->items[3], "apiVersion")), "v1");
    EXPECT_EQ(server_.lists, 3);
  });
}

TEST_F(ClientTest, RequestsLookAsKubernetesWants) {
  run([&]() -> Task<void> {
    DeleteOptions options;
    options.grace_s = 0;
    options.uid = "u1";
    const auto removed = co_await client_->remove(resources::kPods, "ns", "a", options);
    EXPECT_FALSE(removed);
    EXPECT_EQ(server_.last_target, "/api/v1/namespaces/ns/pods/a");
    EXPECT_EQ(
        server_.last_body,
        R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background","preconditions":{"uid":"u1"}})");
    json::Value patch = json::Object{{"a", 1}};
    const auto patched = co_await client_->patch(
        resources::kPyTorchJobs, "ns", "j", "status", PatchType::kApply, std::move(patch));
    EXPECT_FALSE(patched);
    EXPECT_EQ(
        server_.last_target,
        "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/j/status?fieldManager=muster&force=true");
    EXPECT_EQ(server_.last_type, "application/apply-patch+yaml");
    EXPECT_EQ(resources::kNodes.path("ns"), "/api/v1/nodes");
    EXPECT_EQ(resources::kPods.path(""), "/api/v1/pods");
  });
}

// ---------------------------------------------------------------------------------------- Informer

/// Rebuilds the world from the handler's calls alone, and checks that each call fits what went
/// before.
struct Mirror {
  std::map<std::string, ObjectPtr> objects;
  bool synced = false;
  InformerHandlers handlers() {
    InformerHandlers handlers;
    handlers.on_change = [this](const ObjectPtr& old_object, const ObjectPtr& new_object) {
      const auto key = key_of(old_object ? *old_object : *new_object);
      EXPECT_EQ(old_object != nullptr, objects.contains(key)) << key;
      if (new_object) {
        objects[key] = new_object;
      } else {
        objects.erase(key);
      }
    };
    handlers.on_synced = [this] {
      EXPECT_FALSE(synced);
      synced = true;
    };
    return handlers;
  }
  [[nodiscard]] std::map<std::string, int> pods() const {
    std::map<std::string, int> out;
    for (const auto& [key, object] : objects)
      out[key] = static_cast<int>(json::as_int(json::at(*object, "value")));
    return out;
  }
};

/// On a server whose watches begin with what there is, and on one where that takes a list.
class InformerTest : public ClientTest, public testing::WithParamInterface<bool> {
 protected:
  InformerTest() { server_.serves_initial = GetParam(); }
  /// How often everything was asked for.
  [[nodiscard]] int looks() const { return GetParam() ? server_.initials : server_.lists; }
  void TearDown() override { EXPECT_EQ(GetParam() ? server_.lists : server_.initials, 0); }
};
INSTANTIATE_TEST_SUITE_P(Servers, InformerTest, testing::Bool(), [](const auto& info) {
  return info.param ? "WithInitialEvents" : "WithLists";
});

TEST_P(InformerTest, InformerFollows) {
  server_.put_pod("a", 1);
  server_.put_pod("b", 2);
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror, late;
  informer->add_handlers(mirror.handlers());
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return informer->synced(); });
    EXPECT_TRUE(ok);
    EXPECT_TRUE(mirror.synced);
    EXPECT_EQ(mirror.pods(), server_.pods());
    server_.put_pod("a", 3);
    server_.erase_pod("b");
    server_.put_pod("c", 4);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    informer->add_handlers(late.handlers());
    EXPECT_TRUE(late.synced);
    EXPECT_EQ(late.pods(), server_.pods());
    EXPECT_EQ(json::as_int(json::at(*informer->find("ns/c"), "value")), 4);
    EXPECT_EQ(informer->find("ns/b"), nullptr);
    co_await informer->stop();
    server_.put_pod("d", 5);
    co_await loop_.sleep(20ms);
    EXPECT_EQ(informer->find("ns/d"), nullptr);
  });
}

TEST_P(InformerTest, InformerSurvivesCutsGapsAndRefusals) {
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror;
  informer->add_handlers(mirror.handlers());
  server_.refuse_lists = 2;
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return informer->synced(); });
    EXPECT_TRUE(ok);
    // Cut in the middle of a line, with changes and deletions while nobody watches.
    server_.put_pod("a", 1);
    server_.put_pod("b", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    server_.cut_watches();
    server_.put_pod("a", 2);
    server_.erase_pod("b");
    server_.put_pod("c", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    // Made anew under the same name while nobody watches: seen as deleted and added.
    server_.cut_watches();
    server_.erase_pod("c");
    server_.put_pod("c", 7);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    // History is forgotten: 410 on the next watch.
    const int before = looks();
    server_.compacted = server_.revision() + 2;
    server_.end_watches();
    server_.put_pod("d", 1);
    server_.erase_pod("a");
    server_.put_pod("e", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    EXPECT_GE(looks(), before);
    co_await informer->stop();
  });
}

TEST_P(InformerTest, CleanEndOfAWatchCostsNoList) {
  server_.put_pod("a", 1);
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror;
  informer->add_handlers(mirror.handlers());
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return server_.watches == 1; });
    server_.put_pod("a", 2);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    server_.end_watches();
    server_.put_pod("a", 3);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    EXPECT_EQ(looks(), 1);
    EXPECT_EQ(server_.watches, 2);
    co_await informer->stop();
  });
}

TEST_F(ClientTest, SubmittedPostsSayHowTheyEnded) {
  run([&]() -> Task<void> {
    std::vector<std::string> ends;
    const auto submit = [&](const std::string& name) {
      const std::size_t before = ends.size();
      muster::client::submit(
          *client_,
          {resources::kPods,
           "ns",
           "",
           "",
           json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "ns"}}}}},
          [&ends, name](const Result<void>& done) {
            ends.push_back(name + (done ? " ok" : " " + done.error().message));
          });
      EXPECT_EQ(ends.size(), before) << "called inside of submit()";
    };
    submit("a");
    auto ok = co_await until([&] { return ends.size() == 1; });
    submit("a");
    ok = co_await until([&] { return ends.size() == 2; });
    // A server that names a time is asked again then.
    server_.busy = 2;
    const Duration begun = loop_.monotonic();
    submit("b");
    ok = co_await until([&] { return ends.size() == 3; });
    EXPECT_TRUE(ok);
    EXPECT_EQ(ends, (std::vector<std::string>{"a ok", "a exists", "b ok"}));
    EXPECT_GE(loop_.monotonic() - begun, 2s);
    EXPECT_EQ(server_.last_type, "application/json");
    EXPECT_EQ(server_.last_token, "Bearer secret");
    // The subresource of an object.
    muster::client::submit(*client_,
                           {resources::kPods,
                            "ns",
                            "a",
                            "binding",
                            json::Object{{"metadata", json::Object{{"name", "x"}}}}},
                           [&](const Result<void>&) { ends.clear(); });
    ok = co_await until([&] { return ends.empty(); });
    EXPECT_EQ(server_.last_target, "/api/v1/namespaces/ns/pods/a/binding");
  });
}

TEST(WatchText, ManagedFieldsAreLeftOut) {
  struct Case {
    std::string_view name, line, object;
  };
  const Case cases[] = {
      {"none",
       R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}})",
       R"({"kind":"Pod","metadata":{"name":"a"}})"},
      {"in the middle",
       R"({"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[{"f":{".":{}}}],"uid":"u"},"spec":{}}})",
       R"({"metadata":{"name":"a","uid":"u"},"spec":{}})"},
      {"last",
       R"({"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[{"x":"]}\"["}]},"spec":{}}})",
       R"({"metadata":{"name":"a"},"spec":{}})"},
      {"alone",
       R"({"type":"MODIFIED","object":{"metadata":{"managedFields":[]},"spec":1}})",
       R"({"metadata":{},"spec":1})"},
      {"not the object's own",
       R"({"type":"ADDED","object":{"spec":{"metadata":{"managedFields":[1]}},"metadata":{"labels":{"managedFields":"x"}}}})",
       R"({"spec":{"metadata":{"managedFields":[1]}},"metadata":{"labels":{"managedFields":"x"}}})"},
      {"more behind the object",
       R"({"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[]}},"more":{"a":[1]}})",
       R"({"metadata":{"name":"a"}})"},
      {"spaces and another order",
       R"( { "object" : { "metadata" : { "managedFields" : [ { } ] , "name" : "a\"}" } } , "type" : "ADDED" } )",
       R"({"metadata":{"name":"a\"}"}})"},
  };
  for (const Case& one : cases) {
    const auto event = parse_watch_line(one.line, "watch", false);
    ASSERT_TRUE(event) << one.name << ": " << event.error().message;
    EXPECT_EQ(json::dump(*event->object), one.object) << one.name;
  }
  const auto whole = parse_watch_line(cases[1].line, "watch", true);
  EXPECT_FALSE(json::at(*whole->object, "metadata", "managedFields").is_null());
}

TEST(WatchText, WhatIsNoEventIsAnError) {
  for (const std::string_view line : {"",
                                      "{}",
                                      "x",
                                      "{\"type\":\"ADDED\"}",
                                      "{\"type\":\"ADDED\",\"object\":{\"a\":}}",
                                      "{\"object\":{\"metadata\":{\"managedFields\":["}) {
    EXPECT_FALSE(parse_watch_line(line, "watch", false)) << line;
  }
  const auto expired = parse_watch_line(
      R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"too old","code":410}})",
      "watch",
      false);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Code::kExpired);
}

TEST_F(ClientTest, UnknownKindIsEmptyAndSynced) {
  server_.unknown_kind = true;
  Informers informers(loop_, *client_);
  auto& one = informers.get(resources::kQueues);
  EXPECT_EQ(&one, &informers.get(resources::kQueues));
  ListOptions other;
  other.label_selector = "a=b";
  EXPECT_NE(&one, &informers.get(resources::kQueues, other));
  informers.start_all();
  run([&]() -> Task<void> {
    co_await informers.wait_synced();
    EXPECT_TRUE(one.objects().empty());
    co_await informers.stop_all();
  });
}

// -------------------------------------------------------------------------------------- Work queue

TEST_F(ClientTest, WorkQueueWorksOnEachKeyOnceAndAgainWhenAddedMeanwhile) {
  std::map<std::string, int> done;
  int at_once = 0, most = 0;
  WorkQueue* self = nullptr;
  WorkQueueOptions options;
  options.workers = 2;
  const auto queue = make_work_queue(
      loop_,
      [&](std::string key) -> Task<Result<void>> {
        most = std::max(most, ++at_once);
        if (done[key]++ == 0 && key == "again") self->add(key);
        co_await loop_.sleep(2ms);
        --at_once;
        co_return Result<void>{};
      },
      options);
  self = queue.get();
  for (const auto* key : {"a", "b", "a", "again", "c", "a"}) queue->add(key);
  queue->start();
  run([&]() -> Task<void> {
    const auto ok = co_await until([&] { return queue->idle(); });
    EXPECT_TRUE(ok);
    co_await queue->stop();
  });
  EXPECT_EQ(done, (std::map<std::string, int>{{"a", 1}, {"again", 2}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(most, 2);
}

TEST_F(ClientTest, WorkQueueBacksOffAndDelays) {
  std::vector<Duration> at;
  const auto queue = make_work_queue(
      loop_,
      [&](std::string) -> Task<Result<void>> {
        at.push_back(loop_.monotonic());
        if (at.size() < 4) co_return fail(Code::kConflict, "not yet");
        co_return Result<void>{};
      },
      WorkQueueOptions{});
  queue->start();
  queue->add_after("k", 10ms);
  queue->add_after("k", 50ms);
  run([&]() -> Task<void> {
    const auto ok = co_await until([&] { return at.size() == 4 && queue->idle(); });
    EXPECT_TRUE(ok);
    co_await queue->stop();
  });
  ASSERT_EQ(at.size(), 4u);
  EXPECT_GE(at[1] - at[0], 5ms);
  EXPECT_GE(at[2] - at[1], 10ms);
  EXPECT_GE(at[3] - at[2], 20ms);
}

// ------------------------------------------------------------------------------------------ Events

TEST_F(ClientTest, EventsAreCountedUp) {
  const auto recorder = make_event_recorder(loop_, *client_, "muster-scheduler", "host-1");
  const json::Value pod =
      json::Object{{"kind", "Pod"},
                   {"apiVersion", "v1"},
                   {"metadata", json::Object{{"name", "p"}, {"namespace", "ns"}, {"uid", "u1"}}}};
  run([&]() -> Task<void> {
    recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    co_await recorder->flush();
    for (int i = 0; i < 4; ++i) recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    recorder->record_field(
        pod, "spec.containers{main}", "Normal", "Started", "Started container main");
    co_await recorder->flush();
    EXPECT_EQ(server_.creates, 2);
    EXPECT_EQ(server_.patches, 1);
    bool seen = false;
    for (const auto& [path, event] : server_.objects()) {
      EXPECT_TRUE(path.starts_with("/api/v1/namespaces/ns/events/p."));
      EXPECT_EQ(json::as_string(json::at(event, "source", "component")), "muster-scheduler");
      EXPECT_EQ(json::as_string(json::at(event, "reportingComponent")), "muster-scheduler");
      EXPECT_EQ(json::as_string(json::at(event, "involvedObject", "uid")), "u1");
      if (json::as_string(json::at(event, "reason")) != "FailedScheduling") continue;
      seen = true;
      EXPECT_EQ(json::as_int(json::at(event, "count")), 5);
    }
    EXPECT_TRUE(seen);
    // Expired on the server: begins anew.
    server_.objects().clear();
    recorder->record(pod, "Warning", "FailedScheduling", "0/3 nodes");
    co_await recorder->flush();
    EXPECT_EQ(server_.objects().size(), 1u);
    EXPECT_EQ(json::as_int(json::at(server_.objects().begin()->second, "count")), 1);
  });
}

TEST_F(ClientTest, EventsReadTheSameAsTextAndAsTree) {
  std::vector<json::Value> bodies;
  const auto handler = [&bodies](net::Request request, net::ResponseWriter& writer) -> Task<void> {
    if (const auto* tree = std::any_cast<ObjectPtr>(&request.value))
      bodies.push_back(**tree);
    else
      bodies.push_back(json::parse(request.body).value_or(json::Value()));
    net::Response response;
    response.status = 201;
    (void)co_await writer.send(std::move(response));
  };
  const json::Value pod = json::Object{
      {"kind", "Pod"},
      {"apiVersion", "v1"},
      {"metadata",
       json::Object{{"name", "p"}, {"namespace", "ns"}, {"uid", "u1"}, {"resourceVersion", "7"}}}};
  const json::Value node =
      json::Object{{"kind", "Node"}, {"metadata", json::Object{{"name", "n"}}}};
  for (const bool trees : {false, true}) {
    const auto client =
        make_client(loop_, net::make_local_client(loop_, handler, "me", trees), options());
    for (const std::string host : {"", "host-1"}) {
      const auto recorder = make_event_recorder(loop_, *client, "muster", host);
      run([&]() -> Task<void> {
        recorder->record(pod, "Normal", "Scheduled", "Successfully assigned \"ns/p\" to\nn");
        recorder->record_field(
            pod, "spec.containers{main}", "Normal", "Started", "Gestartet: \xc3\xa4");
        recorder->record(node, "Warning", "Silent", "");
        co_await recorder->flush();
      });
    }
  }
  ASSERT_EQ(bodies.size(), 12U);
  for (json::Value& body : bodies) {
    for (const auto* time : {"firstTimestamp", "lastTimestamp"})
      EXPECT_FALSE(json::as_string(json::at(body, time)).empty());
    json::remove(body, {"metadata", "name"});  // holds the time
    json::remove(body, {"firstTimestamp"});
    json::remove(body, {"lastTimestamp"});
  }
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(json::dump(bodies[i]), json::dump(bodies[i + 6]));
}

// --------------------------------------------------------------------------------- Leader election

LeaderOptions quick(std::string identity, std::string& log) {
  LeaderOptions options;
  options.identity = identity;
  options.lease = 1s;
  options.renew_deadline = 300ms;
  options.retry = 20ms;
  options.on_started = [&log, identity] { log += "+" + identity; };
  options.on_stopped = [&log, identity] { log += "-" + identity; };
  return options;
}

TEST_F(ClientTest, OneLeadsAndTheNextTakesOverAtOnceWhenItStops) {
  std::string log;
  const auto a = make_leader_elector(loop_, *client_, quick("a", log));
  const auto b = make_leader_elector(loop_, *client_, quick("b", log));
  run([&]() -> Task<void> {
    a->start();
    auto ok = co_await until([&] { return a->leading(); });
    EXPECT_TRUE(ok);
    b->start();
    ok = co_await until([&] { return b->holder() == "a"; });
    EXPECT_TRUE(ok);
    EXPECT_FALSE(b->leading());
    co_await a->stop();
    EXPECT_FALSE(a->leading());
    const auto begun = loop_.monotonic();
    ok = co_await until([&] { return b->leading(); });
    EXPECT_TRUE(ok);
    EXPECT_LT(loop_.monotonic() - begun, 900ms) << "a released lease needs no waiting";
    co_await b->stop();
  });
  EXPECT_EQ(log, "+a-a+b-b");
}

TEST_F(ClientTest, ALeaderThatCannotRenewStepsDown) {
  std::string log;
  const auto a = make_leader_elector(loop_, *client_, quick("a", log));
  run([&]() -> Task<void> {
    a->start();
    auto ok = co_await until([&] { return a->leading(); });
    EXPECT_TRUE(ok);
    server_.unknown_kind = true;
    ok = co_await until([&] { return !a->leading(); });
    EXPECT_TRUE(ok);
    co_await a->stop();
  });
  EXPECT_EQ(log, "+a-a");
}

// -------------------------------------------------------------------------------------- Kubeconfig

constexpr const char* kConfig = R"(
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Q0E=, tls-server-name: kube}
- name: two
  cluster: {server: "https://10.0.0.2:6443", insecure-skip-tls-verify: true}
users:
- name: cert
  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}
- name: token
  user: {token: abc}
- name: cloud
  user: {auth-provider: {name: gcp}}
contexts:
- name: dev
  context: {cluster: one, user: cert, namespace: team-a}
- name: other
  context: {cluster: two, user: token}
- name: cloud
  context: {cluster: two, user: cloud}
- name: broken
  context: {cluster: three, user: token}
)";

TEST(Kubeconfig, ContextsAreResolved) {
  const auto dev = connection_from_yaml(kConfig, "", "");
  ASSERT_TRUE(dev) << dev.error().message;
  EXPECT_EQ(dev->http.url, "https://10.0.0.1:6443");
  EXPECT_EQ(dev->http.ca_pem, "CA");
  EXPECT_EQ(dev->http.server_name, "kube");
  EXPECT_EQ(dev->http.certificate_pem, "CERT");
  EXPECT_EQ(dev->http.key_pem, "KEY");
  EXPECT_EQ(dev->client.default_namespace, "team-a");
  const auto other = connection_from_yaml(kConfig, "", "other");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->http.insecure);
  EXPECT_EQ(other->client.token, "abc");
  EXPECT_EQ(other->client.default_namespace, "default");
}

TEST(Kubeconfig, ErrorsSayWhatIsWrong) {
  struct Case {
    const char* context;
    const char* message;
  };
  for (const auto& c :
       {Case{"nosuch", "no context is named \"nosuch\", there are: dev, other, cloud, broken"},
        Case{"broken", "no cluster is named \"three\", there are: one, two"},
        Case{"cloud", "\"auth-provider\" credentials are not supported"}}) {
    const auto got = connection_from_yaml(kConfig, "", c.context);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message.find(c.message), std::string::npos) << got.error().message;
  }
  EXPECT_FALSE(connection_from_yaml("[1,2]", "", ""));
  EXPECT_FALSE(connection_from_yaml("a: [", "", ""));
}

TEST(Kubeconfig, FilesAreMergedAndPathsAreRelativeToThem) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "muster-kubeconfig-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  std::filesystem::create_directory(folder + "/sub");
  std::ofstream(folder + "/sub/ca.pem") << "THE CA";
  std::ofstream(folder + "/sub/one")
      << "clusters: [{name: c, cluster: {server: 'https://a', certificate-authority: ca.pem}}]\n"
         "contexts: [{name: x, context: {cluster: c, user: u}}]\n";
  std::ofstream(folder + "/two")
      << "current-context: x\nusers: [{name: u, user: {tokenFile: token}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://b'}}]\n";
  ::setenv(
      "KUBECONFIG", (folder + "/sub/one:" + folder + "/missing:" + folder + "/two").c_str(), 1);
  const auto got = resolve_connection({});
  ::unsetenv("KUBECONFIG");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->http.url, "https://a");
  EXPECT_EQ(got->http.ca_pem, "THE CA");
  EXPECT_EQ(got->client.token_file, folder + "/token");
  std::filesystem::remove_all(folder);
}

TEST(Kubeconfig, ProgramsGiveCredentials) {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-exec-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const auto script = folder + "/login.sh";
  std::ofstream(script)
      << "#!/bin/sh\n"
         "test \"$1\" = get || exit 3\n"
         "echo \"$KUBERNETES_EXEC_INFO\" | grep -q ExecCredential || exit 4\n"
         "echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$COLOUR'\",\"expirationTimestamp\":\"2030-01-01T00:00:00Z\"}}'\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto config = [&](const std::string& argument) {
    return fmt::format(
        "current-context: x\nclusters: [{{name: c, cluster: {{server: 'https://a'}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
        "users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./login.sh, args: [{}], env: [{{name: COLOUR, value: "
        "blue}}]}}}}}}]\n",
        argument);
  };
  const auto good = connection_from_yaml(config("get"), folder, "");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->client.token, "blue");
  EXPECT_EQ(format_time(good->client.token_expires), "2030-01-01T00:00:00Z");
  const auto bad = connection_from_yaml(config("other"), folder, "");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("failed with exit code 3"), std::string::npos)
      << bad.error().message;
  ExecCommand slow;
  slow.argv = {"sleep", "30"};
  const auto late = run_exec_command(slow, 50ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kTimeout);
  std::filesystem::remove_all(folder);
}

TEST_F(ClientTest, ARefusedTokenIsAskedForAnew) {
  ClientOptions renewing;
  renewing.token = "old";
  renewing.token_command.argv = {
      "/bin/sh", "-c", R"(echo '{"kind":"ExecCredential","status":{"token":"new"}}')"};
  std::vector<std::string> tokens;
  const auto http = [&](net::Request request, net::ResponseWriter& writer) -> Task<void> {
    tokens.emplace_back(request.headers.get("Authorization"));
    net::Response response;
    response.status = tokens.back() == "Bearer new" ? 200 : 401;
    response.body = "{}";
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  };
  const auto client = make_client(loop_, net::make_local_client(loop_, http, "me"), renewing);
  run([&]() -> Task<void> {
    const auto got = co_await client->get(resources::kPods, "ns", "a");
    EXPECT_TRUE(got);
  });
  EXPECT_EQ(tokens, (std::vector<std::string>{"Bearer old", "Bearer new"}));
}

}  // namespace
}  // namespace muster::client
