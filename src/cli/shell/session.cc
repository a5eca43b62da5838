#include "cli/shell/session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "client/kubeconfig.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

std::string env_or_empty(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool exists(const std::string& path) {
  std::error_code failure;
  return !path.empty() && std::filesystem::is_regular_file(path, failure);
}

Task<void> count_down(Task<void> task, int* left, Signal* done) {
  co_await std::move(task);
  if (--*left == 0) done->notify();
}

}  // namespace

Task<std::string> Session::user() {
  if (!user_.empty()) co_return user_;
  json::Value review =
      json::Object{{"apiVersion", kube::resources::kSelfSubjectReviews.api_version()},
                   {"kind", "SelfSubjectReview"}};
  Result<json::Value> answer = fail(Code::kUnavailable, "no cluster");
  if (client_)
    answer = co_await client_->raw(
        "POST", kube::resources::kSelfSubjectReviews.path(""), std::move(review));
  if (answer) user_ = json::text_at(*answer, "status", "userInfo", "username");
  if (user_.empty()) {
    const std::string name = env_or_empty("USER");
    user_ = name.empty() ? "unknown" : name;
  }
  co_return user_;
}

net::Request Session::request(std::string method, std::string target) const {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!bearer.empty()) request.headers.set("Authorization", "Bearer " + bearer);
  return request;
}

int Session::failed(std::string_view what) {
  console.error(what);
  return 1;
}

int Session::failed(const Error& error) {
  const std::string file = kubeconfig.empty() ? "its account" : kubeconfig;
  if (error.code == Code::kUnavailable || error.code == Code::kTimeout) {
    const bool own = kubeconfig == client::own_kubeconfig();
    return failed(fmt::format("the cluster at {} cannot be reached: {}; {}",
                              server,
                              error.message,
                              own ? "start it with 'muster up'"
                                  : fmt::format("is it running? Its address is from {}", file)));
  }
  if (error.code == Code::kUnauthorized) {
    return failed(fmt::format(
        "the cluster at {} does not accept the credentials of {}: they are wrong or have expired",
        server,
        file));
  }
  return failed(error.message);
}

std::map<std::string, std::string> read_arena_config() {
  std::string path = env_or_empty("ARENA_CONFIG");
  if (!exists(path)) path = env_or_empty("HOME") + "/.arena/config";
  std::map<std::string, std::string> config;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::string_view entry = trim(line);
    const std::size_t equals = entry.find('=');
    if (entry.empty() || entry[0] == '#' || equals == std::string_view::npos) continue;
    config[std::string(trim(entry.substr(0, equals)))] =
        std::string(trim(entry.substr(equals + 1)));
  }
  return config;
}

Task<void> run_all(Env& env, std::vector<Task<void>> tasks) {
  if (tasks.empty()) co_return;
  int left = static_cast<int>(tasks.size());
  const std::unique_ptr<Signal> done = env.make_signal();
  for (Task<void>& task : tasks) env.spawn(count_down(std::move(task), &left, done.get()));
  while (left > 0) {
    const bool notified = co_await done->wait(Duration{0});
    (void)notified;
  }
}

}  // namespace muster::cli
