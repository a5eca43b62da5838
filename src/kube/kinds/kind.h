/// What the server knows of a kind besides its fields: defaults, what a write resets and keeps,
/// rules, how a Table shows it, by which fields it can be selected, and its quirks. Each kind is one
/// file of this folder, which says all of it in one place, as Kubernetes' own strategies do
/// (pkg/registry/core/pod/strategy.go), and one line in families.h. Pure: what the server does around
/// the rules (namespace exists, quota, priority classes) is in apiserver/.
///
/// A file that adds a kind reads like this:
///
///   std::vector<KindRules> families::lease() {
///     using namespace columns;
///     return {{.group = groups::kCoordination,
///              .kind = "Lease",
///              .validate = validate_lease,
///              .columns = {name_column(), text("Holder"), text("Age")},
///              .cells = cells,
///              .creates_on_update = true}};
///   }
///
/// Fields, their types, verbs and short names are no code: they are the table in kube/data.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "kube/kinds/causes.h"
#include "kube/schema/schema.h"

namespace muster::kube {

/// What one object counts for, under every name that a quota may use.
using Usage = std::map<std::string, Quantity>;

struct KindRules {
  std::string_view group, kind;
  /// How names are checked: "subdomain", "label", "namespace" or "path".
  std::string_view name_rule = "subdomain";

  /// Static defaults on create and update (Kubernetes' zz_generated.defaults).
  void (*defaults)(json::Object& object) = nullptr;
  /// They fill in something of the status, too.
  bool defaults_status = false;
  /// What a create writes besides what it does for every kind.
  void (*prepare_create)(json::Value& object) = nullptr;
  void (*prepare_update)(json::Value& updated, const json::Value& live) = nullptr;
  /// The status of a new object, of kinds with a status subresource. Absent: {}.
  json::Object (*first_status)(const json::Value& object, Time now) = nullptr;
  /// The rules beyond metadata; `live` is null on create.
  void (*validate)(const json::Value& object, const json::Value* live, Causes& causes) = nullptr;
  /// Of a quota, besides "count/…", which every kind has.
  void (*usage)(const json::Value& object, Usage& used) = nullptr;

  /// `kubectl get`. Without columns here those of the table of resources are shown, empty but for
  /// name and age.
  std::vector<Column> columns;
  json::Array (*cells)(const json::Value& object, Time now) = nullptr;
  json::Value (*row_conditions)(const json::Value& object) = nullptr;
  /// What a field selector may name. Empty: metadata.name and metadata.namespace.
  std::vector<std::string_view> fields;

  /// metadata.generation is kept, and goes up when anything but metadata and status changes …
  bool generation = false;
  /// … or an annotation does.
  bool annotations_count = false;
  /// A create may bring the status; for others the status subresource is the only way.
  bool registers_with_status = false;
  /// The status subresource may change labels, annotations and finalizers as well.
  bool metadata_with_status = false;
  /// PUT to a new name creates the object.
  bool creates_on_update = false;
  /// An update without a resourceVersion is refused.
  bool needs_version = false;
  /// DELETE answers with the object, not with a Status.
  bool answers_object = false;
};

/// A kind in one version. Found once and then kept, since every write asks it many things.
struct Kind {
  Gvk gvk;
  /// Its fields; null for kinds that a CustomResourceDefinition brings.
  const Type* type = nullptr;
  bool status_subresource = false;
  const KindRules* rules = nullptr;  // never null
};

/// The kind, for ever; one for all that are not built in.
const Kind& kind_of(const Gvk& gvk);
/// The rules that all versions of a kind share, or null.
const KindRules* find_rules(std::string_view group, std::string_view kind);

/// Headers of Tables, in few words.
namespace columns {
enum Width : int { kNarrow = 0, kWide = 1 };  // wide columns are for `-o wide`
Column name_column(Width width = kNarrow);
Column text(std::string name, Width width = kNarrow);
Column integer(std::string name, Width width = kNarrow);
Column boolean(std::string name, Width width = kNarrow);
Column date(std::string name, Width width = kNarrow);
}  // namespace columns

}  // namespace muster::kube
