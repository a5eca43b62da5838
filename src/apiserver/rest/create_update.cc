/// create, update, delete and deletecollection.
#include <fmt/core.h>

#include <set>

#include "apiserver/registry/webhooks.h"
#include "apiserver/registry/writer.h"
#include "apiserver/rest/batch.h"
#include "apiserver/rest/convert.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "apiserver/rest/walk.h"
#include "base/pace.h"
#include "base/strings.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

/// Asks the webhooks that want to be asked about deletions.
Task<Result<void>> review_deletion(Core& core, Call& call, StoredPtr stored, bool dry_run) {
  if (!stored || (!core.webhooks->mutating() && !core.webhooks->validating()))
    co_return Result<void>();
  const kube::ObjectPtr old = served_object(*call.resource, stored);
  const std::string ns(stored->ns());
  const Reviewed review{.resource = *call.resource,
                        .ns = ns,
                        .name = std::string(stored->name()),
                        .operation = "DELETE",
                        .old_object = old.get(),
                        .user = call.user,
                        .dry_run = dry_run,
                        .warnings = &call.warnings};
  json::Value nothing;
  auto passed = co_await core.webhooks->mutate(review, nothing);
  if (passed) passed = co_await core.webhooks->validate(review, nothing);
  co_return passed;
}

}  // namespace

Task<Result<Reply>> create_object(Core& core, Call& call, Accepted accepted) {
  auto options = write_options(call, "CreateOptions");
  if (!options) co_return fail(options.error());
  options->beside = is_large(call);
  auto object = co_await decode_beside(core, call, "Create");
  if (!object) co_return fail(object.error());
  const auto stored = co_await core.writer->create(
      call.resource, call.ns, std::move(*object), *options, call.user, &call.warnings);
  if (!stored) co_return fail(stored.error());
  auto response = object_response(core, call, accepted, 201, *stored);
  if (!response) co_return response;
  co_return with_warnings(std::move(*response), call);
}

Task<Result<Reply>> update_object(Core& core, Call& call, Accepted accepted) {
  auto options = write_options(call, "UpdateOptions");
  if (!options) co_return fail(options.error());
  options->beside = is_large(call);
  auto object = co_await decode_beside(core, call, "Update");
  if (!object) co_return fail(object.error());
  const std::string_view name = kube::name_of(*object);
  if (name.empty())
    co_return fail(bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        call.name)));
  if (name != call.name)
    co_return fail(bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, call.name)));
  const bool exists = core.find(*call.resource, call.ns, call.name) != nullptr;
  if (!exists && call.subresource.empty() && call.resource->kind->rules->creates_on_update) {
    json::remove(*object, {"metadata", "resourceVersion"});
    const auto made = co_await core.writer->create(
        call.resource, call.ns, std::move(*object), *options, call.user, &call.warnings);
    if (!made) co_return fail(made.error());
    co_return object_response(core, call, accepted, 201, *made);
  }
  if (exists && call.resource->kind->rules->needs_version &&
      kube::resource_version_of(*object).empty()) {
    kube::Gvk gvk = call.resource->info.gvk();
    gvk.kind = call.resource->info.plural;
    Cause cause{"FieldValueInvalid",
                "Invalid value: 0: must be specified for an update",
                "metadata.resourceVersion"};
    co_return fail(kube::invalid(gvk, call.name, {std::move(cause)}));
  }
  const auto stored = co_await core.writer->update(
      call.resource,
      call.ns,
      call.name,
      [&object](const json::Value&) -> Result<json::Value> { return std::move(*object); },
      *options);
  if (!stored) co_return fail(stored.error());
  auto response = object_response(core, call, accepted, 200, *stored);
  if (!response) co_return response;
  co_return with_warnings(std::move(*response), call);
}

Task<Result<Reply>> delete_object(Core& core, Call& call, Accepted accepted) {
  const auto request = delete_request(call);
  if (!request) co_return fail(request.error());
  if (call.resource->storage == "jobs.batch" && request->propagation.empty()) {
    call.warnings.emplace_back(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning");
  }
  if (call.resource->storage == "namespaces") {
    for (const std::string_view kept : {"default", "kube-system", "kube-public"}) {
      if (call.name == kept)
        co_return fail(forbidden(*call.resource, call.name, "this namespace may not be deleted"));
    }
  }
  const auto reviewed = co_await review_deletion(
      core, call, core.find(*call.resource, call.ns, call.name), request->dry_run);
  if (!reviewed) co_return fail(reviewed.error());
  const auto deleted = co_await core.writer->remove(call.resource, call.ns, call.name, *request);
  if (!deleted) co_return fail(deleted.error());
  if (deleted->gone && !call.resource->kind->rules->answers_object) {
    co_return with_warnings(
        value_reply(
            call,
            accepted,
            200,
            success_status(*call.resource, call.name, kube::uid_of(deleted->object->object))),
        call);
  }
  auto response = object_response(core, call, accepted, 200, deleted->object);
  if (!response) co_return response;
  co_return with_warnings(std::move(*response), call);
}

Task<Result<Reply>> delete_collection(Core& core, Call& call) {
  const auto selection = parse_selection(call);
  if (!selection) co_return fail(selection.error());
  const auto request = delete_request(call);
  if (!request) co_return fail(request.error());
  const Objects unchanged;
  Walk walk(core.collection(*call.resource).objects(),
            unchanged,
            key_prefix(*call.resource, selection->ns),
            "");
  auto chosen = co_await find_selected(core.slices, *call.resource, walk, *selection, 0);
  for (const StoredPtr& stored : chosen) {
    const auto reviewed = co_await review_deletion(core, call, stored, request->dry_run);
    if (!reviewed) co_return fail(reviewed.error());
  }
  const BatchResult removed = co_await remove_all(core, call.resource, std::move(chosen), *request);
  if (removed.failure) co_return fail(*removed.failure);
  std::string body = fmt::format(
      "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"items\":[",
      call.resource->list_kind(),
      call.resource->api_version(),
      core.image.revision());
  bool first = true;
  Pace pace(core.slices);
  for (const StoredPtr& stored : removed.objects) {
    if (pace.over()) co_await pace.rest();
    if (!stored) continue;
    if (!first) body += ',';
    first = false;
    append_list_item(*call.resource, *stored, body);
  }
  body += "]}\n";
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  co_return response;
}

}  // namespace muster::apiserver
