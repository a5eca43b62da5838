#include "kube/apply/granular.h"

#include <algorithm>

#include "json/text.h"

namespace muster::kube {

using json::Array;
using json::Value;

std::string item_element(const Shape& shape, const Value& item) {
  if (shape.list_kind() == Shape::ListKind::kSet) return "v:" + json::dump(item);
  static const Value kProtocol = "TCP";
  std::string out = "k:";
  char before = '{';
  const auto add = [&](const std::string& name) {
    const Value& given = json::at(item, name);
    // The one key with a default.
    const Value& value = given.is_null() && name == "protocol" ? kProtocol : given;
    if (value.is_null()) return;
    out += std::exchange(before, ',');
    json::append_key(out, "", name);
    json::append(out, value);
  };
  if (shape.list_keys().size() == 1) {
    add(shape.list_keys().front());
  } else {
    std::vector<std::string> names = shape.list_keys();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add(name);
  }
  return before == '{' ? std::string() : out + '}';
}

std::map<std::string, const Value*> by_element(const Shape& shape, const Array& list) {
  std::map<std::string, const Value*> out;
  for (const Value& item : list) out.emplace(item_element(shape, item), &item);
  return out;
}

}  // namespace muster::kube
