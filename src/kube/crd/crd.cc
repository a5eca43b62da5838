#include "kube/crd/crd.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/crd/pattern.h"
#include "kube/crd/structural.h"
#include "kube/embedded.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr int kDepthMax = 100;

class Structural : public StructuralSchema {
 public:
  explicit Structural(Value openapi) : openapi_(std::move(openapi)), root_(openapi_, true, 0) {}
  void prune(Value& object, std::vector<std::string>* unknown_paths) const override {
    root_.prune(object, "", unknown_paths);
  }
  void set_defaults(Value& object) const override { root_.set_defaults(object); }
  std::vector<Cause> validate(const Value& object) const override {
    Causes causes;
    root_.validate(object, "", causes);
    return causes.take();
  }
  const Shape& shape() const override { return root_; }
  const Value& openapi() const override { return openapi_; }

 private:
  Value openapi_;
  SchemaNode root_;
};

std::vector<std::string> strings(const Value& list) {
  std::vector<std::string> out;
  for (const Value& value : json::as_array(list)) out.push_back(json::text(value));
  return out;
}

/// "v2beta1" as (is it of that form, stability 2/1/0, major, minor).
struct VersionKey {
  bool kube = false;
  int stability = 0;
  std::int64_t major = 0, minor = 0;
};

VersionKey version_key(std::string_view name) {
  VersionKey key;
  if (!name.starts_with('v')) return key;
  std::size_t at = 1;
  const auto digits = [&]() -> std::optional<std::int64_t> {
    const std::size_t first = at;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9') ++at;
    if (at == first || name[first] == '0') return std::nullopt;
    return parse_int(name.substr(first, at - first));
  };
  const auto major = digits();
  if (!major) return key;
  key.major = *major;
  key.stability = 2;
  if (at < name.size()) {
    const std::string_view rest = name.substr(at);
    if (rest.starts_with("beta"))
      key.stability = 1, at += 4;
    else if (rest.starts_with("alpha"))
      key.stability = 0, at += 5;
    else
      return key;
    const auto minor = digits();
    if (!minor || at != name.size()) return key;
    key.minor = *minor;
  }
  key.kube = true;
  return key;
}

bool preferred_before(const std::string& a, const std::string& b) {
  const VersionKey left = version_key(a);
  const VersionKey right = version_key(b);
  if (left.kube != right.kube) return left.kube;
  if (!left.kube) return a < b;
  if (left.stability != right.stability) return left.stability > right.stability;
  if (left.major != right.major) return left.major > right.major;
  return left.minor > right.minor;
}

std::vector<Column> columns_of(const Value& version) {
  std::vector<Column> columns;
  columns.push_back({"Name",
                     "string",
                     "name",
                     "Name must be unique within a namespace. Is required when creating resources.",
                     0,
                     ""});
  const json::Array& given = json::array_at(version, "additionalPrinterColumns");
  for (const Value& column : given) {
    columns.push_back({json::text_at(column, "name"),
                       json::text_at(column, "type"),
                       json::text_at(column, "format"),
                       json::text_at(column, "description"),
                       static_cast<int>(json::int_at(column, "priority")),
                       json::text_at(column, "jsonPath")});
  }
  if (given.empty()) {
    columns.push_back(
        {"Age",
         "date",
         "",
         "CreationTimestamp is a timestamp representing the server time when this object was created.",
         0,
         ".metadata.creationTimestamp"});
  }
  return columns;
}

