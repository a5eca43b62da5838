#include "client/kubeconfig.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/strings.h"
#include "json/json.h"
#include "kube/names.h"

namespace muster::client {
namespace {

/// Where the cluster of `muster up` says which Unix socket serves the same API.
constexpr auto kExecTimeout = std::chrono::seconds(30);

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::kNotFound, fmt::format("cannot read \"{}\"", path));
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string resolve(const std::string& folder, std::string_view path) {
  const std::filesystem::path given(path);
  return given.is_absolute() || folder.empty() ? given.string()
                                               : (std::filesystem::path(folder) / given).string();
}

/// `<field>-data` in base64, else the file that `<field>` names, else empty.
Result<std::string> inline_or_file(const json::Value& object,
                                   const std::string& field,
                                   const std::string& folder) {
  const auto inlined = json::string_at(object, field + "-data");
  if (!inlined.empty()) {
    const auto decoded = base64_decode(inlined);
    if (!decoded)
      return fail(Code::kInvalid, fmt::format("kubeconfig: {}-data is not base64", field));
    return *decoded;
  }
  const auto path = json::string_at(object, field);
  if (path.empty()) return std::string();
  auto text = read_text(resolve(folder, path));
  if (!text)
    return fail(Code::kInvalid, fmt::format("kubeconfig: {}: {}", field, text.error().message));
  return text;
}

/// The entry called `name` of a list like clusters: [{name, cluster: {…}}].
Result<json::Value> entry(const json::Value& config,
                          std::string_view list,
                          std::string_view member,
                          std::string_view name) {
  std::vector<std::string> known;
  for (const auto& item : json::array_at(config, list)) {
    if (json::string_at(item, "name") == name) return json::at(item, member);
    known.push_back(json::text_at(item, "name"));
  }
  return fail(
      Code::kNotFound,
      fmt::format(
          "kubeconfig: no {} is named \"{}\", there are: {}", member, name, join(known, ", ")));
}

Result<void> read_cluster(const json::Value& cluster, const std::string& folder, Connection& out) {
  out.http.url = json::text_at(cluster, "server");
  if (out.http.url.empty()) return fail(Code::kInvalid, "kubeconfig: the cluster has no server");
  if (!json::string_at(cluster, "proxy-url").empty())
    return fail(Code::kInvalid, "kubeconfig: proxy-url is not supported");
  out.http.insecure = json::bool_at(cluster, "insecure-skip-tls-verify");
  out.http.server_name = json::text_at(cluster, "tls-server-name");
  auto ca = inline_or_file(cluster, "certificate-authority", folder);
  if (!ca) return tl::unexpected(std::move(ca.error()));
  out.http.ca_pem = std::move(*ca);
  for (const auto& extension : json::array_at(cluster, "extensions")) {
    if (json::string_at(extension, "name") == kube::names::kSocket)
      out.http.unix_path = json::text_at(extension, "extension", "path");
  }
  return {};
}

/// Runs the program once now, since a client certificate must be known before the first connection.
Result<void> read_exec(const json::Value& exec, const std::string& folder, Connection& out) {
  ExecCommand command;
  const auto program = json::text_at(exec, "command");
  if (program.empty()) return fail(Code::kInvalid, "kubeconfig: exec has no command");
  // A path is relative to the file, a bare name is looked up in $PATH.
  command.argv.push_back(program.find('/') == std::string::npos ? program
                                                                : resolve(folder, program));
  for (const auto& argument : json::array_at(exec, "args"))
    command.argv.push_back(json::text(argument));
  for (const auto& variable : json::array_at(exec, "env")) {
    command.env.emplace_back(json::text_at(variable, "name"), json::text_at(variable, "value"));
  }
  const auto version = json::text_at(exec, "apiVersion");
  if (!version.empty()) command.api_version = version;
  auto credential = run_exec_command(command, kExecTimeout);
  if (!credential) return tl::unexpected(std::move(credential.error()));
  out.client.token = std::move(credential->token);
  out.client.token_expires = credential->expires;
  out.http.certificate_pem = std::move(credential->certificate_pem);
  out.http.key_pem = std::move(credential->key_pem);
  if (!out.client.token.empty()) out.client.token_command = std::move(command);
  return {};
}

Result<void> read_user(const json::Value& user, const std::string& folder, Connection& out) {
  if (!json::at(user, "exec").is_null()) return read_exec(json::at(user, "exec"), folder, out);
  for (const std::string_view other : {"auth-provider", "username"}) {
    if (json::at(user, other).is_null()) continue;
    return fail(
        Code::kInvalid,
        fmt::format(
            "kubeconfig: \"{}\" credentials are not supported, use a token or a client certificate",
            other));
  }
  auto certificate = inline_or_file(user, "client-certificate", folder);
  if (!certificate) return tl::unexpected(std::move(certificate.error()));
  auto key = inline_or_file(user, "client-key", folder);
  if (!key) return tl::unexpected(std::move(key.error()));
  if (certificate->empty() != key->empty())
    return fail(Code::kInvalid, "kubeconfig: client-certificate and client-key go together");
  out.http.certificate_pem = std::move(*certificate);
  out.http.key_pem = std::move(*key);
  out.client.token = json::text_at(user, "token");
  const auto token_file = json::string_at(user, "tokenFile");
  if (!token_file.empty()) out.client.token_file = resolve(folder, token_file);
  return {};
}

Result<Connection> connection_of(const json::Value& config,
                                 const std::string& folder,
                                 const std::string& wanted) {
  const auto context_name = wanted.empty() ? json::text_at(config, "current-context") : wanted;
  if (context_name.empty())
    return fail(Code::kInvalid, "kubeconfig: no current-context is set, name a context");
  auto context = entry(config, "contexts", "context", context_name);
  if (!context) return tl::unexpected(std::move(context.error()));
  Connection out;
  out.context = context_name;
  const auto ns = json::string_at(*context, "namespace");
  if (!ns.empty()) out.client.default_namespace = ns;
  auto cluster = entry(config, "clusters", "cluster", json::string_at(*context, "cluster"));
  if (!cluster) return tl::unexpected(std::move(cluster.error()));
  auto read = read_cluster(*cluster, folder, out);
  if (!read) return tl::unexpected(std::move(read.error()));
  const auto user_name = json::string_at(*context, "user");
  if (user_name.empty()) {
    out.http.unix_path.clear();
    return out;
  }
  auto user = entry(config, "users", "user", user_name);
  if (!user) return tl::unexpected(std::move(user.error()));
  read = read_user(*user, folder, out);
  if (!read) return tl::unexpected(std::move(read.error()));
  // A certificate is shown in TLS's handshake, which a Unix socket has not.
  if (out.client.token.empty() && out.client.token_file.empty()) out.http.unix_path.clear();
  return out;
}

/// File names inside each file are made absolute, so that entries of several files can stand in
/// one.
void anchor_paths(json::Value& config, const std::string& folder) {
  const auto fix = [&](std::string_view list,
                       std::string_view member,
                       std::initializer_list<std::string_view> fields) {
    auto* items = config.as_object().if_contains(list);
    if (items == nullptr || !items->is_array()) return;
    for (auto& item : items->as_array()) {
      auto* object = item.is_object() ? item.as_object().if_contains(member) : nullptr;
      if (object == nullptr || !object->is_object()) continue;
      for (const auto field : fields) {
        auto* path = object->as_object().if_contains(field);
        if (path != nullptr && path->is_string() && !path->as_string().empty())
          *path = resolve(folder, std::string_view(path->as_string()));
      }
    }
  };
  fix("clusters", "cluster", {"certificate-authority"});
  fix("users", "user", {"client-certificate", "client-key", "tokenFile"});
  if (auto* users = config.as_object().if_contains("users");
      users != nullptr && users->is_array()) {
    for (auto& user : users->as_array()) {
      const auto command = json::text_at(user, "user", "exec", "command");
      if (command.find('/') != std::string::npos)
        json::make(user, {"user", "exec", "command"}) = resolve(folder, command);
    }
  }
}

/// Several files act as one: the first to name a thing wins, as kubectl has it.
void merge_config(json::Value& into, json::Value from) {
  auto& target = into.as_object();
  for (const std::string_view list : {"clusters", "contexts", "users"}) {
    auto* items = from.as_object().if_contains(list);
    if (items == nullptr || !items->is_array()) continue;
    auto& all = target[list];
    if (!all.is_array()) all = json::Array();
    for (auto& item : items->as_array()) {
      bool known = false;
      for (const auto& have : all.as_array())
        known = known || json::at(have, "name") == json::at(item, "name");
      if (!known) all.as_array().push_back(std::move(item));
    }
  }
  const auto current = json::text_at(from, "current-context");
  if (json::string_at(into, "current-context").empty() && !current.empty())
    target["current-context"] = current;
}

/// Inside a pod that was given an account.
bool has_account(const std::string& folder) {
  return !environment("KUBERNETES_SERVICE_HOST").empty() &&
         std::filesystem::exists(folder + "/token");
}

Result<Connection> in_cluster(const std::string& folder) {
  const auto host = environment("KUBERNETES_SERVICE_HOST");
  const auto port = environment("KUBERNETES_SERVICE_PORT");
  Connection out;
  out.http.url = host.find(':') == std::string::npos ? fmt::format("https://{}:{}", host, port)
                                                     : fmt::format("https://[{}]:{}", host, port);
  auto ca = read_text(folder + "/ca.crt");
  if (!ca) return fail(Code::kInvalid, fmt::format("in-cluster account: {}", ca.error().message));
  out.http.ca_pem = std::move(*ca);
  out.client.token_file = folder + "/token";
  const auto ns = read_text(folder + "/namespace");
  if (ns && !trim(*ns).empty()) out.client.default_namespace = trim(*ns);
  return out;
}

/// The files that somebody named for this call, those that exist.
Result<std::vector<std::string>> named_files(const KubeconfigOptions& options, bool account) {
  if (!options.path.empty()) return std::vector<std::string>{options.path};
  const auto listed = environment("KUBECONFIG");
  auto files = split_nonempty(listed, ':');
  std::erase_if(files, [](const std::string& path) { return !std::filesystem::exists(path); });
  if (files.empty() && !listed.empty() && !account)
    return fail(Code::kInvalid,
                fmt::format("$KUBECONFIG names \"{}\", which does not exist", listed));
  return files;
}

/// What lies in the home folder: the file of `muster up`, else kubectl's own.
std::vector<std::string> file_at_home() {
  for (const auto& path : {own_kubeconfig(), environment("HOME") + "/.kube/config"}) {
    if (std::filesystem::is_regular_file(path)) return {path};
  }
  return {};
}

Result<json::Value> parse_config(std::string_view text) {
  auto config = json::parse_yaml_one(text);
  if (!config) return fail(Code::kInvalid, fmt::format("kubeconfig: {}", config.error().message));
  if (!config->is_object())
    return fail(Code::kInvalid, "kubeconfig: wanted a mapping with clusters, users and contexts");
  return config;
}

}  // namespace

