// PersistentVolume and PersistentVolumeClaim.
#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_persistent_volume(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "persistentVolumeReclaimPolicy", "Retain");
  put_text(spec, "volumeMode", "Filesystem");
}

void validate_volume_object(const Value& object, const Value*, Causes& causes) {
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

void validate_claim(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const json::Array& modes = json::array_at(spec, "accessModes");
  if (modes.empty()) causes.required("spec.accessModes", "at least 1 access mode is required");
  for (const Value& mode : modes)
    validate_enum(mode,
                  "spec.accessModes",
                  {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"},
                  causes);
  const Value& storage = json::at(spec, "resources", "requests", "storage");
  if (storage.is_null()) {
    causes.required("spec.resources[storage]");
  } else if (const auto quantity =
                 parse_quantity(storage.is_string() ? json::text(storage) : json::dump(storage));
             quantity && (quantity->is_negative() || quantity->is_zero())) {
    causes.invalid(
        "spec.resources[storage]", quoted(quantity->text()), "must be greater than zero");
  }
  validate_enum(
      json::at(spec, "volumeMode"), "spec.volumeMode", {"Block", "Filesystem"}, causes, false);
  const std::string_view storage_class = json::string_at(spec, "storageClassName");
  if (!storage_class.empty())
    causes.check("spec.storageClassName", storage_class, check_dns_subdomain(storage_class));
  validate_label_selector(json::at(spec, "selector"), "spec.selector", causes);
  if (live == nullptr) return;
  Value now = spec;
  Value before = json::at(*live, "spec");
  const bool bound = json::string_at(*live, "status", "phase") == "Bound";
  for (Value* value : {&now, &before}) {
    // A claim that is bound may grow.
    if (bound) json::remove(*value, {"resources", "requests"});
    if (bound) json::remove(*value, {"volumeAttributesClassName"});
    json::remove(*value, {"dataSourceRef"});
  }
  // A class may be given to a claim that has none yet.
  if (json::at(before, "storageClassName").is_null() && !bound)
    json::remove(now, {"storageClassName"});
  const bool binding = json::is_empty(json::at(before, "volumeName"));  // the binder fills it once
  if (binding) {
    json::remove(now, {"volumeName"});
    json::remove(before, {"volumeName"});
  }
  if (!json::equal(now, before)) {
    causes.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims");
  }
}

Object first_status(const Value&, Time) { return Object{{"phase", "Pending"}}; }

void claim_usage(const Value& claim, Usage& used) {
  const auto size =
      parse_quantity(json::string_at(claim, "spec", "resources", "requests", "storage"));
  if (size) used["requests.storage"] = *size;
  used["persistentvolumeclaims"] = Quantity::from_units(1);
}

std::string access_modes(const Value& modes) {
  std::vector<std::string> out;
  for (const Value& mode : json::as_array(modes)) {
    const std::string_view text = json::as_string(mode);
    if (text == "ReadWriteOnce")
      out.emplace_back("RWO");
    else if (text == "ReadOnlyMany")
      out.emplace_back("ROX");
    else if (text == "ReadWriteMany")
      out.emplace_back("RWX");
    else if (text == "ReadWriteOncePod")
      out.emplace_back("RWOP");
  }
  return join(out, ",");
}

Array claim_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const Value& status = json::at(object, "status");
  std::string phase = json::text_at(status, "phase");
  if (is_deleting(object)) phase = "Terminating";
  const std::string volume = json::text_at(spec, "volumeName");
  std::string capacity, modes;
  if (!volume.empty()) {
    capacity = int_or_string(json::at(status, "capacity", "storage").is_null()
                                 ? Value("0")
                                 : json::at(status, "capacity", "storage"));
    modes = access_modes(json::at(status, "accessModes"));
  }
  const std::string mode = json::text_at(spec, "volumeMode");
  const std::string attributes = json::text_at(spec, "volumeAttributesClassName");
  return {name_of(object),
          phase,
          volume,
          capacity,
          modes,
          json::text_at(spec, "storageClassName"),
          attributes.empty() ? "<unset>" : attributes,
          age_of(creation_time(object), now),
          mode.empty() ? "<unset>" : mode};
}

Array volume_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  std::string phase = json::text_at(object, "status", "phase");
  if (is_deleting(object)) phase = "Terminating";
  std::string claim;
  if (json::at(spec, "claimRef").is_object())
    claim = fmt::format("{}/{}",
                        json::string_at(spec, "claimRef", "namespace"),
                        json::string_at(spec, "claimRef", "name"));
  const std::string mode = json::text_at(spec, "volumeMode");
  const std::string attributes = json::text_at(spec, "volumeAttributesClassName");
  return {name_of(object),
          int_or_string(json::at(spec, "capacity", "storage").is_null()
                            ? Value("0")
                            : json::at(spec, "capacity", "storage")),
          access_modes(json::at(spec, "accessModes")),
          json::text_at(spec, "persistentVolumeReclaimPolicy"),
          phase,
          claim,
          json::text_at(spec, "storageClassName"),
          attributes.empty() ? "<unset>" : attributes,
          json::text_at(object, "status", "reason"),
          age_of(creation_time(object), now),
          mode.empty() ? "<unset>" : mode};
}

}  // namespace

std::vector<KindRules> families::volume() {
  using namespace columns;
  return {{.group = "",
           .kind = "PersistentVolumeClaim",
           .defaults = default_claim,
           .first_status = first_status,
           .validate = validate_claim,
           .usage = claim_usage,
           .columns = {name_column(),
                       text("Status"),
                       text("Volume"),
                       text("Capacity"),
                       text("Access Modes"),
                       text("StorageClass"),
                       text("VolumeAttributesClass"),
                       text("Age"),
                       text("VolumeMode", kWide)},
           .cells = claim_cells,
           .answers_object = true},
          {.group = "",
           .kind = "PersistentVolume",
           .defaults = default_persistent_volume,
           .first_status = first_status,
           .validate = validate_volume_object,
           .columns = {name_column(),
                       text("Capacity"),
                       text("Access Modes"),
                       text("Reclaim Policy"),
                       text("Status"),
                       text("Claim"),
                       text("StorageClass"),
                       text("VolumeAttributesClass"),
                       text("Reason"),
                       text("Age"),
                       text("VolumeMode", kWide)},
           .cells = volume_cells,
           .answers_object = true}};
}

void default_claim(json::Object& claim) {
  put_text(object_at(claim, "spec"), "volumeMode", "Filesystem");
}

}  // namespace muster::kube