CrdVersion version_of(const Crd& crd, const Value& spec, const Value& version) {
  CrdVersion out;
  out.name = json::text_at(version, "name");
  out.served = json::bool_at(version, "served");
  out.storage = json::bool_at(version, "storage");
  out.deprecated = json::bool_at(version, "deprecated");
  out.deprecation_warning = json::text_at(version, "deprecationWarning");
  if (out.deprecated && out.deprecation_warning.empty())
    out.deprecation_warning = fmt::format("{}/{} {} is deprecated", crd.group, out.name, crd.kind);
  out.schema = std::make_shared<Structural>(json::at(version, "schema", "openAPIV3Schema"));

  const Value& names = json::at(spec, "names");
  ResourceInfo& info = out.info;
  info.group = crd.group;
  info.version = out.name;
  info.plural = crd.plural;
  info.singular = json::text_at(names, "singular");
  if (info.singular.empty()) info.singular = to_lower(crd.kind);
  info.kind = crd.kind;
  info.namespaced = crd.namespaced;
  info.verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  info.short_names = strings(json::at(names, "shortNames"));
  info.categories = strings(json::at(names, "categories"));
  info.columns = columns_of(version);
  const Value& subresources = json::at(version, "subresources");
  out.status_subresource = json::at(subresources, "status").is_object();
  if (out.status_subresource)
    info.subresources.push_back(
        {"status", crd.group, out.name, crd.kind, {"get", "patch", "update"}});
  const Value& scale = json::at(subresources, "scale");
  if (scale.is_object()) {
    out.scale = CrdVersion::Scale{json::text_at(scale, "specReplicasPath"),
                                  json::text_at(scale, "statusReplicasPath"),
                                  json::text_at(scale, "labelSelectorPath")};
    info.subresources.push_back(
        {"scale", "autoscaling", "v1", "Scale", {"get", "patch", "update"}});
  }
  return out;
}

/// A default must be what the schema itself would take, and nothing that it would prune.
void validate_default(const Value& schema, const std::string& field, int depth, Causes& causes) {
  const Value& wish = json::at(schema, "default");
  if (wish.is_null()) return;
  const SchemaNode node(schema, false, depth);
  Value pruned = wish;
  std::vector<std::string> unknown;
  node.prune(pruned, "", &unknown);
  if (!unknown.empty()) {
    causes.invalid(field + ".default", json::dump(wish), "must not have unknown fields");
    return;
  }
  Causes problems;
  node.validate(wish, "", problems);
  for (Cause& problem : problems.take()) {
    const bool whole = problem.field.empty() || problem.field == "<nil>";
    problem.field = whole ? field + ".default" : field + ".default." + problem.field;
    causes.add(std::move(problem));
  }
}

