#include "kube/schema/openapi.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

std::string ref(const Type& type) { return "#/components/schemas/" + type.name; }

Value gvk_value(const Gvk& gvk) {
  return Object{{"group", gvk.group}, {"kind", gvk.kind}, {"version", gvk.version}};
}

/// The types a document has to hold: those of its kinds and all they refer to.
struct ByName {
  bool operator()(const Type* a, const Type* b) const { return a->name < b->name; }
};
using Types = std::set<const Type*, ByName>;

void reach(const Type& type, Types& seen);

void reach(const FieldType& field, Types& seen) {
  if (field.element) reach(*field.element, seen);
  if (field.type != nullptr) reach(*field.type, seen);
}

void reach(const Type& type, Types& seen) {
  if (!seen.insert(&type).second) return;
  for (const auto& [name, field] : type.fields) reach(field.type, seen);
}

Value scalar_schema(const std::string& scalar) {
  if (scalar == "any") return Object();
  const std::size_t colon = scalar.find(':');
  Object out{{"type", scalar.substr(0, colon)}};
  if (colon != std::string::npos) out["format"] = scalar.substr(colon + 1);
  return out;
}

Value type_schema(const FieldType& type) {
  switch (type.shape) {
    case FieldType::Shape::kMessage:
      return Object{{"allOf", Array{Object{{"$ref", ref(*type.type)}}}}, {"default", Object()}};
    case FieldType::Shape::kList:
      return Object{{"type", "array"}, {"items", type_schema(*type.element)}};
    case FieldType::Shape::kMap:
      return Object{{"type", "object"}, {"additionalProperties", type_schema(*type.element)}};
    case FieldType::Shape::kScalar:
      break;
  }
  if (type.type != nullptr) return Object{{"$ref", ref(*type.type)}};
  return scalar_schema(type.scalar);
}

Value named_schema(const Type& type) {
  if (type.special == Special::kQuantity)
    return Object{{"description", "Quantity is a fixed-point number, such as 500m or 1Gi."},
                  {"oneOf", Array{Object{{"type", "string"}}, Object{{"type", "number"}}}}};
  if (type.special == Special::kIntOrString)
    return Object{{"format", "int-or-string"},
                  {"oneOf", Array{Object{{"type", "integer"}}, Object{{"type", "string"}}}}};
  if (!type.scalar.empty()) return scalar_schema(type.scalar);
  Object out{{"type", "object"}};
  if (const std::string_view about = description_of(type.short_name(), ""); !about.empty())
    out["description"] = about;
  Object properties;
  Array required;
  for (const auto& [name, field] : type.fields) {
    Value schema = type_schema(field.type);
    if (field.type.shape == FieldType::Shape::kMessage) schema.get_object().erase("default");
    Object& extra = schema.get_object();
    if (const std::string_view about = description_of(type.short_name(), name); !about.empty())
      extra["description"] = about;
    if (!field.enumeration.empty()) {
      Array values;
      for (const std::string& value : field.enumeration) values.emplace_back(value);
      extra["enum"] = std::move(values);
    }
    if (!field.patch_strategy.empty()) extra["x-kubernetes-patch-strategy"] = field.patch_strategy;
    if (!field.merge_key.empty()) extra["x-kubernetes-patch-merge-key"] = field.merge_key;
    if (!field.list_type.empty()) extra["x-kubernetes-list-type"] = field.list_type;
    if (!field.map_type.empty()) extra["x-kubernetes-map-type"] = field.map_type;
    if (!field.list_map_keys.empty()) {
      Array keys;
      for (const std::string& key : field.list_map_keys) keys.emplace_back(key);
      extra["x-kubernetes-list-map-keys"] = std::move(keys);
    }
    if (field.required) required.emplace_back(name);
    properties[name] = std::move(schema);
  }
  if (!properties.empty()) out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (!type.map_type.empty()) out["x-kubernetes-map-type"] = type.map_type;
  if (!type.gvks.empty()) {
    Array gvks;
    for (const Gvk& gvk : type.gvks) gvks.push_back(gvk_value(gvk));
    out["x-kubernetes-group-version-kind"] = std::move(gvks);
  }
  return out;
}

