#include "apiserver/registry/webhooks.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/auth/auth.h"
#include "apiserver/registry/strategy.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/apply/managed.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"
#include "kube/selector/selector.h"
#include "net/tls/tls.h"

namespace muster::apiserver {

struct Webhooks::Hook {
  StoredPtr configuration;  // keeps `webhook` alive while somebody waits for it
  const json::Value* webhook = nullptr;
  [[nodiscard]] std::string name() const { return json::text_at(*webhook, "name"); }
  [[nodiscard]] bool ignores_failure() const {
    return json::string_at(*webhook, "failurePolicy") == "Ignore";
  }
  [[nodiscard]] std::int64_t timeout_s() const {
    return std::clamp<std::int64_t>(json::as_int(json::at(*webhook, "timeoutSeconds"), 10), 1, 30);
  }
};

namespace {

constexpr std::size_t kClientsMax = 64;
/// A body that is longer is no answer to a review.
constexpr std::size_t kAnswerMax = 8 << 20;

bool is_configuration(const Resource& resource) {
  return resource.info.group == kube::groups::kAdmissionRegistration;
}

bool lists(const json::Value& list, std::string_view wanted) {
  const json::Array& all = json::as_array(list);
  return std::any_of(all.begin(), all.end(), [&](const json::Value& each) {
    return json::as_string(each) == "*" || json::as_string(each) == wanted;
  });
}

/// "pods", "pods/status", "*", "*/*", "pods/*" or "*/scale".
bool names_resource(std::string_view pattern, const Reviewed& review) {
  const auto slash = pattern.find('/');
  const std::string_view resource = pattern.substr(0, slash);
  if (resource != "*" && resource != review.resource.info.plural) return false;
  if (slash == std::string_view::npos) return review.subresource.empty();
  const std::string_view sub = pattern.substr(slash + 1);
  return sub == "*" || sub == review.subresource;
}

bool matches_rule(const json::Value& rule, const Reviewed& review, bool exact) {
  if (!lists(json::at(rule, "operations"), review.operation)) return false;
  if (!lists(json::at(rule, "apiGroups"), review.resource.info.group)) return false;
  // The versions of one kind are equivalent, unless the webhook wants to tell them apart.
  if (exact && !lists(json::at(rule, "apiVersions"), review.resource.info.version)) return false;
  const std::string_view scope = json::string_at(rule, "scope");
  const bool namespaced = review.resource.info.namespaced;
  if ((scope == "Cluster" && namespaced) || (scope == "Namespaced" && !namespaced)) return false;
  const json::Array& resources = json::array_at(rule, "resources");
  return std::any_of(resources.begin(), resources.end(), [&](const json::Value& each) {
    return names_resource(json::as_string(each), review);
  });
}

bool selects(const json::Value& selector, const json::Value& object) {
  if (selector.is_null()) return true;
  const auto parsed = kube::LabelSelector::from_object(selector);
  return !parsed || parsed->matches_object(object);
}

Error not_asked(std::string_view name, std::string_view why) {
  Error error;
  error.code = Code::kInternal;
  error.message =
      fmt::format("Internal error occurred: failed calling webhook {}: {}", quoted(name), why);
  return error;
}

/// In Kubernetes' words.
Error denied(std::string_view name, const json::Value& status) {
  Error error;
  const int code = std::max<int>(400, static_cast<int>(json::int_at(status, "code")));
  error.code = code_of(json::string_at(status, "reason"), code);
  const std::string said = fmt::format("admission webhook {} denied the request", quoted(name));
  std::string_view why = json::string_at(status, "message");
  if (why.empty()) why = json::string_at(status, "reason");
  error.message = why.empty() ? said + " without explanation" : fmt::format("{}: {}", said, why);
  return error;
}

json::Value kind_of(const Resource& resource) {
  return {{"group", resource.info.group},
          {"version", resource.info.version},
          {"kind", resource.info.kind}};
}

json::Value resource_of(const Resource& resource) {
  return {{"group", resource.info.group},
          {"version", resource.info.version},
          {"resource", resource.info.plural}};
}

json::Value review_of(const Reviewed& review, const std::string& uid, json::Value object) {
  json::Object request;
  request["uid"] = uid;
  request["kind"] = request["requestKind"] = kind_of(review.resource);
  request["resource"] = request["requestResource"] = resource_of(review.resource);
  if (!review.subresource.empty())
    request["subResource"] = request["requestSubResource"] = review.subresource;
  request["name"] = review.name;
  if (!review.ns.empty()) request["namespace"] = review.ns;
  request["operation"] = review.operation;
  request["userInfo"] = user_info(review.user);
  request["object"] = std::move(object);
  json::Value old;
  if (review.old_object != nullptr) old = *review.old_object;
  kube::unpack_managers(old);
  request["oldObject"] = std::move(old);
  request["dryRun"] = review.dry_run;
  const std::string_view options = review.operation == "CREATE"   ? "CreateOptions"
                                   : review.operation == "UPDATE" ? "UpdateOptions"
                                                                  : "DeleteOptions";
  request["options"] = json::Value{{"kind", options}, {"apiVersion", "meta.k8s.io/v1"}};
  return {{"kind", "AdmissionReview"},
          {"apiVersion", "admission.k8s.io/v1"},
          {"request", std::move(request)}};
}

struct Address {
  std::string url;   // with the path
  std::string host;  // https://ADDRESS:PORT, to connect to
  std::string server_name;
};

/// Where a pod behind the service answers: the server is no member of the pods' network of names.
Result<Address> find_service(Core& core, const json::Value& service) {
  const std::string name = json::text_at(service, "name"), ns = json::text_at(service, "namespace");
  const std::int64_t wanted = json::as_int(json::at(service, "port"), 443);
  const StoredPtr found = core.image.collection("services").find(ns + "/" + name);
  if (!found)
    return fail(Code::kNotFound,
                fmt::format("service {}/{} does not exist", quoted(ns), quoted(name)));
  std::string port_name;
  bool has_port = false;
  for (const json::Value& port : json::array_at(found->object, "spec", "ports")) {
    if (json::int_at(port, "port") != wanted) continue;
    port_name = json::text_at(port, "name");
    has_port = true;
  }
  if (!has_port)
    return fail(Code::kNotFound,
                fmt::format("service {}/{} has no port {}", quoted(ns), quoted(name), wanted));
  const StoredPtr endpoints = core.image.collection("endpoints").find(ns + "/" + name);
  const json::Value none;
  for (const json::Value& subset :
       json::array_at(endpoints ? endpoints->object : none, "subsets")) {
    for (const json::Value& port : json::array_at(subset, "ports")) {
      const json::Array& addresses = json::array_at(subset, "addresses");
      if (json::text_at(port, "name") != port_name || addresses.empty()) continue;
      std::string path = json::text_at(service, "path");
      if (path.empty()) path = "/";
      const std::string server = fmt::format("{}.{}.svc", name, ns);
      return Address{fmt::format("https://{}:{}{}", server, wanted, path),
                     fmt::format("https://{}:{}",
                                 json::string_at(addresses.front(), "ip"),
                                 json::int_at(port, "port")),
                     server};
    }
  }
  return fail(Code::kUnavailable,
              fmt::format("no endpoints available for service {}", quoted(name)));
}

Result<Address> address_of(Core& core, const json::Value& client_config) {
  if (json::at(client_config, "service").is_object())
    return find_service(core, json::at(client_config, "service"));
  const std::string url = json::text_at(client_config, "url");
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return fail(Code::kBadRequest, "its url is not https://");
  const auto slash = url.find('/', kScheme.size());
  return Address{url, url.substr(0, slash), ""};
}

std::string path_of(const std::string& url) {
  const auto slash = url.find('/', std::string_view("https://").size());
  return slash == std::string::npos ? "/" : url.substr(slash);
}

/// Names and times are the server's to give, whatever a patch says.
void keep_identity(json::Value& object, const json::Value& before) {
  for (const std::string_view key : {"name", "namespace", "uid", "creationTimestamp"}) {
    const json::Value& value = json::at(before, "metadata", key);
    if (value.is_null())
      json::remove(object, {"metadata", key});
    else
      json::make(object, {"metadata", key}) = value;
  }
  object.get_object()["kind"] = json::at(before, "kind");
  object.get_object()["apiVersion"] = json::at(before, "apiVersion");
}

}  // namespace

bool Webhooks::mutating() const {
  return !core_.image.collection(kube::collections::kMutatingWebhooks).objects().empty();
}
bool Webhooks::validating() const {
  return !core_.image.collection(kube::collections::kValidatingWebhooks).objects().empty();
}

std::vector<Webhooks::Hook> Webhooks::hooks_for(std::string_view collection,
                                                const Reviewed& review,
                                                const json::Value& object) const {
  std::vector<Hook> out;
  if (is_configuration(review.resource)) return out;
  const bool is_namespace = review.resource.storage == "namespaces";
  const StoredPtr ns =
      is_namespace ? nullptr : core_.image.collection("namespaces").find(review.ns);
  const json::Value none;
  const json::Value& old = review.old_object != nullptr ? *review.old_object : none;
  for (const auto& [key, configuration] : core_.image.collection(collection).objects()) {
    for (const json::Value& webhook : json::array_at(configuration->object, "webhooks")) {
      const bool exact = json::string_at(webhook, "matchPolicy") == "Exact";
      const json::Array& rules = json::array_at(webhook, "rules");
      if (std::none_of(rules.begin(), rules.end(), [&](const json::Value& rule) {
            return matches_rule(rule, review, exact);
          }))
        continue;
      const json::Value& in_ns = json::at(webhook, "namespaceSelector");
      if (is_namespace && !selects(in_ns, object.is_object() ? object : old)) continue;
      if (review.resource.info.namespaced && !selects(in_ns, ns ? ns->object : none)) continue;
      const json::Value& of_object = json::at(webhook, "objectSelector");
      if (!selects(of_object, object) && !selects(of_object, old)) continue;
      out.push_back({configuration, &webhook});
    }
  }
  return out;
}

Result<std::shared_ptr<net::Client>> Webhooks::client_for(const Hook& hook) {
  if (!core_.options.dial) return fail(Code::kUnavailable, "this server cannot call webhooks");
  const json::Value& wanted = json::at(*hook.webhook, "clientConfig");
  const auto address = address_of(core_, wanted);
  if (!address) return fail(address.error());
  net::ClientOptions options;
  options.url = address->host;
  options.server_name = address->server_name;
  const std::string bundle = json::text_at(wanted, "caBundle");
  if (!bundle.empty()) {
    auto pem = base64_decode(bundle);
    if (!pem) return fail(Code::kBadRequest, "its caBundle is not base64");
    options.ca_pem = std::move(*pem);
  }
  options.request_timeout = std::chrono::seconds(hook.timeout_s());
  options.connect_timeout = options.request_timeout;
  const std::string key =
      fmt::format("{}|{}|{}|{}", options.url, options.server_name, bundle, hook.timeout_s());
  if (const auto found = clients_.find(key); found != clients_.end()) return found->second;
  auto made = core_.options.dial(std::move(options));
  if (!made) return fail(made.error());
  if (clients_.size() >= kClientsMax) clients_.clear();
  return clients_.emplace(key, std::move(*made)).first->second;
}

/// The `response` of the review; an error if it could not be had.
Task<Result<json::Value>> Webhooks::ask(const Hook& hook,
                                        const Reviewed& review,
                                        json::Value object) {
  const auto client = client_for(hook);
  if (!client) co_return fail(client.error());
  const auto address = address_of(core_, json::at(*hook.webhook, "clientConfig"));
  if (!address) co_return fail(address.error());
  const std::string uid = net::random_uuid();
  net::Request request;
  request.method = "POST";
  request.target = path_of(address->url) + fmt::format("?timeout={}s", hook.timeout_s());
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Accept", "application/json");
  request.headers.set("User-Agent", "muster-admission");
  kube::unpack_managers(object);
  request.body = json::dump(review_of(review, uid, std::move(object)));
  const auto response = co_await (*client)->request(std::move(request));
  const auto failed = [&](std::string_view why) {
    return fail(Code::kUnavailable,
                fmt::format("failed to call webhook: Post {}: {}", quoted(address->url), why));
  };
  if (!response) co_return failed(response.error().message);
  if (response->status != 200)
    co_return failed(fmt::format("wanted status 200, found {}", response->status));
  if (response->body.size() > kAnswerMax) co_return failed("the answer is too long");
  const auto answer = json::parse(response->body);
  if (!answer) co_return failed(answer.error().message);
  const json::Value& said = json::at(*answer, "response");
  if (json::string_at(*answer, "kind") != "AdmissionReview" || !said.is_object())
    co_return failed("wanted an AdmissionReview with a response");
  if (json::string_at(said, "uid") != uid)
    co_return failed(fmt::format(
        "expected response.uid={}, got {}", quoted(uid), quoted(json::string_at(said, "uid"))));
  co_return said;
}

namespace {

void add_warnings(const Reviewed& review, const json::Value& said) {
  if (review.warnings == nullptr) return;
  for (const json::Value& warning : json::array_at(said, "warnings"))
    review.warnings->push_back(json::text(warning).substr(0, 256));
}

/// Changes the object as the answer's patch says.
Result<void> patch(const json::Value& said, json::Value& object) {
  const std::string_view text = json::string_at(said, "patch");
  if (text.empty()) return {};
  if (json::string_at(said, "patchType") != "JSONPatch")
    return fail(Code::kInternal, "wanted patchType JSONPatch");
  const auto decoded = base64_decode(text);
  if (!decoded) return fail(Code::kInternal, "its patch is not base64");
  const auto operations = json::parse(*decoded);
  if (!operations) return fail(operations.error());
  json::Value changed = object;
  kube::unpack_managers(changed);
  const auto applied = json::json_patch(changed, *operations);
  if (!applied) return applied;
  if (!changed.is_object()) return fail(Code::kInternal, "its patch leaves no object");
  keep_identity(changed, object);
  kube::pack_managers(changed);
  object = std::move(changed);
  return {};
}

}  // namespace

Task<Result<void>> Webhooks::mutate(Reviewed review, json::Value& object) {
  for (const Hook& hook : hooks_for(kube::collections::kMutatingWebhooks, review, object)) {
    const auto said = co_await ask(hook, review, object);
    Result<void> done;
    if (!said) {
      done = fail(said.error());
    } else {
      add_warnings(review, *said);
      if (!json::bool_at(*said, "allowed"))
        co_return fail(denied(hook.name(), json::at(*said, "status")));
      if (object.is_object()) {
        done = patch(*said, object);
        if (done) apply_defaults(review.resource, object);
      }
    }
    if (done) continue;
    if (!hook.ignores_failure()) co_return fail(not_asked(hook.name(), done.error().message));
    log::warn("apiserver", "webhook {} is passed over: {}", hook.name(), done.error().message);
  }
  co_return Result<void>();
}

Task<Result<void>> Webhooks::validate(Reviewed review, const json::Value& object) {
  for (const Hook& hook : hooks_for(kube::collections::kValidatingWebhooks, review, object)) {
    const auto said = co_await ask(hook, review, object);
    if (said) {
      add_warnings(review, *said);
      if (!json::bool_at(*said, "allowed"))
        co_return fail(denied(hook.name(), json::at(*said, "status")));
      continue;
    }
    if (!hook.ignores_failure()) co_return fail(not_asked(hook.name(), said.error().message));
    log::warn("apiserver", "webhook {} is passed over: {}", hook.name(), said.error().message);
  }
  co_return Result<void>();
}

std::string unserved_webhook(const json::Value& configuration) {
  for (const json::Value& webhook : json::array_at(configuration, "webhooks")) {
    const std::string_view name = json::string_at(webhook, "name");
    if (!json::array_at(webhook, "matchConditions").empty())
      return fmt::format(
          "webhook {} has matchConditions, which muster up does not evaluate; use rules, "
          "namespaceSelector and objectSelector",
          quoted(name));
    for (const json::Value& rule : json::array_at(webhook, "rules")) {
      if (lists(json::at(rule, "operations"), "CONNECT") &&
          !lists(json::at(rule, "operations"), "*"))
        return fmt::format(
            "webhook {} asks for CONNECT, which muster up does not support; use RBAC on "
            "pods/exec, pods/attach and pods/portforward",
            quoted(name));
    }
  }
  return "";
}

}  // namespace muster::apiserver
