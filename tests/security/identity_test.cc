/// Who somebody is: acting as others, tokens and what they are bound to, and what the built-in roles
/// do not grant.
#include "base/strings.h"
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

class Identity : public Cluster {};

const std::string kWhoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

Ask as(std::string token, std::vector<std::pair<std::string, std::string>> headers) {
  Ask wanted{"POST", kWhoAmI, "{}", "application/json", std::move(token)};
  wanted.headers = std::move(headers);
  return wanted;
}

TEST_F(Identity, ActingAsSomebodyIsAskedForWhateverTheNameLooksLike) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const std::string& name : {std::string("system:serviceaccount:x"),
                                    std::string("system:serviceaccount:a:b:c"),
                                    std::string("system:serviceaccount::"),
                                    std::string("system:serviceaccount:UPPER:x"),
                                    std::string("somebody")}) {
      const Answer answer = co_await cluster.ask(as(token, {{"Impersonate-User", name}}));
      EXPECT_EQ(answer.status, 403) << name << answer.text;
      EXPECT_EQ(answer.message(),
                fmt::format("users \"{}\" is forbidden: User "
                            "\"system:serviceaccount:vision:editor\" cannot impersonate resource "
                            "\"users\" in API group \"\" at the cluster scope",
                            name));
    }
    // Accounts of one's own namespace may be used, as in Kubernetes; their uids and groups may not.
    const std::string own = "system:serviceaccount:vision:default";
    const Answer allowed = co_await cluster.ask(as(token, {{"Impersonate-User", own}}));
    EXPECT_EQ(allowed.status, 201) << allowed.text;
    for (const auto& [header, value] : {std::pair{"Impersonate-Uid", "u"},
                                        std::pair{"Impersonate-Group", "system:masters"},
                                        std::pair{"Impersonate-Extra-scopes", "all"}}) {
      const Answer more =
          co_await cluster.ask(as(token, {{"Impersonate-User", own}, {header, value}}));
      EXPECT_EQ(more.status, 403) << header << more.text;
      const Answer alone = co_await cluster.ask(as(token, {{header, value}}));
      EXPECT_EQ(alone.status, 400) << header << alone.text;
    }
    const Answer full = co_await cluster.ask(as("admin",
                                                {{"Impersonate-User", "jane"},
                                                 {"Impersonate-Uid", "7"},
                                                 {"Impersonate-Group", "dev"},
                                                 {"Impersonate-Extra-Example.com%2fscope", "a"}}));
    EXPECT_EQ(full.status, 201) << full.text;
    EXPECT_EQ(
        json::dump(json::at(full.body, "status", "userInfo")),
        R"({"username":"jane","uid":"7","groups":["dev","system:authenticated"],"extra":{"example.com/scope":["a"]}})");
  });
}

Task<std::string> bound_token(Cluster& cluster, std::string kind, std::string name) {
  const Answer made = co_await cluster.admin(
      "POST",
      "/api/v1/namespaces/vision/serviceaccounts/editor/token",
      fmt::format(
          R"({{"spec":{{"boundObjectRef":{{"apiVersion":"v1","kind":"{}","name":"{}"}}}}}})",
          kind,
          name));
  EXPECT_EQ(made.status, 201) << made.text;
  co_return json::text_at(made.body, "status", "token");
}

TEST_F(Identity, ATokenDiesWithWhatItIsBoundTo) {
  run([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.account("vision", "editor", "edit");
    const std::string secrets = "/api/v1/namespaces/vision/secrets";
    (void)co_await cluster.admin("POST", secrets, R"({"metadata":{"name":"s"}})");
    const std::string token = co_await bound_token(cluster, "Secret", "s");
    const Answer before = co_await cluster.ask(as(token, {}));
    EXPECT_EQ(before.status, 201) << before.text;
    (void)co_await cluster.admin("DELETE", secrets + "/s");
    const Answer after = co_await cluster.ask(as(token, {}));
    EXPECT_EQ(after.status, 401);
    // Another one of the same name is another one.
    (void)co_await cluster.admin("POST", secrets, R"({"metadata":{"name":"s"}})");
    const Answer again = co_await cluster.ask(as(token, {}));
    EXPECT_EQ(again.status, 401);
    const Answer absent = co_await cluster.admin(
        "POST",
        "/api/v1/namespaces/vision/serviceaccounts/editor/token",
        R"({"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"none"}}})");
    EXPECT_EQ(absent.status, 404);
  });
}

