/// What a LimitRange bounds, and where a volume's files may be.
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

class Limits : public Cluster {};

const std::string kPods = "/api/v1/namespaces/default/pods";

std::string container(std::string_view name, std::string_view resources) {
  return fmt::format(R"({{"name":"{}","image":"i","resources":{{{}}}}})", name, resources);
}
std::string memory(std::string_view amount) {
  return fmt::format(R"("limits":{{"memory":"{0}"}},"requests":{{"memory":"{0}"}})", amount);
}

Task<void> range(Cluster& cluster, std::string limits) {
  const Answer made = co_await cluster.admin(
      "POST",
      "/api/v1/namespaces/default/limitranges",
      fmt::format(R"({{"metadata":{{"name":"r"}},"spec":{{"limits":[{}]}}}})", limits));
  EXPECT_EQ(made.status, 201) << made.text;
}

TEST_F(Limits, HoldForInitContainersAndThePodAsAWhole) {
  run([](Cluster& cluster) -> Task<void> {
    co_await range(
        cluster,
        R"({"type":"Container","max":{"memory":"100Mi"}},{"type":"Pod","max":{"memory":"120Mi"}})");
    const Answer first = co_await cluster.admin(
        "POST",
        kPods,
        fmt::format(
            R"({{"metadata":{{"name":"p"}},"spec":{{"initContainers":[{}],"containers":[{}]}}}})",
            container("i", memory("4Gi")),
            container("c", memory("50Mi"))));
    EXPECT_EQ(first.status, 403);
    EXPECT_EQ(first.message(),
              "pods \"p\" is forbidden: [maximum memory usage per Container is 100Mi, but limit is "
              "4Gi, maximum memory usage per Pod is 120Mi, but limit is 4Gi]");
    const Answer three = co_await cluster.admin(
        "POST",
        kPods,
        fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{},{},{}]}}}})",
                    container("a", memory("90Mi")),
                    container("b", memory("90Mi")),
                    container("c", memory("90Mi"))));
    EXPECT_EQ(three.message(),
              "pods \"p\" is forbidden: maximum memory usage per Pod is 120Mi, but limit is 270Mi");
    const Answer fits = co_await cluster.admin(
        "POST",
        kPods,
        fmt::format(
            R"({{"metadata":{{"name":"p"}},"spec":{{"initContainers":[{}],"containers":[{}]}}}})",
            container("i", memory("100Mi")),
            container("c", memory("90Mi"))));
    EXPECT_EQ(fits.status, 201) << fits.text;
  });
}

TEST_F(Limits, DefaultsAreFilledInEverywhereAndSaid) {
  run([](Cluster& cluster) -> Task<void> {
    co_await range(
        cluster,
        R"({"type":"Container","default":{"cpu":"1","memory":"1Gi"},"defaultRequest":{"cpu":"500m"}})");
    const Answer made = co_await cluster.admin(
        "POST",
        kPods,
        R"({"metadata":{"name":"p"},"spec":{"initContainers":[{"name":"i","image":"i"}],"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"2"}}}]}})");
    EXPECT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(
        json::text_at(made.body, "metadata", "annotations", "kubernetes.io/limit-ranger"),
        // A LimitRange without a default request takes its default limit for it.
        "LimitRanger plugin set: memory request for container c; memory limit for container "
        "c; cpu, memory request for init container i; cpu, memory limit for init container i");
  });
}

TEST_F(Limits, RatiosAndClaimsCount) {
  run([](Cluster& cluster) -> Task<void> {
    co_await range(
        cluster,
        R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}},{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}})");
    const Answer ratio = co_await cluster.admin(
        "POST",
        kPods,
        fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{}]}}}})",
                    container("c", R"("limits":{"cpu":"3"},"requests":{"cpu":"1"})")));
    EXPECT_EQ(ratio.message(),
              "pods \"p\" is forbidden: cpu max limit to request ratio per Container is 2, but "
              "provided ratio is 3.000000");
    const auto claim = [](std::string_view size) {
      return fmt::format(
          R"({{"metadata":{{"name":"c"}},"spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"{}"}}}}}}}})",
          size);
    };
    const std::string claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    const Answer large = co_await cluster.admin("POST", claims, claim("3Gi"));
    EXPECT_EQ(large.message(),
              "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per "
              "PersistentVolumeClaim is 2Gi, but request is 3Gi");
    const Answer small = co_await cluster.admin("POST", claims, claim("1Mi"));
    EXPECT_EQ(small.status, 403);
    const Answer fits = co_await cluster.admin("POST", claims, claim("2Gi"));
    EXPECT_EQ(fits.status, 201) << fits.text;
  });
}

