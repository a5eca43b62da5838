#include "load.h"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "json/json.h"

namespace muster::bench {

Flags::Flags(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
}

std::string Flags::text(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "" : found->second;
}

int Flags::number(std::string_view flag, int otherwise) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? otherwise : std::atoi(found->second.c_str());
}

Result<Target> read_target(const std::string& kubeconfig) {
  std::ifstream in(kubeconfig);
  std::ostringstream text;
  text << in.rdbuf();
  const auto config = json::parse_yaml_one(text.str());
  const auto unreadable = [&] {
    return fail(Code::kInvalid,
                fmt::format("--kubeconfig {}: wanted one with a cluster and a user", kubeconfig));
  };
  if (!config) return unreadable();
  const json::Array& clusters = json::array_at(*config, "clusters");
  const json::Array& users = json::array_at(*config, "users");
  if (clusters.empty() || users.empty()) return unreadable();
  Target target;
  target.url = json::text_at(clusters[0], "cluster", "server");
  target.token = json::text_at(users[0], "user", "token");
  constexpr std::string_view kScheme = "https://";
  const auto colon = target.url.rfind(':');
  if (!target.url.starts_with(kScheme) || colon <= kScheme.size()) return unreadable();
  target.host = target.url.substr(kScheme.size(), colon - kScheme.size());
  target.port = target.url.substr(colon + 1);
  return target;
}

Result<std::unique_ptr<net::Client>> connect(net::Loop& loop,
                                             const Target& target,
                                             Connections connections) {
  net::ClientOptions options;
  options.url = target.url;
  options.insecure = true;
  options.connections_max = connections.most;
  options.request_timeout = connections.patience;
  return net::make_client(loop, options);
}

net::Request request(const Target& target, std::string method, std::string path, std::string body) {
  net::Request made;
  made.method = std::move(method);
  made.target = std::move(path);
  made.headers.set("Authorization", "Bearer " + target.token);
  made.headers.set("User-Agent", "load/1");
  if (!body.empty()) made.headers.set("Content-Type", "application/json");
  made.body = std::move(body);
  return made;
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

int refuse(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

}  // namespace muster::bench
