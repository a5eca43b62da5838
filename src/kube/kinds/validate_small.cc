/// Kinds with a handful of rules each: volumes, storage classes, limit ranges, endpoints,
/// autoscalers.
#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr std::string_view kAddressText =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Compares two quantities of one resource; nothing when either is missing.
void not_above(const Value& limits,
               std::string_view low,
               std::string_view high,
               std::string_view low_text,
               std::string_view high_text,
               bool blame_low,
               const std::string& field,
               Causes& causes) {
  for (const auto& member : json::object_at(limits, low)) {
    const std::string_view name = member.key();
    const auto below = parse_quantity(json::text(member.value()));
    const auto above = parse_quantity(json::text_at(limits, high, name));
    if (!below || !above || json::at(limits, high, name).is_null() || !(*below > *above)) continue;
    causes.invalid(fmt::format("{}.{}[{}]", field, blame_low ? low : high, name),
                   quoted(blame_low ? below->text() : above->text()),
                   fmt::format("{} value {} is greater than {} value {}",
                               low_text,
                               below->text(),
                               high_text,
                               above->text()));
  }
}

}  // namespace

void validate_volume_object(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  if (json::array_at(spec, "accessModes").empty()) causes.required("spec.accessModes");
  for (const Value& mode : json::array_at(spec, "accessModes")) {
    validate_enum(mode,
                  "spec.accessModes",
                  {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"},
                  causes);
  }
  const json::Object& capacity = json::object_at(spec, "capacity");
  if (capacity.empty()) causes.required("spec.capacity");
  if (!capacity.contains("storage") || capacity.size() > 1) {
    causes.add({"FieldValueNotSupported",
                fmt::format("Unsupported value: {}: supported values: \"storage\"",
                            json::dump(json::at(spec, "capacity"))),
                "spec.capacity"});
  }
  validate_enum(json::at(spec, "persistentVolumeReclaimPolicy"),
                "spec.persistentVolumeReclaimPolicy",
                {"Delete", "Recycle", "Retain"},
                causes,
                false);
  validate_enum(
      json::at(spec, "volumeMode"), "spec.volumeMode", {"Block", "Filesystem"}, causes, false);
  // Every object in the spec but these is a source.
  std::size_t sources = 0;
  for (const auto& member : json::as_object(spec)) {
    const std::string_view key = member.key();
    if (!member.value().is_object() || key == "capacity" || key == "claimRef" ||
        key == "nodeAffinity")
      continue;
    if (sources++ > 0)
      causes.forbidden(fmt::format("spec.{}", key), "may not specify more than 1 volume type");
  }
  if (sources == 0) causes.required("spec", "must specify a volume type");
}

void validate_storage_class(const Value& object, Causes& causes) {
  if (json::is_empty(json::at(object, "provisioner"))) causes.required("provisioner");
  validate_enum(
      json::at(object, "reclaimPolicy"), "reclaimPolicy", {"Delete", "Retain"}, causes, false);
  validate_enum(json::at(object, "volumeBindingMode"),
                "volumeBindingMode",
                {"Immediate", "WaitForFirstConsumer"},
                causes,
                false);
}

void validate_limit_range(const Value& object, Causes& causes) {
  const json::Array& limits = json::array_at(object, "spec", "limits");
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const Value& limit = limits[i];
    const std::string here = fmt::format("spec.limits[{}]", i);
    const std::string_view type = json::string_at(limit, "type");
    if (!check_label_key(type).empty()) {
      for (const std::string& problem : qualified_name_problems(type))
        causes.invalid(here + ".type", quoted(type), problem);
    } else if (type.find('/') == std::string_view::npos && type != "Pod" && type != "Container" &&
               type != "PersistentVolumeClaim") {
      causes.invalid(
          here + ".type", quoted(type), "must be a standard limit type or fully qualified");
    }
    if (type == "Pod") {
      for (const std::string_view key : {"default", "defaultRequest"}) {
        if (!json::is_empty(json::at(limit, key)))
          causes.forbidden(fmt::format("{}.{}", here, key),
                           "may not be specified when `type` is 'Pod'");
      }
    }
    not_above(limit, "min", "max", "min", "max", true, here, causes);
    not_above(limit, "min", "defaultRequest", "min", "default request", false, here, causes);
    not_above(limit, "defaultRequest", "max", "default request", "max", true, here, causes);
    not_above(limit, "min", "default", "min", "default", true, here, causes);
    not_above(limit, "default", "max", "default", "max", false, here, causes);
    not_above(limit, "defaultRequest", "default", "default request", "default", true, here, causes);
  }
}

void validate_endpoints(const Value& object, Causes& causes) {
  const json::Array& subsets = json::array_at(object, "subsets");
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
      const json::Array& addresses = json::array_at(subsets[i], list);
      for (std::size_t a = 0; a < addresses.size(); ++a) {
        const std::string field = fmt::format("subsets[{}].{}[{}].ip", i, list, a);
        const std::string_view address = json::string_at(addresses[a], "ip");
        if (!is_address(address)) causes.invalid(field, quoted(address), kAddressText);
        // Loopback, which Kubernetes refuses, is where pods live that share a lone machine's
        // network.
        else if (address == "0.0.0.0" || address == "::")
          causes.invalid(
              field, quoted(address), fmt::format("may not be unspecified ({})", address));
        else if (address.starts_with("169.254."))
          causes.invalid(field,
                         quoted(address),
                         "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
      }
    }
  }
}

void validate_endpoint_slice(const Value& object, Causes& causes) {
  validate_enum(json::at(object, "addressType"), "addressType", {"FQDN", "IPv4", "IPv6"}, causes);
}

void validate_autoscaler(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& most = json::at(spec, "maxReplicas");
  if (json::as_int(most) < 0)
    causes.invalid("spec.maxReplicas", json::dump(most), "must be greater than 0");
  if (json::as_int(most) < json::as_int(json::at(spec, "minReplicas"), 1)) {
    causes.invalid("spec.maxReplicas",
                   json::dump(most.is_null() ? Value(0) : most),
                   "must be greater than or equal to `minReplicas`");
  }
  for (const std::string_view key : {"kind", "name"}) {
    if (json::is_empty(json::at(spec, "scaleTargetRef", key)))
      causes.required(fmt::format("spec.scaleTargetRef.{}", key));
  }
  if (json::string_at(spec, "scaleTargetRef", "apiVersion").empty()) {
    causes.invalid("spec.scaleTargetRef.apiVersion", "\"\"", "apiVersion must specify API group");
  }
  if (json::as_int(most) == 0) causes.required("spec.maxReplicas");
}

void validate_int_or_percent(const Value& value, const std::string& field, Causes& causes) {
  if (value.is_null()) return;
  if (value.is_int64()) {
    if (value.get_int64() < 0)
      causes.invalid(field, json::dump(value), "must be greater than or equal to 0");
    return;
  }
  const std::string_view text = json::as_string(value);
  const bool percent = text.size() > 1 && text.ends_with('%') &&
                       parse_int(text.substr(0, text.size() - 1)).value_or(-1) >= 0;
  if (!percent) {
    causes.invalid(
        field,
        shown(value),
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
  } else if (parse_int(text.substr(0, text.size() - 1)).value_or(0) > 100) {
    causes.invalid(field, shown(value), "must not be greater than 100%");
  }
}

}  // namespace muster::kube
