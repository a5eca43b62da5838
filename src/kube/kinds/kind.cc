#include "kube/kinds/kind.h"

#include <unordered_map>

#include "kube/kinds/families.h"

namespace muster::kube {
namespace {

using ByName = std::unordered_map<std::string, KindRules>;

std::string name_in(std::string_view group, std::string_view kind) {
  std::string name(group);
  return name.append(1, '/').append(kind);
}

const ByName& all_rules() {
  static const ByName kRules = [] {
    ByName rules;
    for (const families::Family family : families::kAll) {
      for (KindRules& kind : family()) {
        const auto [place, added] = rules.try_emplace(name_in(kind.group, kind.kind), kind);
        MUSTER_CHECK(added, "two files say what " + place->first + " is");
      }
    }
    return rules;
  }();
  return kRules;
}

using ByGvk = std::map<Gvk, Kind>;

ByGvk built_in() {
  static const KindRules kNone;
  ByGvk kinds;
  const auto add = [&](const Gvk& gvk) -> Kind& {
    Kind& kind = kinds[gvk];
    kind.gvk = gvk;
    kind.type = Schema::builtin().find_type(gvk);
    const KindRules* rules = find_rules(gvk.group, gvk.kind);
    kind.rules = rules != nullptr ? rules : &kNone;
    return kind;
  };
  for (const auto& [name, type] : Schema::builtin().types()) {
    for (const Gvk& gvk : type.gvks) add(gvk);
  }
  for (const ResourceInfo& info : Schema::builtin().resources())
    add(info.gvk()).status_subresource = info.find_subresource("status") != nullptr;
  return kinds;
}

}  // namespace

const KindRules* find_rules(std::string_view group, std::string_view kind) {
  const auto found = all_rules().find(name_in(group, kind));
  return found == all_rules().end() ? nullptr : &found->second;
}

const Kind& kind_of(const Gvk& gvk) {
  static const ByGvk kKinds = built_in();
  static const KindRules kCustomRules{.generation = true, .needs_version = true};
  static const Kind kCustom{.rules = &kCustomRules};
  const auto found = kKinds.find(gvk);
  return found == kKinds.end() ? kCustom : found->second;
}

namespace columns {
namespace {

Column column(std::string name, std::string type, Width width) {
  Column made;
  made.name = std::move(name);
  made.type = std::move(type);
  made.priority = width;
  return made;
}

}  // namespace

Column name_column(Width width) {
  Column made = column("Name", "string", width);
  made.format = "name";
  return made;
}
Column text(std::string name, Width width) { return column(std::move(name), "string", width); }
Column integer(std::string name, Width width) { return column(std::move(name), "integer", width); }
Column boolean(std::string name, Width width) { return column(std::move(name), "boolean", width); }
Column date(std::string name, Width width) { return column(std::move(name), "date", width); }

}  // namespace columns

}  // namespace muster::kube