TEST_F(Identity, ATokenIsNotBoundToThePodOfAnotherAccount) {
  run([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.account("vision", "editor", "edit");
    const Answer pod = co_await cluster.admin(
        "POST",
        "/api/v1/namespaces/vision/pods",
        R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    EXPECT_EQ(pod.status, 201) << pod.text;
    const Answer refused = co_await cluster.admin(
        "POST",
        "/api/v1/namespaces/vision/serviceaccounts/editor/token",
        R"({"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.message(),
              "cannot bind token for serviceaccount \"editor\" to pod running with different "
              "serviceaccount name.");
  });
}

TEST_F(Identity, ATokenForLaterIsNotGoodYet) {
  run([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.account("vision", "editor", "edit");
    const Answer account =
        co_await cluster.admin("GET", "/api/v1/namespaces/vision/serviceaccounts/editor");
    const std::int64_t now = cluster.loop().now().seconds();
    const auto sign = [&](std::int64_t not_before) {
      const json::Value claims = {
          {"aud", json::Array{json::Value("https://kubernetes.default.svc.cluster.local")}},
          {"exp", now + 7200},
          {"iss", "https://kubernetes.default.svc.cluster.local"},
          {"nbf", not_before},
          {"kubernetes.io",
           {{"namespace", "vision"},
            {"serviceaccount",
             {{"name", "editor"}, {"uid", json::at(account.body, "metadata", "uid")}}}}}};
      return net::sign_token(cluster.signing_key(), json::dump(claims));
    };
    const auto early = sign(now + 3600), due = sign(now - 1);
    EXPECT_TRUE(early && due);
    const Answer refused = co_await cluster.ask(as(*early, {}));
    EXPECT_EQ(refused.status, 401);
    const Answer accepted = co_await cluster.ask(as(*due, {}));
    EXPECT_EQ(accepted.status, 201) << accepted.text;
  });
}

TEST_F(Identity, AnEditorDoesNotPointAServiceAtOthersPods) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer refused = co_await cluster.ask(
        {"POST",
         "/api/v1/namespaces/vision/endpoints",
         R"({"metadata":{"name":"fw"},"subsets":[{"addresses":[{"ip":"10.0.0.1"}]}]})",
         "application/json",
         token});
    EXPECT_EQ(refused.status, 403) << refused.text;
  });
}

/// Colleagues see who holds which GPU, and no value of an environment.
TEST_F(Identity, AnOverviewShowsNoEnvironment) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "viewer", "");
    (void)co_await cluster.admin(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        R"({"metadata":{"name":"v"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"muster-cluster-overview"},"subjects":[{"kind":"ServiceAccount","name":"viewer","namespace":"vision"}]})");
    const std::string container =
        R"({"name":"c","image":"i","env":[{"name":"PASSWORD","value":"hunter2"}]})";
    const std::string applied =
        R"("annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2"})";
    // Enough of them that their list is changed on a worker.
    for (int i = 0; i < 40; ++i) {
      const Answer made = co_await cluster.admin(
          "POST",
          "/api/v1/namespaces/default/pods",
          fmt::format(
              R"({{"metadata":{{"name":"p{}",{}}},"spec":{{"containers":[{}],"initContainers":[{}]}}}})",
              i,
              applied,
              container,
              replace_all(container, R"("c")", R"("i")")));
      EXPECT_EQ(made.status, 201) << made.text;
    }
    const Answer job = co_await cluster.admin(
        "POST",
        "/apis/batch/v1/namespaces/default/jobs",
        fmt::format(
            R"({{"metadata":{{"name":"j",{}}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{}]}}}}}}}})",
            applied,
            container));
    EXPECT_EQ(job.status, 201) << job.text;
    for (const std::string& target : {std::string("/api/v1/pods"),
                                      std::string("/api/v1/pods?limit=2"),
                                      std::string("/api/v1/namespaces/default/pods/p0"),
                                      std::string("/api/v1/pods?includeObject=Object"),
                                      std::string("/api/v1/pods?pretty=true"),
                                      std::string("/apis/batch/v1/jobs"),
                                      std::string("/apis/batch/v1/namespaces/default/jobs/j")}) {
      for (const std::string_view accept :
           {"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"}) {
        Ask ask{"GET", target, "", "", token};
        ask.headers = {{"Accept", std::string(accept)}};
        const Answer seen = co_await cluster.ask(ask);
        EXPECT_EQ(seen.status, 200) << target << seen.text;
        EXPECT_EQ(seen.text.find("hunter2"), std::string::npos) << target << accept;
      }
    }
    const Answer one =
        co_await cluster.ask({"GET", "/api/v1/namespaces/default/pods/p0", "", "", token});
    EXPECT_NE(one.text.find("PASSWORD"), std::string::npos) << one.text;
    const Answer several = co_await cluster.ask({"POST",
                                                 "/muster/v1/reads",
                                                 R"(["/api/v1/pods","/apis/batch/v1/jobs"])",
                                                 "application/json",
                                                 token});
    EXPECT_NE(several.text.find("PASSWORD"), std::string::npos);
    EXPECT_EQ(several.text.find("hunter2"), std::string::npos);
    for (const std::string_view target : {"/api/v1/pods?watch=true",
                                          "/api/v1/namespaces/default/pods/p0/log",
                                          "/api/v1/namespaces/default/pods/p0/status",
                                          "/api/v1/secrets",
                                          "/api/v1/configmaps"}) {
      const Answer refused = co_await cluster.ask({"GET", std::string(target), "", "", token});
      EXPECT_EQ(refused.status, 403) << target << refused.text;
    }
    Ask yaml{"GET", "/api/v1/namespaces/default/pods/p0", "", "", token};
    yaml.headers = {{"Accept", "application/yaml"}};
    const Answer as_yaml = co_await cluster.ask(yaml);
    EXPECT_EQ(as_yaml.status, 406) << as_yaml.text;
  });
}

