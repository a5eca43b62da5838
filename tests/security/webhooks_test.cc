/// Admission webhooks are called and obeyed, and nothing gets past one that cannot be reached.
#include "base/strings.h"
#include "net/http/server.h"
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

/// A webhook on a socket of its own. `answer` makes the response of a review.
class Hook {
 public:
  using AnswerReview = std::function<json::Value(const json::Value& request)>;
  Hook(net::Loop& loop, AnswerReview answer) {
    ca_ = *net::make_ca("hook-ca", loop.now());
    net::CertificateRequest wanted;
    wanted.common_name = "hook";
    wanted.dns_names = {"hook.system.svc"};
    wanted.addresses = {"127.0.0.1"};
    wanted.server = true;
    const auto pair = *net::make_certificate(ca_, wanted, loop.now());
    net::ServerOptions options;
    options.certificate_pem = pair.certificate_pem;
    options.key_pem = pair.key_pem;
    server_ = *net::listen(loop,
                           std::move(options),
                           [this, answer = std::move(answer)](
                               net::Request request, net::ResponseWriter& writer) -> Task<void> {
                             ++asked;
                             const auto review = json::parse(request.body);
                             EXPECT_TRUE(review) << request.body;
                             last = json::at(*review, "request");
                             json::Value said = answer(last);
                             said.get_object()["uid"] = json::at(last, "uid");
                             net::Response response;
                             response.headers.set("Content-Type", "application/json");
                             response.body =
                                 json::dump(json::Value{{"apiVersion", "admission.k8s.io/v1"},
                                                        {"kind", "AdmissionReview"},
                                                        {"response", std::move(said)}});
                             (void)co_await writer.send(std::move(response));
                           });
  }
  Task<void> stop() { return server_->stop(); }
  [[nodiscard]] std::string url() const {
    return fmt::format("https://127.0.0.1:{}/review", server_->port());
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  [[nodiscard]] std::string bundle() const { return base64_encode(ca_.certificate_pem); }

  int asked = 0;
  json::Value last;

 private:
  net::KeyPair ca_;
  std::unique_ptr<net::Server> server_;
};

class Webhooks : public Cluster {
 public:
  void calling(const Steps& steps) {
    run(steps, [this](ServerOptions& options) {
      options.dial = [this](net::ClientOptions wanted) {
        return net::make_client(loop(), std::move(wanted));
      };
    });
  }
};

const std::string kAdmission = "/apis/admissionregistration.k8s.io/v1/";
const std::string kMaps = "/api/v1/namespaces/default/configmaps";

std::string configuration(std::string_view client, std::string_view more = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"w"}},"webhooks":[{{"name":"maps.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,{}"rules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE","DELETE"],"resources":["configmaps"]}}],"clientConfig":{}}}]}})",
      more,
      client);
}
std::string at(const Hook& hook) {
  return fmt::format(R"({{"url":"{}","caBundle":"{}"}})", hook.url(), hook.bundle());
}
std::string map(std::string_view name, std::string_view value = "v") {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"k":"{}"}}}})", name, value);
}

