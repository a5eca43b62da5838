/// /openapi/v2 in the protobuf form that kubectl up to 1.28 asks for: gnostic's
/// openapi_v2.Document.
///
/// Only what those clients read is written: definitions with their group-version-kinds, from which
/// `explain` and the check of fields before a create are made, and one path for each kind whose
/// PATCH lists its parameters, which is where kubectl looks for dryRun. Field numbers are those of
/// gnostic's published OpenAPIv2.proto.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/names.h"
#include "kube/schema/openapi.h"

namespace muster::kube {
namespace {

using json::Value;

/// A protobuf message being written, length-delimited fields only; that is all this document has.
class Message {
 public:
  Message& text(int number, std::string_view value) {
    varint(static_cast<std::uint64_t>(number) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int number, const Message& value) { return text(number, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Fields of gnostic's messages.
constexpr int kName = 1, kValue = 2;  // Named…
constexpr int kRef = 1, kFormat = 2, kDescription = 4, kRequired = 19, kAdditional = 21,
              kType = 22;  // Schema
constexpr int kItems = 23, kProperties = 25, kExtension = 31;

Message named(std::string_view name, const Message& value) {
  Message out;
  out.text(kName, name).message(kValue, value);
  return out;
}

/// An extension: a name and a value as YAML.
Message extension(std::string_view name, std::string_view yaml) {
  return named(name, Message().text(2, yaml));
}

std::string gvk_yaml(const Gvk& gvk) {
  return fmt::format("group: {}\nkind: {}\nversion: {}\n",
                     gvk.group.empty() ? "\"\"" : gvk.group,
                     gvk.kind,
                     gvk.version);
}

std::string gvk_list_yaml(const std::vector<Gvk>& gvks) {
  std::string out;
  for (const Gvk& gvk : gvks)
    out += fmt::format("- group: {}\n  kind: {}\n  version: {}\n",
                       gvk.group.empty() ? "\"\"" : gvk.group,
                       gvk.kind,
                       gvk.version);
  return out;
}

void put_scalar(Message& schema, std::string_view scalar) {
  if (scalar.empty() || scalar == "any") return;
  const auto colon = scalar.find(':');
  schema.message(kType, Message().text(1, scalar.substr(0, colon)));
  if (colon != std::string_view::npos) schema.text(kFormat, scalar.substr(colon + 1));
}

void put_type(Message& schema, const FieldType& type) {
  if (type.type != nullptr && type.shape != FieldType::Shape::kList &&
      type.shape != FieldType::Shape::kMap) {
    schema.text(kRef, "#/definitions/" + type.type->name);
    return;
  }
  if (type.shape == FieldType::Shape::kScalar) {
    put_scalar(schema, type.scalar);
    return;
  }
  Message element;
  put_type(element, *type.element);
  if (type.shape == FieldType::Shape::kList) {
    put_scalar(schema, "array");
    schema.message(kItems, Message().message(1, element));
  } else {
    put_scalar(schema, "object");
    schema.message(kAdditional, Message().message(1, element));
  }
}

Message definition(const Type& type) {
  Message schema;
  if (const std::string_view about = description_of(type.short_name(), ""); !about.empty())
    schema.text(kDescription, about);
  if (type.special == Special::kIntOrString) {
    put_scalar(schema, "string:int-or-string");
  } else if (type.special == Special::kQuantity) {
    put_scalar(schema, "string");
  } else if (!type.scalar.empty()) {
    put_scalar(schema, type.scalar);
  } else if (type.special != Special::kJson && type.special != Special::kPropsOrBool &&
             type.special != Special::kPropsOrArray && type.special != Special::kPropsOrStrings) {
    put_scalar(schema, "object");
  }
  Message properties;
  for (const auto& [name, field] : type.fields) {
    if (field.required) schema.text(kRequired, name);
    Message property;
    put_type(property, field.type);
    if (const std::string_view about = description_of(type.short_name(), name); !about.empty())
      property.text(kDescription, about);
    if (!field.patch_strategy.empty())
      property.message(kExtension, extension("x-kubernetes-patch-strategy", field.patch_strategy));
    if (!field.merge_key.empty())
      property.message(kExtension, extension("x-kubernetes-patch-merge-key", field.merge_key));
    properties.message(1, named(name, property));
  }
  if (!type.fields.empty()) schema.message(kProperties, properties);
  if (!type.gvks.empty())
    schema.message(kExtension,
                   extension("x-kubernetes-group-version-kind", gvk_list_yaml(type.gvks)));
  return schema;
}

/// A CRD's schema. What v2 cannot say (unknown fields kept, a number or a text) is left open, so
/// that no client refuses it.
Message custom_schema(const Value& openapi, bool root) {
  Message schema;
  if (const std::string_view about = json::string_at(openapi, "description"); !about.empty())
    schema.text(kDescription, about);
  if (json::bool_at(openapi, "x-kubernetes-int-or-string")) return schema;
  const std::string_view type = json::string_at(openapi, "type");
  if (json::bool_at(openapi, "x-kubernetes-preserve-unknown-fields") && !root) {
    put_scalar(schema, type);
    return schema;
  }
  put_scalar(schema, type);
  for (const Value& name : json::array_at(openapi, "required"))
    schema.text(kRequired, json::as_string(name));
  if (const Value& items = json::at(openapi, "items"); items.is_object())
    schema.message(kItems, Message().message(1, custom_schema(items, false)));
  if (const Value& more = json::at(openapi, "additionalProperties"); more.is_object()) {
    schema.message(kAdditional, Message().message(1, custom_schema(more, false)));
  }
  Message properties;
  for (const auto& member : json::object_at(openapi, "properties")) {
    const std::string_view name = member.key();
    if (root && (name == "apiVersion" || name == "kind" || name == "metadata")) continue;
    properties.message(1, named(name, custom_schema(member.value(), false)));
  }
  if (root) {
    Message text;
    put_scalar(text, "string");
    properties.message(1, named("apiVersion", text)).message(1, named("kind", text));
    properties.message(
        1,
        named(
            "metadata",
            Message().text(kRef, "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")));
  }
  if (!properties.bytes().empty()) schema.message(kProperties, properties);
  return schema;
}

Message query_parameter(std::string_view name, std::string_view type) {
  Message query;
  query.text(2, "query").text(4, name).text(6, type);
  // ParametersItem.parameter, Parameter.non_body_parameter,
  // NonBodyParameter.query_parameter_sub_schema
  return Message().message(1, Message().message(2, Message().message(3, query)));
}

void put_path(Message& paths, const ResourceInfo& info) {
  if (std::find(info.verbs.begin(), info.verbs.end(), "patch") == info.verbs.end()) return;
  Message operation;
  for (const std::string_view name : {"dryRun", "fieldManager", "fieldValidation"})
    operation.message(8, query_parameter(name, "string"));
  operation.message(8, query_parameter("force", "boolean"));
  operation.message(13, extension("x-kubernetes-action", "patch"));
  operation.message(13, extension("x-kubernetes-group-version-kind", gvk_yaml(info.gvk())));
  const std::string base =
      info.group.empty() ? "/api/" + info.version : "/apis/" + info.group + "/" + info.version;
  const std::string path =
      base + (info.namespaced ? "/namespaces/{namespace}/" : "/") + info.plural + "/{name}";
  paths.message(2, named(path, Message().message(8, operation)));
}

}  // namespace

std::string openapi_v2(const Schema& schema, const std::vector<Crd>& crds) {
  Message paths, definitions;
  for (const ResourceInfo& info : schema.resources()) put_path(paths, info);
  for (const auto& [name, type] : schema.types())
    definitions.message(1, named(name, definition(type)));
  for (const Crd& crd : crds) {
    for (const CrdVersion& version : crd.versions) {
      if (!version.served) continue;
      put_path(paths, version.info);
      Message own = custom_schema(version.schema->openapi(), true);
      own.message(kExtension,
                  extension("x-kubernetes-group-version-kind",
                            gvk_list_yaml({{crd.group, version.name, crd.kind}})));
      definitions.message(1, named(crd_schema_name(crd, version), own));
    }
  }
  Message document;
  document.text(1, "2.0")
      .message(2, Message().text(1, "Kubernetes").text(2, kKubernetesVersion))
      .message(8, paths)
      .message(9, definitions);
  return document.bytes();
}

}  // namespace muster::kube