TEST_F(Limits, AVolumesFilesStayInTheVolume) {
  run([](Cluster& cluster) -> Task<void> {
    const auto pod = [](std::string_view volume) {
      return fmt::format(
          R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"volumes":[{{"name":"v",{}}}]}}}})",
          volume);
    };
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"("projected":{"sources":[{"serviceAccountToken":{"path":"../../x"}}]})",
         "spec.volumes[0].projected.path: Invalid value: \"../../x\": must not contain '..'"},
        {R"("projected":{"sources":[{"serviceAccountToken":{"path":"/etc/passwd"}}]})",
         "spec.volumes[0].projected.path: Invalid value: \"/etc/passwd\": must be a relative path"},
        {R"("configMap":{"name":"m","items":[{"key":"k","path":"a/../../b"}]})",
         "spec.volumes[0].configMap.items[0].path: Invalid value: \"a/../../b\": must not contain "
         "'..'"},
        {R"("secret":{"secretName":"s","items":[{"key":"k","path":"/abs"}]})",
         "spec.volumes[0].secret.items[0].path: Invalid value: \"/abs\": must be a relative path"},
        {R"("projected":{"sources":[{"configMap":{"name":"m","items":[{"key":"k","path":"..data"}]}}]})",
         "spec.volumes[0].projected.sources[0].configMap.items[0].path: Invalid value: \"..data\": "
         "must not start with '..'"},
        {R"("downwardAPI":{"items":[{"path":"../n","fieldRef":{"fieldPath":"metadata.name"}}]})",
         "spec.volumes[0].downwardAPI.path: Invalid value: \"../n\": must not contain '..'"},
        {R"("hostPath":{"path":"/data/../etc"})",
         "spec.volumes[0].hostPath.path: Invalid value: \"/data/../etc\": must not contain '..'"}};
    for (const auto& [volume, problem] : cases) {
      const Answer refused = co_await cluster.admin("POST", kPods, pod(volume));
      EXPECT_EQ(refused.status, 422) << volume << refused.text;
      EXPECT_EQ(refused.message(), "Pod \"p\" is invalid: " + problem);
    }
  });
}

TEST_F(Limits, ASeccompProfileStaysInItsFolder) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string field = "spec.securityContext.seccompProfile.localhostProfile: ";
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"("localhostProfile":"../pki/admin.token")",
         R"(Invalid value: "../pki/admin.token": must not contain '..')"},
        {R"("localhostProfile":"/etc/shadow")",
         R"(Invalid value: "/etc/shadow": must be a relative path)"},
        {R"("x":"")", "Required value: must be set when seccomp type is Localhost"}};
    for (const auto& [profile, problem] : cases) {
      const Answer refused = co_await cluster.admin(
          "POST",
          kPods,
          fmt::format(
              R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"securityContext":{{"seccompProfile":{{"type":"Localhost",{}}}}}}}}})",
              profile));
      EXPECT_EQ(refused.status, 422) << profile << refused.text;
      EXPECT_EQ(refused.message(), "Pod \"p\" is invalid: " + field + problem);
    }
  });
}

/// Each peer with each port is a line of a table that all pods of the machine wait for.
TEST_F(Limits, APolicyHasOnlySoManyPeersTimesPorts) {
  run([](Cluster& cluster) -> Task<void> {
    std::string from, ports;
    for (int i = 0; i < 100; ++i) {
      from += (i > 0 ? "," : "") + fmt::format(R"({{"ipBlock":{{"cidr":"10.1.{}.0/24"}}}})", i);
      ports += (i > 0 ? "," : "") + fmt::format(R"({{"port":{}}})", i + 1);
    }
    const Answer refused = co_await cluster.admin(
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        fmt::format(
            R"({{"metadata":{{"name":"big"}},"spec":{{"podSelector":{{}},"ingress":[{{"from":[{}],"ports":[{}]}}]}}}})",
            from,
            ports));
    EXPECT_EQ(refused.status, 403) << refused.text;
    EXPECT_EQ(
        refused.message(),
        "networkpolicies.networking.k8s.io \"big\" is forbidden: its peers and ports are 10000 "
        "rules of the machine's table, and one policy may have 5000; name larger networks, or "
        "ranges of ports (endPort)");
  });
}

