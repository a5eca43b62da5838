/// Subresources of pods (binding, eviction, streams) and tokens of service accounts.
#include <fmt/core.h>

#include "apiserver/auth/auth.h"
#include "apiserver/housekeeping/disruption.h"
#include "apiserver/registry/writer.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

kube::Gvk token_request() {
  const kube::Resource& requests = kube::resources::kTokenRequests;
  return {requests.group, requests.version, requests.kind};
}

const json::Value& created_status() {
  static const json::Value kCreated = {{"kind", "Status"},
                                       {"apiVersion", "v1"},
                                       {"metadata", json::Object()},
                                       {"status", "Success"},
                                       {"code", 201}};
  return kCreated;
}

Result<json::Value> assigned(const Resource& resource,
                             const json::Value& live,
                             const json::Value& binding,
                             Time now,
                             json::Storage storage) {
  const std::string name(kube::name_of(live));
  const auto refuse = [&](const std::string& why) {
    Error error = conflict(resource, name, why);
    error.message =
        fmt::format("Operation cannot be fulfilled on pods/binding {}: {}", quoted(name), why);
    error.subject.kind = "pods/binding";
    return fail(std::move(error));
  };
  const std::string_view uid = kube::uid_of(binding);
  if (!uid.empty() && uid != kube::uid_of(live)) {
    return fail(conflict(
        resource,
        name,
        fmt::format(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            "precondition: {}, UID in object meta: {}",
            kube::namespace_of(live),
            name,
            uid,
            kube::uid_of(live))));
  }
  if (kube::is_deleting(live))
    return refuse(fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  const std::string_view node = json::string_at(live, "spec", "nodeName");
  if (!node.empty())
    return refuse(fmt::format("pod {} is already assigned to node {}", name, quoted(node)));
  if (!json::array_at(live, "spec", "schedulingGates").empty())
    return refuse(fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  json::Value next(live, std::move(storage));
  json::make(next, {"spec", "nodeName"}) = json::at(binding, "target", "name");
  for (const auto& member : json::object_at(binding, "metadata", "annotations")) {
    json::make_object(next, {"metadata", "annotations"})[member.key()] = member.value();
  }
  json::remove(next, {"status", "nominatedNodeName"});
  kube::set_condition(next, {"PodScheduled", "True", "", ""}, now);
  for (json::Value& condition : json::make(next, {"status", "conditions"}).get_array()) {
    if (json::string_at(condition, "type") == "PodScheduled")
      condition.get_object().emplace("lastProbeTime", nullptr);
  }
  return next;
}

}  // namespace

Task<Result<Reply>> bind_pod(Core& core, Call& call, Accepted accepted) {
  auto options = write_options(call, "CreateOptions");
  if (!options) co_return fail(options.error());
  options->subresource = "binding";
  const auto body = read_body(call, "Binding");
  if (!body) co_return fail(body.error());
  const json::Value& binding = **body;
  const std::string name =
      call.name.empty() ? json::text_at(binding, "metadata", "name") : call.name;
  if (const std::string_view given = json::string_at(binding, "kind");
      !given.empty() && given != "Binding") {
    co_return fail(bad_request(fmt::format(
        "{0} in version \"v1\" cannot be handled as a Binding: converting (v1.{0}) to (core.Binding): unknown conversion",
        given)));
  }
  const std::string_view kind = json::string_at(binding, "target", "kind");
  if (!kind.empty() && kind != "Node")
    co_return fail(bad_request(
        fmt::format("target.kind: Unsupported value: {}: supported values: \"Node\", \"<empty>\"",
                    quoted(kind))));
  if (json::string_at(binding, "target", "name").empty())
    co_return fail(bad_request("target.name: Required value"));
  const std::string_view body_name = json::string_at(binding, "metadata", "name");
  if (!body_name.empty() && body_name != name)
    co_return fail(bad_request("name in URL does not match name in Binding object"));
  const ResourcePtr pods = core.resources.get("", "v1", "pods");
  const Time now = core.env.now();
  const auto stored = co_await core.writer->update(
      pods,
      call.ns,
      name,
      [&](const json::Value& live) -> Result<json::Value> {
        return assigned(*pods, live, binding, now, call.memory.storage());
      },
      *options);
  if (!stored) co_return fail(stored.error());
  co_return value_reply(call, accepted, 201, created_status());
}

Task<Result<Reply>> evict_pod(Core& core, Call& call, Accepted accepted) {
  const auto body = decode_body(call, "Eviction", false);
  if (!body) co_return fail(body.error());
  if (const std::string_view given = json::string_at(body->value, "kind");
      !given.empty() && given != "Eviction") {
    co_return fail(bad_request(fmt::format(
        "{0} in version \"v1\" cannot be handled as a Eviction: converting (v1.{0}) to (policy.Eviction): unknown conversion",
        given)));
  }
  const std::string_view body_name = json::string_at(body->value, "metadata", "name");
  if (!body_name.empty() && body_name != call.name)
    co_return fail(bad_request("name in URL does not match name in Eviction object"));
  const json::Value& given = json::at(body->value, "deleteOptions");
  DeleteRequest request;
  if (json::at(given, "gracePeriodSeconds").is_number())
    request.grace_s = json::int_at(given, "gracePeriodSeconds");
  request.propagation = json::text_at(given, "propagationPolicy");
  request.uid = json::text_at(given, "preconditions", "uid");
  request.resource_version = json::text_at(given, "preconditions", "resourceVersion");
  for (const json::Value& each : json::array_at(given, "dryRun"))
    request.dry_run = request.dry_run || json::as_string(each) == "All";
  request.dry_run = request.dry_run || call.target.get("dryRun") == "All";

  const StoredPtr pod = core.find(*call.resource, call.ns, call.name);
  if (!pod) co_return fail(not_found(*call.resource, call.name));
  const auto allowed = core.disruption->check(pod->object);
  if (!allowed) co_return fail(allowed.error());
  if (!request.dry_run && !kube::is_deleting(pod->object)) {
    // What is refused for another reason (a precondition, an admission rule) leaves no mark.
    DeleteRequest tried = request;
    tried.dry_run = true;
    const auto possible =
        co_await core.writer->remove(call.resource, call.ns, call.name, std::move(tried));
    if (!possible) co_return fail(possible.error());
    WriteOptions options;
    options.subresource = "internal";
    options.manager = call.manager;
    const Time now = core.env.now();
    const auto marked = co_await core.writer->update(
        call.resource,
        call.ns,
        call.name,
        [&](const json::Value& live) -> Result<json::Value> {
          // Two evictions at once must not both spend the last allowance.
          const auto still = core.disruption->check(live);
          if (!still) return fail(still.error());
          json::Value next = live;
          kube::set_condition(
              next,
              {"DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"},
              now);
          return next;
        },
        options);
    if (!marked) co_return fail(marked.error());
    request.resource_version.clear();  // held until the mark above moved it
  }
  const auto deleted = co_await core.writer->remove(call.resource, call.ns, call.name, request);
  if (!deleted) co_return fail(deleted.error());
  co_return value_reply(call, accepted, 201, created_status());
}

namespace {

/// What a token is to live and die with.
Result<void> bind_token(Core& core,
                        const Call& call,
                        const json::Value& reference,
                        TokenSubject* subject) {
  const std::string_view kind = json::string_at(reference, "kind");
  const std::string_view plural = kind == "Pod"      ? "pods"
                                  : kind == "Secret" ? "secrets"
                                  : kind == "Node"   ? "nodes"
                                                     : "";
  if (plural.empty()) return {};
  const ResourcePtr resource = core.resources.get("", "v1", plural);
  const std::string name = json::text_at(reference, "name");
  const StoredPtr object = core.find(*resource, resource->info.namespaced ? call.ns : "", name);
  if (!object) return fail(not_found(*resource, name));
  if (kind == "Pod" && json::string_at(object->object, "spec", "serviceAccountName") != call.name) {
    return fail(bad_request(
        fmt::format("cannot bind token for serviceaccount {} to pod running with different "
                    "serviceaccount name.",
                    quoted(call.name))));
  }
  const std::string_view uid = json::string_at(reference, "uid");
  if (!uid.empty() && uid != kube::uid_of(object->object)) {
    return fail(conflict(
        *resource,
        name,
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. "
                    "The object might have been deleted and then recreated",
                    uid)));
  }
  subject->bound_kind = to_lower(kind);
  subject->bound_name = name;
  subject->bound_uid = std::string(kube::uid_of(object->object));
  return {};
}

}  // namespace