/// The rules of a structural schema, as far as breaking them would make pruning or validation
/// ambiguous.
void validate_schema(
    const Value& schema, const std::string& field, bool root, int depth, Causes& causes) {
  if (depth > kDepthMax) {
    causes.invalid(field, "\"\"", "the schema is nested too deeply");
    return;
  }
  const std::string_view type = json::string_at(schema, "type");
  const bool any = json::bool_at(schema, "x-kubernetes-int-or-string") ||
                   json::bool_at(schema, "x-kubernetes-preserve-unknown-fields");
  if (root && type.empty())
    causes.required(field + ".type", "must not be empty at the root");
  else if (root && type != "object")
    causes.invalid(field + ".type", quoted(type), "must be object at the root");
  else if (type.empty() && !any)
    causes.required(field + ".type", "must not be empty for specified object fields");
  static const std::set<std::string_view> kTypes = {
      "", "array", "boolean", "integer", "number", "object", "string"};
  if (!kTypes.contains(type))
    causes.not_supported(
        field + ".type", type, {"array", "boolean", "integer", "number", "object", "string"});
  const std::string pattern = json::text_at(schema, "pattern");
  if (!pattern.empty() && !pattern_compiles(pattern))
    causes.invalid(field + ".pattern", quoted(pattern), "must be a valid regular expression");
  if (type == "array") {
    if (!json::at(schema, "items").is_object())
      causes.required(field + ".items", "must be specified");
    else
      validate_schema(json::at(schema, "items"), field + ".items", false, depth + 1, causes);
    if (json::string_at(schema, "x-kubernetes-list-type") == "map" &&
        json::array_at(schema, "x-kubernetes-list-map-keys").empty()) {
      causes.required(field + ".x-kubernetes-list-map-keys",
                      "must not be empty if x-kubernetes-list-type is map");
    }
  }
  validate_default(schema, field, depth, causes);
  if (json::bool_at(schema, "uniqueItems"))
    causes.forbidden(
        field + ".uniqueItems",
        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  for (const auto& property : json::object_at(schema, "properties")) {
    const std::string here =
        fmt::format("{}.properties[{}]", field, std::string_view(property.key()));
    // The server owns these at the root; their schemas may be as empty as the author likes.
    if (root && (property.key() == "metadata" || property.key() == "apiVersion" ||
                 property.key() == "kind"))
      continue;
    validate_schema(property.value(), here, false, depth + 1, causes);
  }
  const Value& additional = json::at(schema, "additionalProperties");
  if (additional.is_object())
    validate_schema(additional, field + ".additionalProperties", false, depth + 1, causes);
  if (additional.is_object() && !json::object_at(schema, "properties").empty()) {
    causes.forbidden(field + ".additionalProperties",
                     "additionalProperties and properties are mutual exclusive");
  }
}

/// Groups of Kubernetes itself take definitions only with the word of its reviewers.
void validate_approval(const Value& object, const std::string& group, Causes& causes) {
  const auto within = [&](std::string_view domain) {
    return group == domain || group.ends_with(fmt::format(".{}", domain));
  };
  if (!within(kShortKubernetesDomain) && !within(kKubernetesDomain)) return;
  const std::string_view approval = annotation(object, names::kubernetes::kApiApproved);
  if (approval.starts_with("https://") || approval.starts_with("http://") ||
      approval.starts_with("unapproved"))
    return;
  const std::string field =
      fmt::format("metadata.annotations[{}]", names::kubernetes::kApiApproved);
  if (approval.empty())
    causes.required(
        field,
        "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111");
  else
    causes.invalid(
        field,
        quoted(approval),
        "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111");
}

/// With a single version, schema and columns are reported as if they stood at the top, where they
/// once did.
void validate_version(const Value& version, std::size_t i, bool single, Causes& causes) {
  const std::string here = fmt::format("spec.versions[{}]", i);
  const std::string_view name = json::string_at(version, "name");
  causes.check(here + ".name", name, check_dns_1035_label(name));
  const Value& schema = json::at(version, "schema", "openAPIV3Schema");
  if (!schema.is_object())
    causes.required(here + ".schema.openAPIV3Schema");
  else
    validate_schema(schema,
                    single ? "spec.validation.openAPIV3Schema" : here + ".schema.openAPIV3Schema",
                    true,
                    0,
                    causes);
  const json::Array& columns = json::array_at(version, "additionalPrinterColumns");
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string column =
        fmt::format("{}.additionalPrinterColumns[{}]", single ? "spec" : here, c);
    if (json::is_empty(json::at(columns[c], "name"))) causes.required(column + ".name");
    const std::string_view type = json::string_at(columns[c], "type");
    if (type.empty())
      causes.required(column + ".type", "must be one of boolean,date,integer,number,string");
    else if (type != "integer" && type != "number" && type != "string" && type != "boolean" &&
             type != "date") {
      causes.invalid(
          column + ".type", quoted(type), "must be one of boolean,date,integer,number,string");
    }
    const std::string_view path = json::string_at(columns[c], "jsonPath");
    if (path.empty())
      causes.required(column + ".JSONPath");
    else if (!path.starts_with('.') && !path.starts_with('[') && !path.starts_with('{')) {
      causes.invalid(
          column + ".JSONPath", quoted(path), "must be a simple json path starting with .");
    }
  }
  const Value& scale = json::at(version, "subresources", "scale");
  if (scale.is_object()) {
    for (const std::string_view key : {"specReplicasPath", "statusReplicasPath"}) {
      const std::string_view path = json::string_at(scale, key);
      const std::string_view prefix = key == "specReplicasPath" ? ".spec." : ".status.";
      if (path.empty())
        causes.required(fmt::format("{}.subresources.scale.{}", here, key));
      else if (!path.starts_with(prefix)) {
        causes.invalid(
            fmt::format("{}.subresources.scale.{}", here, key),
            quoted(path),
            fmt::format("should be a json path under {}", prefix.substr(0, prefix.size() - 1)));
      }
    }
  }
}

}  // namespace