Result<Connection> connection_from_yaml(std::string_view text,
                                        const std::string& folder,
                                        const std::string& context) {
  auto config = parse_config(text);
  if (!config) return tl::unexpected(std::move(config.error()));
  return connection_of(*config, folder, context);
}

std::string own_kubeconfig() {
  const auto home = environment("MUSTER_HOME");
  return home.empty() ? environment("HOME") + "/.muster/kubeconfig" : home + "/kubeconfig";
}

Result<Connection> resolve_connection(const KubeconfigOptions& options,
                                      const std::string& account_folder) {
  const bool account = has_account(account_folder);
  auto named = named_files(options, account);
  if (!named) return tl::unexpected(std::move(named.error()));
  if (named->empty() && account) return in_cluster(account_folder);
  const auto files = named->empty() ? file_at_home() : std::move(*named);
  if (files.empty())
    return fail(
        Code::kNotFound,
        "no kubeconfig: set $KUBECONFIG, or start a cluster with \"muster up\", or run inside a cluster with a service account");
  json::Value merged = json::Object();
  for (const auto& path : files) {
    auto text = read_text(path);
    if (!text) return fail(Code::kNotFound, fmt::format("kubeconfig: {}", text.error().message));
    auto config = parse_config(*text);
    if (!config)
      return fail(Code::kInvalid, fmt::format("\"{}\": {}", path, config.error().message));
    anchor_paths(*config, std::filesystem::absolute(path).parent_path().string());
    merge_config(merged, std::move(*config));
  }
  auto connection = connection_of(merged, "", options.context);
  if (connection) connection->files = join(files, ":");
  return connection;
}

Result<std::unique_ptr<Client>> connect(net::Loop& loop, KubeconfigOptions options) {
  auto connection = resolve_connection(options);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  connection->http.http2 = true;
  auto http = net::make_client(loop, std::move(connection->http));
  if (!http) return tl::unexpected(std::move(http.error()));
  connection->client.user_agent = options.user_agent;
  return make_client(loop, std::move(*http), std::move(connection->client));
}

}  // namespace muster::client