Task<Result<Reply>> create_token(Core& core, Call& call, Accepted accepted) {
  auto body = decode_body(call, "TokenRequest", false);
  if (!body) co_return fail(body.error());
  if (const kube::Type* type = kube::Schema::builtin().find_type(token_request());
      type != nullptr) {
    const auto checked = kube::check_fields(*type, body->value);
    if (!checked)
      co_return fail(
          bad_request("TokenRequest in version \"v1\" cannot be handled as a TokenRequest: " +
                      checked.error().message));
  }
  const StoredPtr account = core.find(*call.resource, call.ns, call.name);
  if (!account) co_return fail(not_found(*call.resource, call.name));
  TokenSubject subject;
  subject.ns = call.ns;
  subject.account = call.name;
  subject.account_uid = std::string(kube::uid_of(account->object));
  const json::Value& spec = json::at(body->value, "spec");
  for (const json::Value& audience : json::array_at(spec, "audiences"))
    subject.audiences.push_back(json::text(audience));
  if (json::at(spec, "expirationSeconds").is_number())
    subject.lifetime_s = json::int_at(spec, "expirationSeconds");
  if (subject.lifetime_s < 600) {
    const std::string message = fmt::format(
        "Invalid value: {}: may not specify a duration less than 10 minutes", subject.lifetime_s);
    co_return fail(kube::invalid(
        token_request(), "", {Cause{"FieldValueInvalid", message, "spec.expirationSeconds"}}));
  }
  if (subject.lifetime_s > (std::int64_t{1} << 32)) {
    const std::string message =
        fmt::format("Invalid value: {}: may not specify a duration larger than 2^32 seconds",
                    subject.lifetime_s);
    co_return fail(kube::invalid(
        token_request(), "", {Cause{"FieldValueInvalid", message, "spec.expirationSeconds"}}));
  }
  if (const auto most = core.options.token_lifetime_s_max; most > 0)
    subject.lifetime_s = std::min(subject.lifetime_s, most);
  const json::Value& bound = json::at(spec, "boundObjectRef");
  const auto tied = bind_token(core, call, bound, &subject);
  if (!tied) co_return fail(tied.error());
  Time expires;
  const auto token = core.authenticator->issue(subject, &expires);
  if (!token) co_return fail(token.error());
  json::Object answer_spec = json::as_object(spec);
  if (subject.audiences.empty())
    answer_spec["audiences"] = json::Array{json::Value(core.options.issuer)};
  answer_spec["expirationSeconds"] = subject.lifetime_s;
  if (!answer_spec.contains("boundObjectRef")) answer_spec["boundObjectRef"] = nullptr;
  const json::Value answer = {
      {"kind", "TokenRequest"},
      {"apiVersion", kube::resources::kTokenRequests.api_version()},
      {"metadata",
       {{"name", call.name},
        {"namespace", call.ns},
        {"creationTimestamp", format_time(core.env.now())}}},
      {"spec", std::move(answer_spec)},
      {"status", {{"token", *token}, {"expirationTimestamp", format_time(expires)}}}};
  co_return value_reply(call, accepted, 201, answer);
}

