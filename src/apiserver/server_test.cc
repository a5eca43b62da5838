/// The whole server in this process, over a store in memory, through the in-process transport.
#include "apiserver/server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/rest/go_json.h"
#include "json/json.h"
#include "kube/names.h"
#include "net/http/client.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "store/store.h"

namespace muster::apiserver {
namespace {

struct Answer {
  int status = 0;
  json::Value body;
  std::string text;
};

class ServerTest : public ::testing::Test {
 public:
  ServerTest() {
    auto opened = store::open(loop_, ":memory:");
    store_ = std::move(*opened);
    server_ = std::make_unique<Server>(loop_, *store_, options());
  }

  static ServerOptions options() {
    ServerOptions options;
    options.token_key_pem = *net::make_signing_key();
    options.admin_token = "secret";
    return options;
  }

  /// Another server on the same store.
  Task<void> restart() {
    client_.reset();
    co_await server_->stop();
    server_ = std::make_unique<Server>(loop_, *store_, options());
    const auto started = co_await server_->start();
    EXPECT_TRUE(started.has_value());
    client_ = net::make_local_client(loop_, server_->handler(), "tester");
  }

  /// Starts the server, runs the test's coroutine, stops it.
  void run(const std::function<Task<void>(ServerTest&)>& body) {
    loop_.run_until_done(
        [](ServerTest& test, const std::function<Task<void>(ServerTest&)>& steps) -> Task<void> {
          const auto started = co_await test.server_->start();
          EXPECT_TRUE(started.has_value());
          test.client_ = net::make_local_client(test.loop_, test.server_->handler(), "tester");
          co_await steps(test);
          test.client_.reset();
          co_await test.server_->stop();
          co_await test.store_->close();
        }(*this, body));
  }

 public:
  Task<Answer> call(std::string method,
                    std::string target,
                    std::string body = "",
                    std::string type = "application/json",
                    std::string as = "") {
    net::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers.set("Content-Type", type);
    if (!as.empty()) request.headers.set("Impersonate-User", as);
    request.body = std::move(body);
    const auto response = co_await client_->request(std::move(request));
    Answer answer;
    if (!response) {
      ADD_FAILURE() << response.error().message;
      co_return answer;
    }
    answer.status = response->status;
    answer.text = response->body;
    auto parsed = json::parse(response->body);
    if (parsed) answer.body = std::move(*parsed);
    co_return answer;
  }
  /// Asks until the answer has this status; false after five seconds.
  Task<bool> eventually(std::string target, int status) {
    for (int i = 0; i < 500; ++i) {
      const Answer answer = co_await call("GET", target);
      if (answer.status == status) co_return true;
      co_await loop_.sleep(std::chrono::milliseconds(10));
    }
    co_return false;
  }
  net::Client& http() { return *client_; }

