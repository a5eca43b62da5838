#include <set>

#include "base/quantity.h"
#include "kube/kinds/defaults.h"

namespace muster::kube {
namespace {

void canonical_quantity(json::Value& value) {
  if (value.is_string()) {
    const auto quantity = parse_quantity(json::as_string(value));
    if (!quantity) return;
    std::string text = quantity->text();
    if (text != json::as_string(value)) value = std::move(text);
  } else if (value.is_number()) {
    const auto quantity = parse_quantity(json::dump(value));
    if (quantity) value = quantity->text();
  }
}

void canonical_time(json::Value& value, bool micro) {
  const std::string_view text = json::as_string(value);
  // Already "2026-11-15T05:40:00Z" or with six digits of fraction: nearly always.
  if (text.size() == (micro ? 27U : 20U) && text.back() == 'Z') return;
  const auto time = parse_time(text);
  if (time) value = micro ? format_micro_time(*time) : format_time(*time);
}

/// Go reads a null into a string as the empty one.
void empty_string(json::Value& value) {
  if (value.is_null()) value = "";
}

using Canonicalise = void (*)(const Type&, json::Value&);

void canonical_value(const FieldType& type, json::Value& value, Canonicalise inner) {
  switch (type.shape) {
    case FieldType::Shape::kMessage:
      inner(*type.type, value);
      return;
    case FieldType::Shape::kList:
      if (value.is_array() && type.element->type == nullptr &&
          type.element->kind == Scalar::kString) {
        for (json::Value& item : value.get_array()) empty_string(item);
      } else if (value.is_array() && (type.element->shape != FieldType::Shape::kScalar ||
                                      type.element->type != nullptr)) {
        for (json::Value& item : value.get_array()) canonical_value(*type.element, item, inner);
      }
      return;
    case FieldType::Shape::kMap:
      if (value.is_object() && type.element->type == nullptr &&
          type.element->kind == Scalar::kString) {
        for (auto& member : value.get_object()) empty_string(member.value());
      } else if (value.is_object() && (type.element->shape != FieldType::Shape::kScalar ||
                                       type.element->type != nullptr)) {
        for (auto& member : value.get_object())
          canonical_value(*type.element, member.value(), inner);
      }
      return;
    case FieldType::Shape::kScalar:
      if (type.type == nullptr) return;
      if (type.type->special == Special::kQuantity)
        canonical_quantity(value);
      else if (type.type->special == Special::kTime)
        canonical_time(value, false);
      else if (type.type->special == Special::kMicroTime)
        canonical_time(value, true);
      return;
  }
}

/// Plain numbers and booleans that clients write with their zero and Go leaves out: "hostNetwork:
/// false" says nothing.
bool omits_zero(const Type& type, std::string_view field) {
  static const std::set<std::string_view> kPlain = {"chapAuthDiscovery",
                                                    "chapAuthSession",
                                                    "failureThreshold",
                                                    "globalDefault",
                                                    "hostIPC",
                                                    "hostNetwork",
                                                    "hostPID",
                                                    "hostPort",
                                                    "initialDelaySeconds",
                                                    "minReadySeconds",
                                                    "nodePort",
                                                    "paused",
                                                    "publishNotReadyAddresses",
                                                    "readOnly",
                                                    "sslEnabled",
                                                    "stdin",
                                                    "stdinOnce",
                                                    "successThreshold",
                                                    "tty",
                                                    "unschedulable"};
  const std::string_view name = type.name;
  if (name.ends_with(".Probe") && (field == "periodSeconds" || field == "timeoutSeconds"))
    return true;
  if (field == "readOnly" &&
      (name.ends_with(".CSIVolumeSource") || name.ends_with(".AzureDiskVolumeSource")))
    return false;  // pointers there
  return kPlain.contains(field);
}

/// Go leaves empty strings, lists and maps out, except where a pointer makes them mean something or
/// the field is written always. Empty messages stay: "emptyDir: {}" is a choice.
bool left_out(const Type& type, const Field* field, const json::Value& value) {
  if (value.is_null()) return true;
  if (field == nullptr || field->required) return false;
  if (value.is_bool()) return !value.get_bool() && omits_zero(type, field->name);
  if (value.is_number()) return json::as_int(value) == 0 && omits_zero(type, field->name);
  if (field->type.shape == FieldType::Shape::kScalar && field->type.type != nullptr &&
      field->type.type->special >= Special::kRawExtension) {
    return false;  // free-form: an empty default of a CRD's schema is a default
  }
  if (value.is_string()) {
    if (!value.get_string().empty()) return false;
    const std::string& name = field->name;
    return name != "storageClassName" && name != "holderIdentity" && name != "type" &&
           name != "service" && name != "name" && name != "podGroupName" && name != "value" &&
           !name.starts_with("reporting");
  }
  if (value.is_array()) return value.get_array().empty();
  return field->type.shape == FieldType::Shape::kMap && value.get_object().empty();
}

}  // namespace

void canonicalise(const Type& type, json::Value& value) {
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  bool any = false;
  for (auto& member : *object) {
    const Field* field = type.find(member.key());
    if (field != nullptr) canonical_value(field->type, member.value(), canonicalise);
    any = any || left_out(type, field, member.value());
  }
  if (!any) return;
  for (auto at = object->begin(); at != object->end();) {
    if (left_out(type, type.find(at->key()), at->value()))
      at = object->stable_erase(at);
    else
      ++at;
  }
}

void canonicalise_values(const Type& type, json::Value& value) {
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  for (auto& member : *object) {
    if (const Field* field = type.find(member.key()))
      canonical_value(field->type, member.value(), canonicalise_values);
  }
}

}  // namespace muster::kube