namespace {

Result<void> check_log_options(const Call& call) {
  const auto at_least =
      [&](std::string_view key, std::int64_t least, std::string_view rule) -> Result<void> {
    const std::string_view text = call.target.get(key);
    if (text.empty()) return {};
    const auto value = parse_int(text);
    if (!value)
      return fail(
          bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", quoted(text))));
    if (*value >= least) return {};
    const std::string message = fmt::format("Invalid value: {}: {}", text, rule);
    return fail(kube::invalid({"", "v1", "PodLogOptions"},
                              call.name,
                              {Cause{"FieldValueInvalid", message, std::string(key)}}));
  };
  for (const auto& [key, least, rule] :
       {std::tuple{"tailLines", 0, "must be greater than or equal to 0"},
        std::tuple{"limitBytes", 1, "must be greater than 0"},
        std::tuple{"sinceSeconds", 1, "must be greater than 0"}}) {
    const auto good = at_least(key, least, rule);
    if (!good) return good;
  }
  if (!call.target.get("sinceSeconds").empty() && !call.target.get("sinceTime").empty()) {
    const std::string message =
        "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
    return fail(kube::invalid(
        {"", "v1", "PodLogOptions"}, call.name, {Cause{"FieldValueForbidden", message, "[]"}}));
  }
  return {};
}

/// The container must be named when there are several, and must exist.
Result<void> check_container(const Call& call, const json::Value& pod) {
  std::vector<std::string> main, all;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::Value& container : json::array_at(pod, "spec", list)) {
      all.push_back(json::text_at(container, "name"));
      if (list == "containers") main.push_back(all.back());
    }
  }
  const std::string wanted(call.target.get("container"));
  if (wanted.empty()) {
    if (main.size() <= 1 ||
        !kube::annotation(pod, kube::names::kubernetes::kDefaultContainer).empty())
      return {};
    return fail(bad_request(
        fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                    call.name,
                    join(main, " "))));
  }
  for (const std::string& name : all) {
    if (name == wanted) return {};
  }
  return fail(bad_request(fmt::format("container {} is not valid for pod {}", wanted, call.name)));
}

}  // namespace

