// ConfigMap, and the rules of data that it shares with Secret.
#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

void validate_config_map(const Value& map, const Value* live, Causes& causes) {
  validate_data(map, {"data", "binaryData"}, false, causes);
  for (const auto& entry : json::object_at(map, "binaryData")) {
    if (json::object_at(map, "data").contains(entry.key())) {
      causes.invalid(fmt::format("data[{}]", std::string_view(entry.key())),
                     quoted(std::string_view(entry.key())),
                     "duplicate of key present in binaryData");
    }
  }
  if (live != nullptr) immutable_data(map, *live, {"data", "binaryData"}, causes);
}

void usage(const Value&, Usage& used) { used["configmaps"] = Quantity::from_units(1); }

}  // namespace

std::vector<KindRules> families::config_map() {
  using namespace columns;
  return {{.group = "",
           .kind = "ConfigMap",
           .validate = validate_config_map,
           .usage = usage,
           .columns = {name_column(), text("Data"), text("Age")},
           .cells = [](const Value& o, Time now) {
             return Array{name_of(o),
                          static_cast<std::int64_t>(json::object_at(o, "data").size() +
                                                    json::object_at(o, "binaryData").size()),
                          age_of(creation_time(o), now)};
           }}};
}

// Sizes and keys of data and binaryData together, as ConfigMap and Secret have them.
void validate_data(const json::Value& object,
                   const std::vector<std::string_view>& members,
                   bool base64,
                   Causes& causes) {
  constexpr std::size_t kBytesMax = 1024 * 1024;
  std::size_t total = 0;
  for (const std::string_view member : members) {
    for (const auto& entry : json::object_at(object, member)) {
      const std::string_view key = entry.key();
      causes.check(fmt::format("{}[{}]", member, key), key, check_config_key(key));
      const std::size_t size = json::as_string(entry.value()).size();
      total += base64 || member == "binaryData" ? size / 4 * 3 : size;
    }
  }
  if (total > kBytesMax) causes.too_long(base64 ? "data" : "[]", kBytesMax);
}

void immutable_data(const json::Value& now,
                    const json::Value& before,
                    const std::vector<std::string_view>& members,
                    Causes& causes) {
  if (!json::bool_at(before, "immutable")) return;
  if (!json::bool_at(now, "immutable"))
    causes.forbidden("immutable", "field is immutable when `immutable` is set");
  for (const std::string_view member : members) {
    const json::Value& value = json::at(now, member);
    const json::Value& old = json::at(before, member);
    if (!json::equal(value, old) && !(json::is_empty(value) && json::is_empty(old))) {
      causes.forbidden(std::string(member), "field is immutable when `immutable` is set");
    }
  }
}

}  // namespace muster::kube