void validate_crd(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& names = json::at(spec, "names");
  const std::string group = json::text_at(spec, "group");
  const std::string plural = json::text_at(names, "plural");
  const std::string name(name_of(object));
  causes.check("metadata.name", name, check_dns_subdomain(name));
  if (name != plural + "." + group)
    causes.invalid("metadata.name", quoted(name), "must be spec.names.plural+\".\"+spec.group");
  if (group.empty())
    causes.required("spec.group");
  else if (split(group, '.').size() < 2)
    causes.invalid("spec.group", quoted(group), "should be a domain with at least one dot");
  else
    causes.check("spec.group", group, check_dns_subdomain(group));
  validate_enum(json::at(spec, "scope"), "spec.scope", {"Cluster", "Namespaced"}, causes);
  for (const std::string_view key : {"plural", "singular", "kind", "listKind"}) {
    const std::string text = json::text_at(names, key);
    if (text.empty()) {
      if (key == "plural" || key == "kind") causes.required(fmt::format("spec.names.{}", key));
    } else {
      const bool as_is = key == "plural" || key == "singular";
      causes.check(fmt::format("spec.names.{}", key),
                   text,
                   check_dns_1035_label(as_is ? text : to_lower(text)));
    }
  }
  const json::Array& versions = json::array_at(spec, "versions");
  if (versions.empty()) causes.required("spec.versions", "must have at least one version");
  std::set<std::string_view> seen;
  std::size_t storage = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (json::bool_at(versions[i], "storage")) ++storage;
    if (!seen.insert(json::string_at(versions[i], "name")).second) {
      causes.invalid(fmt::format("spec.versions[{}].name", i),
                     shown(json::at(versions[i], "name")),
                     "must be unique");
    }
    validate_version(versions[i], i, versions.size() == 1, causes);
  }
  if (!versions.empty() && storage != 1)
    causes.invalid("spec.versions",
                   json::dump(json::Array()),
                   "must have exactly one version marked as storage version");
  const std::string_view strategy = json::string_at(spec, "conversion", "strategy");
  if (strategy == "Webhook")
    causes.not_supported("spec.conversion.strategy", strategy, {"None"});
  else if (!strategy.empty() && strategy != "None")
    causes.not_supported("spec.conversion.strategy", strategy, {"None", "Webhook"});
  validate_approval(object, group, causes);
}

Result<Crd> parse_crd(const json::Value& object) {
  Causes causes;
  validate_crd(object, causes);
  if (!causes.empty())
    return fail(invalid({std::string(groups::kApiExtensions), "v1", "CustomResourceDefinition"},
                        name_of(object),
                        causes.take()));
  const Value& spec = json::at(object, "spec");
  Crd crd;
  crd.group = json::text_at(spec, "group");
  crd.plural = json::text_at(spec, "names", "plural");
  crd.kind = json::text_at(spec, "names", "kind");
  crd.list_kind = json::text_at(spec, "names", "listKind");
  if (crd.list_kind.empty()) crd.list_kind = crd.kind + "List";
  crd.namespaced = json::string_at(spec, "scope") == "Namespaced";
  for (const Value& version : json::array_at(spec, "versions"))
    crd.versions.push_back(version_of(crd, spec, version));
  std::sort(crd.versions.begin(), crd.versions.end(), [](const CrdVersion& a, const CrdVersion& b) {
    return preferred_before(a.name, b.name);
  });
  return crd;
}

std::vector<json::Value> bundled_crds() {
  std::vector<Value> out;
  for (const std::string_view text : embedded_crds()) {
    auto documents = json::parse_yaml(text);
    MUSTER_CHECK(documents, "an embedded CRD does not parse: " + documents.error().message);
    for (Value& document : *documents) out.push_back(std::move(document));
  }
  return out;
}

}  // namespace muster::kube
