#include "client/kubeconfig.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "client/client.h"

namespace muster::client {
namespace {

using namespace std::chrono_literals;

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

/// A pod of a machine whose user keeps kubeconfigs in the same home folder.
class PodWithAHome : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-pod-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write("account/token", "secret");
    write("account/ca.crt", "CA");
    write("account/namespace", "team-b\n");
    keep("HOME", folder_);
    keep("MUSTER_HOME", "");
    keep("KUBECONFIG", "");
    keep("KUBERNETES_SERVICE_HOST", "10.96.0.1");
    keep("KUBERNETES_SERVICE_PORT", "443");
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
    std::filesystem::remove_all(folder_);
  }
  void keep(const char* name, const std::string& value) {
    const char* was = std::getenv(name);
    before_.emplace_back(name, was == nullptr ? std::nullopt : std::optional<std::string>(was));
    ::setenv(name, value.c_str(), 1);
  }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  /// A kubeconfig whose server is called as the file.
  void write_config(const std::string& name) const {
    write(name,
          fmt::format("current-context: x\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
                      "clusters: [{{name: c, cluster: {{server: 'https://{}'}}}}]\n",
                      name));
  }
  [[nodiscard]] std::string server(const std::string& flag = "") const {
    KubeconfigOptions options;
    options.path = flag;
    const auto found = resolve_connection(options, folder_ + "/account");
    return found ? found->http.url : found.error().message;
  }

  std::string folder_;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST_F(PodWithAHome, TakesItsOwnAccountBeforeWhatLiesInTheHomeFolder) {
  write_config(".muster/kubeconfig");
  write_config(".kube/config");
  EXPECT_EQ(server(), "https://10.96.0.1:443");
  keep("MUSTER_HOME", folder_ + "/.muster");
  EXPECT_EQ(server(), "https://10.96.0.1:443");
}

TEST_F(PodWithAHome, TakesAFileThatWasNamedForTheCallBeforeItsAccount) {
  write_config("flag");
  write_config("listed");
  keep("KUBECONFIG", folder_ + "/listed");
  EXPECT_EQ(server(), "https://listed");
  EXPECT_EQ(server(folder_ + "/flag"), "https://flag");
  keep("KUBECONFIG", folder_ + "/missing");
  EXPECT_EQ(server(), "https://10.96.0.1:443");
}

TEST_F(PodWithAHome, FindsTheHomesFilesWithoutAnAccount) {
  std::filesystem::remove(folder_ + "/account/token");
  EXPECT_TRUE(server().starts_with("no kubeconfig: ")) << server();
  write_config(".kube/config");
  EXPECT_EQ(server(), "https://.kube/config");
  write_config(".muster/kubeconfig");
  EXPECT_EQ(server(), "https://.muster/kubeconfig");
  keep("KUBECONFIG", folder_ + "/missing");
  EXPECT_EQ(server(),
            fmt::format("$KUBECONFIG names \"{}/missing\", which does not exist", folder_));
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

}  // namespace
}  // namespace muster::client