TEST_F(Webhooks, WhatAWebhookDeniesIsNotWritten) {
  calling([](Cluster& cluster) -> Task<void> {
    Hook hook(cluster.loop(), [](const json::Value& request) -> json::Value {
      const bool bad = json::string_at(request, "object", "data", "k") == "bad";
      const bool deletes = json::string_at(request, "operation") == "DELETE";
      if (!bad && !deletes) return {{"allowed", true}, {"warnings", json::Array{"seen"}}};
      return {{"allowed", false},
              {"status", {{"code", 403}, {"reason", "Forbidden"}, {"message", "bad value"}}}};
    });
    const Answer made = co_await cluster.admin(
        "POST", kAdmission + "validatingwebhookconfigurations", configuration(at(hook)));
    EXPECT_EQ(made.status, 201) << made.text;
    EXPECT_TRUE(made.warnings.empty());
    const Answer bad = co_await cluster.admin("POST", kMaps, map("a", "bad"));
    EXPECT_EQ(bad.status, 403) << bad.text;
    EXPECT_EQ(bad.message(),
              "admission webhook \"maps.example.com\" denied the request: bad value");
    const Answer absent = co_await cluster.admin("GET", kMaps + "/a");
    EXPECT_EQ(absent.status, 404);
    const Answer good = co_await cluster.admin("POST", kMaps, map("a"));
    EXPECT_EQ(good.status, 201) << good.text;
    EXPECT_EQ(good.warnings, std::vector<std::string>{"299 - \"seen\""});
    EXPECT_EQ(json::string_at(hook.last, "userInfo", "username"), "muster-admin");
    EXPECT_EQ(json::string_at(hook.last, "namespace"), "default");
    const Answer patched = co_await cluster.admin(
        "PATCH", kMaps + "/a", R"({"data":{"k":"bad"}})", "application/merge-patch+json");
    EXPECT_EQ(patched.status, 403) << patched.text;
    EXPECT_EQ(json::string_at(hook.last, "oldObject", "data", "k"), "v");
    const Answer deleted = co_await cluster.admin("DELETE", kMaps + "/a");
    EXPECT_EQ(deleted.status, 403) << deleted.text;
    // What no rule names is not shown, nor are the configurations themselves.
    const int asked = hook.asked;
    (void)co_await cluster.admin(
        "POST", "/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
    const Answer gone =
        co_await cluster.admin("DELETE", kAdmission + "validatingwebhookconfigurations/w");
    EXPECT_EQ(gone.status, 200) << gone.text;
    EXPECT_EQ(hook.asked, asked);
    co_await hook.stop();
  });
}

TEST_F(Webhooks, NothingGetsPastOneThatCannotBeAsked) {
  calling([](Cluster& cluster) -> Task<void> {
    Hook hook(cluster.loop(), [](const json::Value&) { return json::Value{{"allowed", true}}; });
    Hook other(cluster.loop(), [](const json::Value&) { return json::Value{{"allowed", true}}; });
    const std::string target = kAdmission + "validatingwebhookconfigurations";
    // Nobody there; somebody whom the caBundle does not vouch for; a service that is not there.
    for (const std::string& client :
         {std::string(R"({"url":"https://127.0.0.1:1/"})"),
          fmt::format(R"({{"url":"{}","caBundle":"{}"}})", hook.url(), other.bundle()),
          std::string(R"({"service":{"name":"hook","namespace":"system"}})")}) {
      const Answer made = co_await cluster.admin("POST", target, configuration(client));
      EXPECT_EQ(made.status, 201) << made.text;
      const Answer refused = co_await cluster.admin("POST", kMaps, map("a"));
      EXPECT_EQ(refused.status, 500) << refused.text;
      EXPECT_TRUE(refused.message().starts_with(
          "Internal error occurred: failed calling webhook \"maps.example.com\": "))
          << refused.text;
      (void)co_await cluster.admin("DELETE", target + "/w");
    }
    EXPECT_EQ(hook.asked, 0);
    (void)co_await cluster.admin(
        "POST",
        target,
        configuration(R"({"url":"https://127.0.0.1:1/"})", R"("failurePolicy":"Ignore",)"));
    const Answer passed = co_await cluster.admin("POST", kMaps, map("a"));
    EXPECT_EQ(passed.status, 201) << passed.text;
    co_await hook.stop();
    co_await other.stop();
  });
}

TEST_F(Webhooks, OneThatDoesNotAnswerIsWaitedForNoLongerThanItSays) {
  calling([](Cluster& cluster) -> Task<void> {
    auto silent = cluster.loop().make_signal();
    const auto listening = net::listen(
        cluster.loop(), {}, [&silent](net::Request, net::ResponseWriter& writer) -> Task<void> {
          co_await silent->wait(std::chrono::seconds(20));
          (void)co_await writer.send({});
        });
    // TLS with somebody who does not speak it never ends.
    const std::string client =
        fmt::format(R"({{"url":"https://127.0.0.1:{}/"}})", (*listening)->port());
    (void)co_await cluster.admin(
        "POST", kAdmission + "validatingwebhookconfigurations", configuration(client));
    const Duration begun = cluster.loop().monotonic();
    const Answer refused = co_await cluster.admin("POST", kMaps, map("a"));
    EXPECT_EQ(refused.status, 500) << refused.text;
    EXPECT_LT(cluster.loop().monotonic() - begun, std::chrono::seconds(10));
    silent->notify();
    co_await (*listening)->stop();
  });
}

TEST_F(Webhooks, AMutatingOneChangesTheObjectAndNotWhoseItIs) {
  calling([](Cluster& cluster) -> Task<void> {
    Hook hook(cluster.loop(), [](const json::Value&) -> json::Value {
      const std::string patch =
          R"([{"op":"add","path":"/data/added","value":"yes"},{"op":"replace","path":"/metadata/name","value":"other"},{"op":"replace","path":"/metadata/namespace","value":"kube-system"}])";
      return {{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", base64_encode(patch)}};
    });
    (void)co_await cluster.admin(
        "POST", kAdmission + "mutatingwebhookconfigurations", configuration(at(hook)));
    const Answer made = co_await cluster.admin("POST", kMaps, map("a"));
    EXPECT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(json::string_at(made.body, "data", "added"), "yes");
    EXPECT_EQ(json::string_at(made.body, "metadata", "name"), "a");
    EXPECT_EQ(json::string_at(made.body, "metadata", "namespace"), "default");
    EXPECT_TRUE(json::at(made.body, "metadata", "managedFields").is_array()) << made.text;
    const Answer changed = co_await cluster.admin("PUT", kMaps + "/a", map("a", "w"));
    EXPECT_EQ(json::string_at(changed.body, "data", "added"), "yes") << changed.text;
    co_await hook.stop();
  });
}

/// What a webhook adds is held to the same rules as what people send.
TEST_F(Webhooks, AMutatingOneDoesNotLiftPodSecurity) {
  calling([](Cluster& cluster) -> Task<void> {
    Hook hook(cluster.loop(), [](const json::Value&) -> json::Value {
      const std::string patch = R"([{"op":"add","path":"/spec/hostNetwork","value":true}])";
      return {{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", base64_encode(patch)}};
    });
    std::string wanted = configuration(at(hook));
    wanted = replace_all(wanted, R"(["configmaps"])", R"(["pods"])");
    (void)co_await cluster.admin("POST", kAdmission + "mutatingwebhookconfigurations", wanted);
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer refused = co_await cluster.ask(
        {"POST",
         "/api/v1/namespaces/vision/pods",
         R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})",
         "application/json",
         token});
    EXPECT_EQ(refused.status, 403) << refused.text;
    EXPECT_NE(refused.message().find("host namespaces"), std::string::npos) << refused.text;
    co_await hook.stop();
  });
}

TEST_F(Webhooks, SelectorsAndServicesAreFollowed) {
  calling([](Cluster& cluster) -> Task<void> {
    Hook hook(cluster.loop(), [](const json::Value&) { return json::Value{{"allowed", false}}; });
    (void)co_await cluster.admin(
        "POST", "/api/v1/namespaces", R"({"metadata":{"name":"system","labels":{"free":"yes"}}})");
    const std::string own = "/api/v1/namespaces/system/";
    (void)co_await cluster.admin(
        "POST",
        own + "services",
        R"({"metadata":{"name":"hook"},"spec":{"ports":[{"name":"https","port":443}]}})");
    (void)co_await cluster.admin(
        "POST",
        own + "endpoints",
        fmt::format(
            R"({{"metadata":{{"name":"hook"}},"subsets":[{{"addresses":[{{"ip":"127.0.0.1"}}],"ports":[{{"name":"https","port":{}}}]}}]}})",
            hook.port()));
    const Answer made = co_await cluster.admin(
        "POST",
        kAdmission + "validatingwebhookconfigurations",
        configuration(
            fmt::format(
                R"({{"service":{{"name":"hook","namespace":"system","path":"/x"}},"caBundle":"{}"}})",
                hook.bundle()),
            R"("namespaceSelector":{"matchExpressions":[{"key":"free","operator":"DoesNotExist"}]},"objectSelector":{"matchLabels":{"judge":"me"}},)"));
    EXPECT_EQ(made.status, 201) << made.text;
    const std::string judged =
        R"({"metadata":{"name":"b","labels":{"judge":"me"}},"data":{"k":"v"}})";
    const Answer unlabelled = co_await cluster.admin("POST", kMaps, map("a"));
    EXPECT_EQ(unlabelled.status, 201) << unlabelled.text;
    const Answer free = co_await cluster.admin("POST", own + "configmaps", judged);
    EXPECT_EQ(free.status, 201) << free.text;
    EXPECT_EQ(hook.asked, 0);
    const Answer refused = co_await cluster.admin("POST", kMaps, judged);
    EXPECT_EQ(refused.status, 400) << refused.text;
    EXPECT_EQ(refused.message(),
              "admission webhook \"maps.example.com\" denied the request without explanation");
    co_await hook.stop();
  });
}

TEST_F(Webhooks, WhatIsNotDoneIsRefusedAtCreation) {
  calling([](Cluster& cluster) -> Task<void> {
    const std::string target = kAdmission + "validatingwebhookconfigurations";
    const Answer conditions = co_await cluster.admin(
        "POST",
        target,
        configuration(R"({"url":"https://127.0.0.1:1/"})",
                      R"("matchConditions":[{"name":"a","expression":"true"}],)"));
    EXPECT_EQ(conditions.status, 403) << conditions.text;
    EXPECT_NE(conditions.message().find("matchConditions, which muster up does not evaluate"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace muster::apiserver