Value parameter(std::string_view name, std::string_view type) {
  return Object{
      {"name", name}, {"in", "query"}, {"schema", Object{{"type", type}, {"uniqueItems", true}}}};
}

Value operation(const Gvk& gvk, std::string_view action, const std::string& schema) {
  Object out{
      {"responses",
       Object{
           {"200",
            Object{{"description", "OK"},
                   {"content",
                    Object{{"application/json", Object{{"schema", Object{{"$ref", schema}}}}}}}}}}},
      {"x-kubernetes-action", action},
      {"x-kubernetes-group-version-kind", gvk_value(gvk)}};
  if (action != "get" && action != "list") {
    out["parameters"] = Array{parameter("dryRun", "string"),
                              parameter("fieldManager", "string"),
                              parameter("fieldValidation", "string"),
                              parameter("force", "boolean")};
  }
  return out;
}

/// One path per resource is all that clients read: kubectl looks for fieldValidation on the kind's
/// PATCH.
void add_paths(Object& paths, const ResourceInfo& info, const std::string& schema) {
  const std::string base =
      info.group.empty() ? "/api/" + info.version : "/apis/" + info.group + "/" + info.version;
  const std::string collection =
      base + (info.namespaced ? "/namespaces/{namespace}/" : "/") + info.plural;
  const auto allows = [&](std::string_view verb) {
    return std::find(info.verbs.begin(), info.verbs.end(), verb) != info.verbs.end();
  };
  Object many, one;
  if (allows("list")) many["get"] = operation(info.gvk(), "list", schema);
  if (allows("create")) many["post"] = operation(info.gvk(), "post", schema);
  if (allows("get")) one["get"] = operation(info.gvk(), "get", schema);
  if (allows("update")) one["put"] = operation(info.gvk(), "put", schema);
  if (allows("patch")) one["patch"] = operation(info.gvk(), "patch", schema);
  if (!many.empty()) paths[collection] = std::move(many);
  if (!one.empty()) paths[collection + "/{name}"] = std::move(one);
}

Value crd_schema(const Crd& crd, const CrdVersion& version) {
  Value out = version.schema->openapi();
  if (!out.is_object()) out.emplace_object();
  Object& properties = json::make_object(out, {"properties"});
  properties["apiVersion"] = Object{{"type", "string"}};
  properties["kind"] = Object{{"type", "string"}};
  properties["metadata"] = Object{
      {"allOf",
       Array{Object{
           {"$ref", "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}}}};
  out.get_object()["x-kubernetes-group-version-kind"] =
      Array{gvk_value({crd.group, version.name, crd.kind})};
  return out;
}

}  // namespace

std::string crd_schema_name(const Crd& crd, const CrdVersion& version) {
  std::vector<std::string> parts = split(crd.group, '.');
  std::string out;
  for (auto at = parts.rbegin(); at != parts.rend(); ++at) out += *at + ".";
  return out + version.name + "." + crd.kind;
}

json::Value openapi_v3(const Schema& schema,
                       std::string_view group,
                       std::string_view version,
                       const std::vector<Crd>& crds) {
  Object paths, schemas;
  Types types;
  for (const ResourceInfo& info : schema.resources()) {
    if (info.group != group || info.version != version) continue;
    const Type* type = schema.find_type(info.gvk());
    if (type == nullptr) continue;
    reach(*type, types);
    add_paths(paths, info, ref(*type));
  }
  for (const Crd& crd : crds) {
    if (crd.group != group) continue;
    for (const CrdVersion& one : crd.versions) {
      if (one.name != version || !one.served) continue;
      const std::string name = crd_schema_name(crd, one);
      schemas[name] = crd_schema(crd, one);
      add_paths(paths, one.info, "#/components/schemas/" + name);
      if (const Type* meta = schema.find_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))
        reach(*meta, types);
    }
  }
  for (const Type* type : types) schemas[type->name] = named_schema(*type);
  return Object{{"openapi", "3.0.0"},
                {"info", Object{{"title", "Kubernetes"}, {"version", kKubernetesVersion}}},
                {"paths", std::move(paths)},
                {"components", Object{{"schemas", std::move(schemas)}}}};
}

}  // namespace muster::kube
