/// metrics.k8s.io/v1beta1: nodes and pods, to read. Nothing is stored; every answer is asked of the
/// node agent.
#include "apiserver/rest/rest.h"

namespace muster::apiserver {

Task<Result<Reply>> read_usage(Core& core, Call& call) {
  const Resource& resource = *call.resource;
  if (!resource.has_verb(call.verb) || !call.subresource.empty())
    co_return fail(method_not_allowed());
  auto labels = kube::LabelSelector::parse(call.target.get("labelSelector"));
  if (!labels) co_return fail(labels.error());
  auto fields = kube::FieldSelector::parse(call.target.get("fieldSelector"));
  if (!fields) co_return fail(fields.error());
  for (const kube::FieldSelector::Term& term : fields->terms()) {
    if (term.field != "metadata.name" && term.field != "metadata.namespace")
      co_return fail(bad_request("field label not supported: " + term.field));
  }
  json::Array all;
  if (core.node_agent && resource.info.namespaced) {
    all = co_await core.node_agent->pod_metrics(call.ns);
  } else if (core.node_agent) {
    all = co_await core.node_agent->node_metrics();
  }
  json::Array items;
  for (json::Value& each : all) {
    const std::string name = json::text_at(each, "metadata", "name");
    // The labels that select a node are those of the Node.
    if (!resource.info.namespaced) {
      const StoredPtr node = core.find(*core.resources.get("", "v1", "nodes"), "", name);
      if (node && json::at(node->object, "metadata", "labels").is_object())
        json::make(each, {"metadata", "labels"}) = json::at(node->object, "metadata", "labels");
    }
    if (call.verb == "get" ? name != call.name
                           : !labels->matches_object(each) || !fields->matches(each))
      continue;
    json::Object object{{"kind", resource.info.kind}, {"apiVersion", resource.api_version()}};
    for (const auto& member : each.get_object()) object[member.key()] = member.value();
    if (call.verb == "get") co_return json_response(200, json::Value(std::move(object)));
    items.push_back(std::move(object));
  }
  if (call.verb == "get") co_return fail(not_found(resource, call.name));
  co_return json_response(200,
                          json::Value{{"kind", resource.list_kind()},
                                      {"apiVersion", resource.api_version()},
                                      {"metadata", json::Object()},
                                      {"items", std::move(items)}});
}

}  // namespace muster::apiserver