TEST_F(Limits, APatternTakesNoLongerThanItsText) {
  run([](Cluster& cluster) -> Task<void> {
    const Answer defined = co_await cluster.admin(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        R"({"metadata":{"name":"things.a.b"},"spec":{"group":"a.b","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"word":{"type":"string","pattern":"^(a+)+$"}}}}}]}})");
    EXPECT_EQ(defined.status, 201) << defined.text;
    const std::string things = "/apis/a.b/v1/namespaces/default/things";
    const Answer hostile = co_await cluster.admin(
        "POST",
        things,
        fmt::format(
            R"({{"apiVersion":"a.b/v1","kind":"Thing","metadata":{{"name":"t"}},"word":"{}!"}})",
            std::string(10'000, 'a')));
    EXPECT_EQ(hostile.status, 422) << hostile.text.substr(0, 300);
    // And one that is long and right is right.
    const Answer right = co_await cluster.admin(
        "POST",
        things,
        fmt::format(
            R"({{"apiVersion":"a.b/v1","kind":"Thing","metadata":{{"name":"t"}},"word":"{}"}})",
            std::string(10'000, 'a')));
    EXPECT_EQ(right.status, 201) << right.text.substr(0, 300);
  });
}

/// Two thousand million replicas kept the controllers, and so the whole server, for ever; also after
/// a restart.
TEST_F(Limits, OneObjectAsksForABoundedNumberOfPods) {
  run([](Cluster& cluster) -> Task<void> {
    const auto make = [&](std::string path, std::string spec) -> Task<Answer> {
      auto answer = co_await cluster.admin(
          "POST", path, fmt::format(R"({{"metadata":{{"name":"many"}},"spec":{}}})", spec));
      co_return answer;
    };
    const std::string sets = "/apis/apps/v1/namespaces/default/statefulsets";
    const auto set = [&](std::int64_t replicas) {
      return fmt::format(
          R"({{"replicas":{},"serviceName":"s","selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}})",
          replicas);
    };
    for (const std::int64_t replicas : {std::int64_t{100'001}, std::int64_t{2'000'000'000}}) {
      const Answer refused = co_await make(sets, set(replicas));
      EXPECT_EQ(refused.status, 403) << refused.text;
      EXPECT_NE(refused.message().find("more than 100000 pods"), std::string::npos);
    }
    const Answer fits = co_await make(sets, set(100'000));
    EXPECT_EQ(fits.status, 201) << fits.text;
    const Answer scaled = co_await cluster.admin("PATCH",
                                                 sets + "/many/scale",
                                                 R"({"spec":{"replicas":2000000000}})",
                                                 "application/merge-patch+json");
    EXPECT_EQ(scaled.status, 403) << scaled.text;
    const Answer job = co_await make(
        "/apis/batch/v1/namespaces/default/jobs",
        R"({"parallelism":2000000000,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}})");
    EXPECT_EQ(job.status, 403) << job.text;
    const Answer cron = co_await make(
        "/apis/batch/v1/namespaces/default/cronjobs",
        R"({"schedule":"* * * * *","jobTemplate":{"spec":{"parallelism":2000000000,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}})");
    EXPECT_EQ(cron.status, 403) << cron.text;
  });
}

TEST_F(Limits, NamesThatAreNoNamesAreRefused) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const std::string_view from :
         {R"("envFrom":[{"secretRef":{"name":"../other"}}])",
          R"("envFrom":[{"configMapRef":{"name":"a/b"}}])",
          R"("env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"a/b","key":"k"}}}])",
          R"("env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"a","key":"../k"}}}])"}) {
      const Answer refused = co_await cluster.ask(
          {"POST",
           "/api/v1/namespaces/vision/pods",
           fmt::format(
               R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i",{}}}]}}}})",
               from),
           "application/json",
           token});
      EXPECT_EQ(refused.status, 422) << from << refused.text;
    }
  });
}

}  // namespace
}  // namespace muster::apiserver