 public:
  net::Loop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<net::Client> client_;
};

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

TEST_F(ServerTest, AStaleUpdateIsAConflictAndANoOpKeepsTheVersion) {
  run([](ServerTest& test) -> Task<void> {
    const Answer made =
        co_await test.call("POST", kMaps, R"({"metadata":{"name":"a"},"data":{"k":"1"}})");
    EXPECT_EQ(made.status, 201);
    const std::string version = json::text_at(made.body, "metadata", "resourceVersion");
    const Answer same =
        co_await test.call("PUT", kMaps + "/a", R"({"metadata":{"name":"a"},"data":{"k":"1"}})");
    EXPECT_EQ(json::text_at(same.body, "metadata", "resourceVersion"), version);
    const Answer changed =
        co_await test.call("PUT", kMaps + "/a", R"({"metadata":{"name":"a"},"data":{"k":"2"}})");
    EXPECT_EQ(changed.status, 200);
    const Answer stale = co_await test.call(
        "PUT",
        kMaps + "/a",
        fmt::format(R"({{"metadata":{{"name":"a","resourceVersion":"{}"}},"data":{{}}}})",
                    version));
    EXPECT_EQ(stale.status, 409);
    EXPECT_EQ(json::text_at(stale.body, "reason"), "Conflict");
    const Answer again = co_await test.call("POST", kMaps, R"({"metadata":{"name":"a"}})");
    EXPECT_EQ(json::text_at(again.body, "message"), "configmaps \"a\" already exists");
  });
}

TEST_F(ServerTest, AWatchSeesTheVersionsThatWritesAnswered) {
  run([](ServerTest& test) -> Task<void> {
    const Answer listed = co_await test.call("GET", kMaps);
    const std::string from = json::text_at(listed.body, "metadata", "resourceVersion");
    std::vector<std::string> versions;
    for (int i = 0; i < 3; ++i) {
      const Answer made =
          co_await test.call("POST", kMaps, fmt::format(R"({{"metadata":{{"name":"w{}"}}}})", i));
      versions.push_back(json::text_at(made.body, "metadata", "resourceVersion"));
    }
    const Answer gone = co_await test.call("DELETE", kMaps + "/w0");
    EXPECT_EQ(gone.status, 200);
    const Answer watched =
        co_await test.call("GET", kMaps + "?watch=true&timeoutSeconds=1&resourceVersion=" + from);
    std::vector<std::string> seen, types;
    std::size_t at = 0;
    while (at < watched.text.size()) {
      const auto end = watched.text.find('\n', at);
      const auto event = json::parse(watched.text.substr(at, end - at));
      if (!event) break;
      at = end + 1;
      types.push_back(json::text_at(*event, "type"));
      seen.push_back(json::text_at(*event, "object", "metadata", "resourceVersion"));
    }
    EXPECT_EQ(types, (std::vector<std::string>{"ADDED", "ADDED", "ADDED", "DELETED"}));
    if (seen.size() != 4) co_return;
    EXPECT_EQ(std::vector<std::string>(seen.begin(), seen.begin() + 3), versions);
    EXPECT_GT(std::stoull(seen[3]), std::stoull(seen[2]));  // a deletion has a version of its own
  });
}

TEST_F(ServerTest, DependentsGoWithTheirOwner) {
  run([](ServerTest& test) -> Task<void> {
    const Answer owner = co_await test.call("POST", kMaps, R"({"metadata":{"name":"owner"}})");
    const std::string uid = json::text_at(owner.body, "metadata", "uid");
    const std::string child = fmt::format(
        R"({{"metadata":{{"name":"child","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"{}"}}]}}}})",
        uid);
    const Answer made = co_await test.call("POST", kMaps, child);
    EXPECT_EQ(made.status, 201);
    const Answer gone = co_await test.call("DELETE", kMaps + "/owner");
    EXPECT_EQ(gone.status, 200);
    const bool collected = co_await test.eventually(kMaps + "/child", 404);
    EXPECT_TRUE(collected);
    // Of an owner of a kind that is not there nobody can tell: what it owns stays.
    (void)co_await test.call(
        "POST",
        kMaps,
        R"({"metadata":{"name":"kept","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Gadget","name":"x","uid":"somebody"}]}})");
    // One whose owner never was goes as well.
    const Answer stray = co_await test.call(
        "POST",
        kMaps,
        R"({"metadata":{"name":"stray","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"nobody"}]}})");
    EXPECT_EQ(stray.status, 201);
    const bool stray_gone = co_await test.eventually(kMaps + "/stray", 404);
    EXPECT_TRUE(stray_gone);
    // The collector takes one after the other, and "kept" came first.
    const Answer kept = co_await test.call("GET", kMaps + "/kept");
    EXPECT_EQ(kept.status, 200);
  });
}

TEST_F(ServerTest, ARestartKeepsWhatBelongsToWhom) {
  run([](ServerTest& test) -> Task<void> {
    const Answer owner =
        co_await test.call("POST", kMaps, R"({"metadata":{"name":"owner"},"data":{"k":"v"}})");
    const std::string child = fmt::format(
        R"({{"metadata":{{"name":"child","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"{}"}}]}}}})",
        json::text_at(owner.body, "metadata", "uid"));
    co_await test.call("POST", kMaps, child);
    co_await test.restart();
    const Answer changed = co_await test.call(
        "PATCH", kMaps + "/owner", R"({"data":{"l":"w"}})", "application/merge-patch+json");
    EXPECT_EQ(json::dump(json::at(changed.body, "data")), R"({"k":"v","l":"w"})");
    EXPECT_EQ(json::array_at(changed.body, "metadata", "managedFields").size(), 1U);
    const Answer there = co_await test.call("GET", kMaps + "/child");
    EXPECT_EQ(there.status, 200);
    co_await test.call("DELETE", kMaps + "/owner");
    const bool collected = co_await test.eventually(kMaps + "/child", 404);
    EXPECT_TRUE(collected);
  });
}

