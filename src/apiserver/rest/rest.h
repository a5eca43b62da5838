/// The verbs of the REST API. Each takes a routed, authorised call and gives the answer.
#pragma once

#include "apiserver/core.h"
#include "kube/selector/selector.h"

namespace muster::apiserver {

/// What a verb answers: a response or, to a client of this process, objects as they are.
struct Reply : net::Response {
  Reply() = default;
  Reply(net::Response response) : net::Response(std::move(response)) {}
  kube::ObjectPtr object;
  /// Of a list, with the revision that it shows.
  std::vector<kube::ObjectPtr> items;
  Revision revision = 0;
};

/// Which objects a list, watch or deletecollection is about.
struct Selection {
  std::string ns;
  kube::LabelSelector labels;
  kube::FieldSelector fields;
  bool everything = true;
  [[nodiscard]] bool matches(const Resource& resource, const Stored& stored) const;
};
Result<Selection> parse_selection(const Call& call);
/// Decimal, or BadRequest. Empty gives 0.
Result<Revision> parse_version(std::string_view text);
/// True once the image has reached the revision; false after three seconds.
Task<bool> wait_for_version(Core& core, Revision revision);

Task<Result<Reply>> get_object(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> list_objects(Core& core, Call& call, Accepted accepted);
/// Answers on the writer itself.
Task<void> watch_objects(Core& core, Call& call, Accepted accepted, net::ResponseWriter& writer);
Task<Result<Reply>> create_object(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> update_object(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> patch_object(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> delete_object(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> delete_collection(Core& core, Call& call);

/// Subresources that are not plain views of the object.
Task<Result<Reply>> get_scale(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> update_scale(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> bind_pod(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> evict_pod(Core& core, Call& call, Accepted accepted);
Task<Result<Reply>> create_token(Core& core, Call& call, Accepted accepted);
Task<void> stream_pod(Core& core, Call& call, net::ResponseWriter& writer);
Task<Result<Reply>> create_review(Core& core, Call& call, Accepted accepted);
/// metrics.k8s.io.
Task<Result<Reply>> read_usage(Core& core, Call& call);

/// A value that is no object of the store.
Reply value_reply(const Call& call, const Accepted& accepted, int status, json::Value value);
/// One object in the negotiated form; Tables need `now`.
Result<Reply> object_response(
    Core& core, const Call& call, const Accepted& accepted, int status, const StoredPtr& stored);
/// The Table of one object, as text.
std::string table_text(
    Core& core, const Call& call, const Accepted& accepted, const Stored& stored, bool columns);

/// The body of a create or update: decoded, checked against fieldValidation, unknown fields
/// dropped, defaults filled in.
Result<json::Value> decode_object(Call& call, std::string_view action);
/// The same, on a worker if the body is large.
Task<Result<json::Value>> decode_beside(Core& core, Call& call, std::string_view action);
/// After a patch: the same checks on the result, reported as Kubernetes reports them for patches.
Result<void> check_patched(Call& call,
                           json::Value& object,
                           const std::vector<std::string>& duplicates);
/// Options of writes from the query.
Result<WriteOptions> write_options(Call& call, std::string_view options_kind);
Result<DeleteRequest> delete_request(const Call& call);
Reply with_warnings(Reply response, const Call& call);

}  // namespace muster::apiserver