Task<void> stream_pod(Core& core, Call& call, net::ResponseWriter& writer) {
  const bool log = call.subresource == "log";
  const StoredPtr pod = core.find(*call.resource, call.ns, call.name);
  std::optional<Error> refusal;
  if (!pod) {
    refusal = not_found(*call.resource, call.name);
  } else {
    const auto container =
        call.subresource == "portforward" ? Result<void>() : check_container(call, pod->object);
    const auto options = log ? check_log_options(call) : Result<void>();
    const bool scheduled = !json::string_at(pod->object, "spec", "nodeName").empty();
    if (!container) {
      refusal = container.error();
    } else if (!options) {
      refusal = options.error();
    } else if (!scheduled && log) {
      net::Response empty;
      empty.status = 204;
      (void)co_await writer.send(std::move(empty));
      co_return;
    } else if (!scheduled) {
      refusal = bad_request(fmt::format("pod {} does not have a host assigned", call.name));
    } else if (!log && call.request.headers.get("Upgrade").empty()) {
      refusal = bad_request("Upgrade request required");
    } else if (!core.node_agent) {
      Error error;
      error.code = Code::kInternal;
      error.message = fmt::format("Get \"https://{}:10250/\": no agent answers for node {}",
                                  json::string_at(pod->object, "spec", "nodeName"),
                                  quoted(json::string_at(pod->object, "spec", "nodeName")));
      refusal = std::move(error);
    }
  }
  if (refusal) {
    (void)co_await writer.send(error_response(*refusal));
    co_return;
  }
  co_await core.node_agent->stream(
      call.subresource, pod->object, call.target, std::move(call.request), writer);
}

}  // namespace muster::apiserver