TEST_F(ServerTest, ANamespaceTakesItsContentsAndLeavesNothing) {
  run([](ServerTest& test) -> Task<void> {
    const Answer made =
        co_await test.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"team"}})");
    EXPECT_EQ(made.status, 201);
    for (int i = 0; i < 20; ++i) {
      const Answer pod = co_await test.call(
          "POST",
          "/api/v1/namespaces/team/pods",
          fmt::format(
              R"({{"metadata":{{"name":"p{}"}},"spec":{{"containers":[{{"name":"c","image":"x"}}]}}}})",
              i));
      EXPECT_EQ(pod.status, 201) << pod.text;
    }
    const Answer deleted = co_await test.call("DELETE", "/api/v1/namespaces/team");
    EXPECT_EQ(json::text_at(deleted.body, "status", "phase"), "Terminating");
    const Answer late = co_await test.call(
        "POST", "/api/v1/namespaces/team/configmaps", R"({"metadata":{"name":"late"}})");
    EXPECT_TRUE(late.status == 403 || late.status == 404) << late.text;
    const bool gone = co_await test.eventually("/api/v1/namespaces/team", 404);
    EXPECT_TRUE(gone);
    const Answer pods = co_await test.call("GET", "/api/v1/pods");
    EXPECT_TRUE(json::array_at(pods.body, "items").empty());
  });
}

TEST_F(ServerTest, AQuotaHoldsAgainstConcurrentCreates) {
  run([](ServerTest& test) -> Task<void> {
    const Answer quota =
        co_await test.call("POST",
                           "/api/v1/namespaces/default/resourcequotas",
                           R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"3"}}})");
    EXPECT_EQ(quota.status, 201);
    struct Shared {
      int made = 0, refused = 0, left = 10;
      std::unique_ptr<Signal> done;
    };
    const auto shared = std::make_shared<Shared>();
    shared->done = test.loop_.make_signal();
    for (int i = 0; i < 10; ++i) {
      test.loop_.spawn([](ServerTest& it, int index, std::shared_ptr<Shared> counts) -> Task<void> {
        const Answer pod = co_await it.call(
            "POST",
            "/api/v1/namespaces/default/pods",
            fmt::format(
                R"({{"metadata":{{"name":"p{}"}},"spec":{{"containers":[{{"name":"c","image":"x"}}]}}}})",
                index));
        ++(pod.status == 201 ? counts->made : counts->refused);
        if (--counts->left == 0) counts->done->notify();
      }(test, i, shared));
    }
    co_await shared->done->wait(std::chrono::seconds(5));
    EXPECT_EQ(shared->made, 3);
    EXPECT_EQ(shared->refused, 7);
    const Answer refused = co_await test.call(
        "POST",
        "/api/v1/namespaces/default/pods",
        R"({"metadata":{"name":"more"},"spec":{"containers":[{"name":"c","image":"x"}]}})");
    EXPECT_EQ(
        json::text_at(refused.body, "message"),
        "pods \"more\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3");
  });
}

TEST_F(ServerTest, OthersMayDoWhatTheirRolesSay) {
  run([](ServerTest& test) -> Task<void> {
    const Answer refused = co_await test.call(
        "GET", "/api/v1/namespaces/default/pods", "", "application/json", "alice");
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(
        json::text_at(refused.body, "message"),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"");
    const Answer bound = co_await test.call(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        R"({"metadata":{"name":"v"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"alice","apiGroup":"rbac.authorization.k8s.io"}]})");
    EXPECT_EQ(bound.status, 201) << bound.text;
    const Answer allowed = co_await test.call(
        "GET", "/api/v1/namespaces/default/pods", "", "application/json", "alice");
    EXPECT_EQ(allowed.status, 200);
    const Answer elsewhere = co_await test.call(
        "GET", "/api/v1/namespaces/kube-system/pods", "", "application/json", "alice");
    EXPECT_EQ(elsewhere.status, 403);
    const Answer writing = co_await test.call(
        "DELETE", "/api/v1/namespaces/default/pods/x", "", "application/json", "alice");
    EXPECT_EQ(writing.status, 403);
  });
}

TEST_F(ServerTest, PagesStayAtTheFirstPagesVersion) {
  run([](ServerTest& test) -> Task<void> {
    for (int i = 0; i < 5; ++i)
      co_await test.call(
          "POST", kMaps, fmt::format(R"({{"metadata":{{"name":"p{}","labels":{{"l":"1"}}}}}})", i));
    const Answer first = co_await test.call("GET", kMaps + "?limit=2&labelSelector=l%3D1");
    const std::string version = json::text_at(first.body, "metadata", "resourceVersion");
    const std::string token = json::text_at(first.body, "metadata", "continue");
    EXPECT_FALSE(token.empty());
    co_await test.call("DELETE", kMaps + "/p3");
    co_await test.call("POST", kMaps, R"({"metadata":{"name":"p9","labels":{"l":"1"}}})");
    const Answer rest = co_await test.call("GET", kMaps + "?labelSelector=l%3D1&continue=" + token);
    EXPECT_EQ(json::text_at(rest.body, "metadata", "resourceVersion"), version);
    std::vector<std::string> names;
    for (const json::Value& item : json::array_at(rest.body, "items"))
      names.push_back(json::text_at(item, "metadata", "name"));
    EXPECT_EQ(names, (std::vector<std::string>{"p2", "p3", "p4"}));
  });
}

