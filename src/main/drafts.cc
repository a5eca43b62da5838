#include "main/drafts.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/caches.h"
#include "controllers/common/native_kinds.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster {
namespace {

constexpr std::size_t kPodsMax = 4096;
/// Pods after which others have a turn.
constexpr std::size_t kTogether = 32;

Error unavailable() {
  Error error;
  error.code = Code::kUnavailable;
  error.message = "the scheduler is still starting; try again in a moment";
  error.retry_after_s = 1;
  return error;
}

/// What Kubernetes says no with, as opposed to what could not be asked.
bool is_refusal(const Error& error) {
  switch (error.code) {
    case Code::kForbidden:
    case Code::kInvalid:
    case Code::kBadRequest:
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kNotFound:
    case Code::kTooLarge:
      return true;
    default:
      return false;
  }
}

bool is_suspended(const json::Value& job) {
  return json::bool_at(job, "spec", "suspend") ||
         json::bool_at(job, "spec", "runPolicy", "suspend");
}

const kube::Resource& resource_of_group(const json::Value& group) {
  namespace r = kube::resources;
  for (const kube::Resource* one :
       {&r::kNativePodGroups, &r::kSchedulerPluginsPodGroups, &r::kT9kPodGroups}) {
    if (json::string_at(group, "apiVersion") == one->api_version()) return *one;
  }
  return r::kPodGroups;
}

}  // namespace

Task<Result<json::Value>> Drafts::create_as(const answers::Visitor& visitor,
                                            std::string target,
                                            const json::Value& object) {
  net::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.headers.set("Accept", "application/json");
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Impersonate-User", visitor.user);
  for (const std::string& group : visitor.groups) request.headers.add("Impersonate-Group", group);
  request.body = json::dump(object);
  if (parts_.sign) parts_.sign(request);
  const auto answer = co_await client_.http().request(std::move(request));
  if (!answer) co_return fail(answer.error());
  auto body = json::parse(answer->body);
  if (answer->status >= 300) {
    Error error;
    error.code = code_of(body ? json::string_at(*body, "reason") : "", answer->status);
    error.message = body ? json::text_at(*body, "message") : answer->body.substr(0, 500);
    co_return fail(std::move(error));
  }
  co_return body;
}

Task<Result<json::Value>> Drafts::create(std::string target, json::Value object) {
  auto made = co_await client_.raw("POST", std::move(target), std::move(object));
  co_return made;
}

/// Defaults, priorities and whatever else the server adds, or why it would not take them.
Task<Result<void>> Drafts::complete(std::vector<json::Value>& objects, answers::Draft& draft) {
  std::size_t done = 0;
  for (json::Value& object : objects) {
    if (++done % kTogether == 0) co_await env_.sleep(Duration::zero());
    const bool pod = json::string_at(object, "kind") == kube::resources::kPods.kind;
    const kube::Resource& resource = pod ? kube::resources::kPods : resource_of_group(object);
    json::remove(object, {"status"});
    // The class of an OpenPAI job is made beside it, and goes with it.
    if (pod && json::string_at(object, "spec", "priorityClassName") == draft.name + "-priority")
      json::remove(object, {"spec", "priorityClassName"});
    auto made = co_await create(resource.path(draft.ns) + "?dryRun=All", object);
    if (!made) {
      if (!is_refusal(made.error())) co_return fail(made.error());
      draft.refused = made.error().message;
      draft.refused_reason = reason_of(made.error().code);
      co_return Result<void>();
    }
    // Lists and dry runs of some servers come without.
    made->as_object()["apiVersion"] = resource.api_version();
    made->as_object()["kind"] = resource.kind;
    object = std::move(*made);
  }
  co_return Result<void>();
}

Task<Result<answers::Draft>> Drafts::make(answers::Visitor visitor,
                                          std::string ns,
                                          json::Value job) {
  const controllers::Controllers* controllers = parts_.controllers();
  if (controllers == nullptr || parts_.scheduler() == nullptr) co_return fail(unavailable());
  const kube::Gvk gvk = kube::gvk_of(job);
  const std::string version(json::string_at(job, "apiVersion"));
  const kube::Resource* resource = controllers->find_resource(version, gvk.kind);
  if (resource == nullptr)
    co_return fail(Code::kBadRequest,
                   fmt::format("{} {}: wanted a job: a Pod, or a kind that becomes pods here",
                               version.empty() ? "an object without apiVersion" : version,
                               gvk.kind));
  if (const std::string_view own = kube::namespace_of(job); !own.empty() && own != ns)
    co_return fail(Code::kBadRequest,
                   fmt::format("the job is in namespace {}, the question is about {}", own, ns));
  answers::Draft draft;
  draft.ns = ns;
  draft.kind = to_lower(gvk.kind);
  draft.name = kube::name_of(job);
  auto stored = co_await create_as(visitor, resource->path(ns) + "?dryRun=All", job);
  if (!stored) {
    if (!is_refusal(stored.error())) co_return fail(stored.error());
    draft.refused = stored.error().message;
    draft.refused_reason = reason_of(stored.error().code);
    co_return draft;
  }
  draft.name = kube::name_of(*stored);
  if (json::string_at(*stored, "metadata", "uid").empty())
    json::make(*stored, {"metadata", "uid"}) = "draft";
  controllers = parts_.controllers();
  if (controllers == nullptr) co_return fail(unavailable());
  controllers::Drafted made = controllers->draft(*stored, env_.now());
  if (made.pods.size() > kPodsMax)
    co_return fail(
        Code::kTooLarge,
        fmt::format(
            "{} pods: at most {} can be checked before submission", made.pods.size(), kPodsMax));
  if (made.pods.empty()) {
    draft.idle = is_suspended(*stored) ? "it is suspended: nothing starts before it is resumed"
                 : made.said.empty()   ? "it makes no pods now"
                                       : "it makes no pods now: " + made.said;
    co_return draft;
  }
  if (gvk.kind != kube::resources::kPods.kind) {
    for (auto* objects : {&made.groups, &made.pods}) {
      const auto completed = co_await complete(*objects, draft);
      if (!completed) co_return fail(completed.error());
      if (!draft.refused.empty()) co_return draft;
    }
  }
  const scheduler::Scheduler* scheduler = parts_.scheduler();
  if (scheduler == nullptr) co_return fail(unavailable());
  for (engine::Event& event : scheduler->events_of(made.groups, made.pods)) {
    const bool pod = std::holds_alternative<engine::PodUpsert>(event);
    (pod ? draft.pods : draft.groups).push_back(std::move(event));
  }
  co_return draft;
}

}  // namespace muster