constexpr std::string_view kFrameworks =
    "/apis/frameworkcontroller.microsoft.com/v1/namespaces/vision/frameworks";

std::string owned_by(std::string_view kind, std::string_view name, std::string_view uid) {
  return fmt::format(
      R"("ownerReferences":[{{"apiVersion":"v1","kind":"{}","name":"{}","uid":"{}","controller":true}}])",
      kind,
      name,
      uid);
}

/// A Framework, the ConfigMap of its attempt and the pod of its task, as its controller makes them.
Task<void> make_framework(Cluster& cluster, std::string name) {
  const std::string environment = R"("env":[{"name":"PASSWORD","value":"hunter2"}])";
  const Answer framework = co_await cluster.admin(
      "POST",
      std::string(kFrameworks),
      fmt::format(
          R"({{"metadata":{{"name":"{}","annotations":{{"config":"hunter2"}}}},"spec":{{"executionType":"Start","taskRoles":[{{"name":"main","taskNumber":1,"task":{{"pod":{{"spec":{{"containers":[{{"name":"c","image":"i",{}}}]}}}}}}}}]}}}})",
          name,
          environment));
  EXPECT_EQ(framework.status, 201) << framework.text;
  const Answer map = co_await cluster.admin(
      "POST",
      "/api/v1/namespaces/vision/configmaps",
      fmt::format(R"({{"metadata":{{"name":"{}-attempt",{}}}}})",
                  name,
                  owned_by("Framework", name, json::text_at(framework.body, "metadata", "uid"))));
  EXPECT_EQ(map.status, 201) << map.text;
  const Answer pod = co_await cluster.admin(
      "POST",
      "/api/v1/namespaces/vision/pods",
      fmt::format(
          R"({{"metadata":{{"name":"{0}-main-0",{1}}},"spec":{{"serviceAccountName":"editor","containers":[{{"name":"c","image":"i"}}]}}}})",
          name,
          owned_by("ConfigMap", name + "-attempt", json::text_at(map.body, "metadata", "uid"))));
  EXPECT_EQ(pod.status, 201) << pod.text;
}

/// Tasks look for each other in their Framework; what others put into theirs is not their business.
TEST_F(Identity, ATaskReadsItsOwnFrameworkAlone) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string plain = co_await cluster.account("vision", "editor", "");
    co_await make_framework(cluster, "mine");
    co_await make_framework(cluster, "others");
    const std::string token = co_await bound_token(cluster, "Pod", "mine-main-0");
    const auto status = [&](const std::string& who, std::string target) -> Task<int> {
      const Answer answer =
          co_await cluster.ask({"GET", std::string(kFrameworks) + target, "", "", who});
      co_return answer.status;
    };
    EXPECT_EQ(co_await status(token, "/mine"), 200);
    EXPECT_EQ(co_await status(token, "?fieldSelector=metadata.name%3Dmine"), 200);
    for (const std::string_view target : {"/others",
                                          "",
                                          "?fieldSelector=metadata.name%3Dothers",
                                          "?fieldSelector=metadata.name!%3Dmine",
                                          "?watch=true",
                                          "/mine/status"})
      EXPECT_EQ(co_await status(token, std::string(target)), 403) << target;
    const Answer changed = co_await cluster.ask(
        {"PATCH", std::string(kFrameworks) + "/mine", "{}", "application/merge-patch+json", token});
    EXPECT_EQ(changed.status, 403) << changed.text;
    EXPECT_EQ(co_await status(plain, "/mine"), 403) << "a token that is no pod's";
    (void)co_await cluster.admin("DELETE", "/api/v1/namespaces/vision/configmaps/mine-attempt");
    EXPECT_EQ(co_await status(token, "/mine"), 403) << "the attempt is over";
  });
}

TEST_F(Identity, AnOverviewOfFrameworksShowsNoEnvironment) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "");
    co_await make_framework(cluster, "theirs");
    (void)co_await cluster.admin(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        R"({"metadata":{"name":"v"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"muster-cluster-overview"},"subjects":[{"kind":"ServiceAccount","name":"editor","namespace":"vision"}]})");
    for (const std::string_view target : {"", "/theirs"}) {
      for (const std::string_view accept :
           {"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"}) {
        Ask ask{"GET", std::string(kFrameworks) + std::string(target), "", "", token};
        ask.headers = {{"Accept", std::string(accept)}};
        const Answer seen = co_await cluster.ask(ask);
        EXPECT_EQ(seen.status, 200) << target << seen.text;
        EXPECT_NE(seen.text.find("theirs"), std::string::npos) << target << accept;
        EXPECT_EQ(seen.text.find("hunter2"), std::string::npos) << target << accept << seen.text;
      }
    }
  });
}

}  // namespace
}  // namespace muster::apiserver