TEST_F(ServerTest, PagesSayHowManyAreLeftAtTheirVersion) {
  run([](ServerTest& test) -> Task<void> {
    const auto left = [](const Answer& page) {
      return json::int_at(page.body, "metadata", "remainingItemCount");
    };
    const auto next = [](const Answer& page) {
      return "&continue=" + json::text_at(page.body, "metadata", "continue");
    };
    for (int i = 0; i < 7; ++i)
      co_await test.call("POST", kMaps, fmt::format(R"({{"metadata":{{"name":"p{}"}}}})", i));
    const Answer all = co_await test.call("GET", kMaps);
    const auto count = static_cast<std::int64_t>(json::array_at(all.body, "items").size());
    const Answer everywhere = co_await test.call("GET", "/api/v1/configmaps");
    const auto wider = static_cast<std::int64_t>(json::array_at(everywhere.body, "items").size());
    const Answer first = co_await test.call("GET", kMaps + "?limit=2");
    EXPECT_EQ(left(first), count - 2);
    const Answer widest = co_await test.call("GET", "/api/v1/configmaps?limit=3");
    EXPECT_EQ(left(widest), wider - 3);
    // What happens afterwards is no matter of this list.
    co_await test.call("DELETE", kMaps + "/p5");
    co_await test.call("POST", kMaps, R"({"metadata":{"name":"p8"}})");
    co_await test.call("POST", kMaps, R"({"metadata":{"name":"p9"}})");
    const Answer second = co_await test.call("GET", kMaps + "?limit=2" + next(first));
    EXPECT_EQ(left(second), count - 4);
    const Answer third = co_await test.call("GET", kMaps + "?limit=3" + next(second));
    EXPECT_EQ(left(third), count - 7);
    const std::string version = json::text_at(first.body, "metadata", "resourceVersion");
    const Answer past = co_await test.call(
        "GET", kMaps + "?limit=2&resourceVersionMatch=Exact&resourceVersion=" + version);
    EXPECT_EQ(left(past), count - 2);
    const Answer now = co_await test.call("GET", kMaps + "?limit=2");
    EXPECT_EQ(left(now), count + 1 - 2);
    const Answer selected = co_await test.call("GET", kMaps + "?limit=2&labelSelector=!l");
    EXPECT_EQ(left(selected), 0) << "nobody has counted what a selector selects";
  });
}

TEST_F(ServerTest, ADefinitionServesAtOnceAndTakesItsObjectsAlong) {
  run([](ServerTest& test) -> Task<void> {
    const Answer made = co_await test.call(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        R"({"metadata":{"name":"widgets.ex.io"},"spec":{"group":"ex.io","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}})");
    EXPECT_EQ(made.status, 201) << made.text;
    const Answer widget = co_await test.call(
        "POST",
        "/apis/ex.io/v1/namespaces/default/widgets",
        R"({"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1}})");
    EXPECT_EQ(widget.status, 201) << widget.text;
    const Answer wrong = co_await test.call(
        "POST",
        "/apis/ex.io/v1/namespaces/default/widgets",
        R"({"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":"x"}})");
    EXPECT_EQ(wrong.status, 422);
    const Answer deleted = co_await test.call(
        "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.ex.io");
    EXPECT_EQ(deleted.status, 200);
    const bool gone = co_await test.eventually(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.ex.io", 404);
    EXPECT_TRUE(gone);
    const Answer absent = co_await test.call("GET", "/apis/ex.io/v1/namespaces/default/widgets/a");
    EXPECT_EQ(absent.status, 404);
  });
}

TEST(GoJson, NamesTheErrorAsGoDoes) {
  EXPECT_EQ(go_json_error("{\"a\":[1,2.5e3,null,true,\"x\\u00e9\"]}"), "");
  EXPECT_EQ(go_json_error(""), "unexpected end of JSON input");
  EXPECT_EQ(go_json_error("{"), "unexpected end of JSON input");
  EXPECT_EQ(go_json_error("{bad"),
            "invalid character 'b' looking for beginning of object key string");
  EXPECT_EQ(go_json_error("{\"a\" 1}"), "invalid character '1' after object key");
  EXPECT_EQ(go_json_error("{\"a\":1 2}"), "invalid character '2' after object key:value pair");
  EXPECT_EQ(go_json_error("nope"), "invalid character 'o' in literal null (expecting 'u')");
  EXPECT_EQ(go_json_error("{} x"), "invalid character 'x' after top-level value");
}

// A data folder that an older release made gets what is new in this one; what was removed on purpose
// stays away.
TEST_F(ServerTest, DefinitionsThatAreNewComeToOldFolders) {
  run([](ServerTest& test) -> Task<void> {
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
    const std::string fresh = "frameworks.frameworkcontroller.microsoft.com";
    const std::string removed = "xgboostjobs.kubeflow.org";
    const std::string given = "/api/v1/namespaces/kube-system/configmaps/muster-definitions";
    for (const std::string& name : {fresh, removed}) {
      EXPECT_EQ((co_await test.call("DELETE", crds + name)).status, 200);
      EXPECT_TRUE(co_await test.eventually(crds + name, 404)) << name;
    }
    const Answer map = co_await test.call("GET", given);
    EXPECT_EQ(map.status, 200);
    std::string names(json::string_at(map.body, "data", "given"));
    EXPECT_NE(names.find(removed), std::string::npos);
    const std::size_t at = names.find(fresh + "\n");
    EXPECT_NE(at, std::string::npos);
    names.erase(at, fresh.size() + 1);
    const json::Value older = {{"data", {{"given", names}}}};
    const Answer patched =
        co_await test.call("PATCH", given, json::dump(older), "application/merge-patch+json");
    EXPECT_EQ(patched.status, 200);

    co_await test.restart();
    EXPECT_EQ((co_await test.call("GET", crds + fresh)).status, 200);
    EXPECT_EQ((co_await test.call("GET", crds + removed)).status, 404);
    const Answer after = co_await test.call("GET", given);
    EXPECT_NE(json::string_at(after.body, "data", "given").find(fresh), std::string::npos);
  });
}

// Releases before this one let OpenPAI's users read pods whole.
TEST_F(ServerTest, BindingsOfAnOlderReleaseGrantWhatThisOneDoes) {
  run([](ServerTest& test) -> Task<void> {
    const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    const std::string ours = bindings + "/muster-pai-users";
    const auto role_of = [](const Answer& binding) {
      return json::text_at(binding.body, "roleRef", "name");
    };
    for (const bool kept : {false, true}) {
      Answer binding = co_await test.call("GET", ours);
      EXPECT_EQ(role_of(binding), "muster-cluster-overview");
      json::Value older = binding.body;
      json::remove(older, {"metadata", "resourceVersion"});
      json::remove(older, {"metadata", "uid"});
      json::make(older, {"roleRef", "name"}) = "muster-cluster-viewer";
      if (kept)
        json::make(older, {"metadata", "annotations", kube::names::kubernetes::kAutoUpdate}) =
            "false";
      EXPECT_EQ((co_await test.call("DELETE", ours)).status, 200);
      EXPECT_EQ((co_await test.call("POST", bindings, json::dump(older))).status, 201);
      co_await test.restart();
      binding = co_await test.call("GET", ours);
      EXPECT_EQ(role_of(binding), kept ? "muster-cluster-viewer" : "muster-cluster-overview");
    }
  });
}

// Releases before this one showed every Framework to every service account.
TEST_F(ServerTest, ABindingThatThisReleaseDroppedGoesWithTheOlderOnes) {
  run([](ServerTest& test) -> Task<void> {
    const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    const std::string dropped = bindings + "/muster-framework-reader";
    EXPECT_EQ((co_await test.call("GET", dropped)).status, 404);
    for (const bool kept : {false, true}) {
      const std::string older = fmt::format(
          R"({{"metadata":{{"name":"muster-framework-reader","annotations":{{"{}":"{}"}}}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}},"subjects":[]}})",
          kube::names::kubernetes::kAutoUpdate,
          kept ? "false" : "true");
      EXPECT_EQ((co_await test.call("POST", bindings, older)).status, 201);
      co_await test.restart();
      EXPECT_EQ((co_await test.call("GET", dropped)).status, kept ? 200 : 404);
    }
  });
}

}  // namespace
}  // namespace muster::apiserver
