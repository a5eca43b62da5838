#include "kube/apply/fieldset.h"

#include "base/strings.h"
#include "json/text.h"

namespace muster::kube {
namespace {

constexpr int kDepthMax = 200;

void read(const json::Value& value, FieldSet& into, int depth) {
  if (depth > kDepthMax) return;
  for (const auto& member : json::as_object(value)) {
    const std::string_view key = member.key();
    if (key == ".") {
      into.member = true;
      continue;
    }
    FieldSet& child = into.children[std::string(key)];
    if (json::as_object(member.value()).empty())
      child.member = true;
    else
      read(member.value(), child, depth + 1);
  }
}

void write(const FieldSet& set, std::string& out) {
  if (set.children.empty()) {
    out += "{}";
    return;
  }
  out += set.member ? "{\".\":{}," : "{";
  bool first = true;
  for (const auto& [element, child] : set.children) {
    if (!first) out += ',';
    first = false;
    json::append_string(out, element);
    out += ':';
    write(child, out);
  }
  out += '}';
}

void list_paths(const FieldSet& set, const std::string& path, std::vector<std::string>& out) {
  if (set.member && !path.empty()) out.push_back(path);
  for (const auto& [element, child] : set.children)
    list_paths(child, path + element_text(element), out);
}

}  // namespace

FieldSet FieldSet::from_json(const json::Value& fields_v1) {
  FieldSet set;
  read(fields_v1, set, 0);
  return set;
}

std::string FieldSet::text() const {
  std::string out;
  out.reserve(512);
  write(*this, out);
  return out;
}

bool FieldSet::empty() const {
  if (member) return false;
  for (const auto& [element, child] : children) {
    if (!child.empty()) return false;
  }
  return true;
}

const FieldSet* FieldSet::find(const std::string& element) const {
  const auto found = children.find(element);
  return found == children.end() ? nullptr : &found->second;
}

void FieldSet::add(const FieldSet& other) {
  member = member || other.member;
  for (const auto& [element, child] : other.children) children[element].add(child);
}

void FieldSet::add(FieldSet&& other) {
  member = member || other.member;
  children.merge(other.children);  // what is not here yet moves over as it is
  for (auto& [element, child] : other.children) children[element].add(std::move(child));
}

void FieldSet::subtract(const FieldSet& other) {
  if (other.member) member = false;
  for (const auto& [element, child] : other.children) {
    const auto found = children.find(element);
    if (found != children.end()) found->second.subtract(child);
  }
  tidy();
}

FieldSet FieldSet::intersect(const FieldSet& other) const {
  FieldSet out;
  out.member = member && other.member;
  for (const auto& [element, child] : children) {
    if (const FieldSet* theirs = other.find(element)) {
      FieldSet both = child.intersect(*theirs);
      if (!both.empty()) out.children[element] = std::move(both);
    }
  }
  return out;
}

void FieldSet::tidy() {
  for (auto at = children.begin(); at != children.end();) {
    at->second.tidy();
    if (!at->second.member && at->second.children.empty())
      at = children.erase(at);
    else
      ++at;
  }
}

std::vector<std::string> FieldSet::paths() const {
  std::vector<std::string> out;
  list_paths(*this, "", out);
  return out;
}

std::string element_text(std::string_view element) {
  if (element.starts_with("f:")) return "." + std::string(element.substr(2));
  if (element.starts_with("v:")) return "[=" + std::string(element.substr(2)) + "]";
  if (element.starts_with("i:")) return "[" + std::string(element.substr(2)) + "]";
  if (!element.starts_with("k:")) return "." + std::string(element);
  const auto keys = json::parse(element.substr(2));
  std::vector<std::string> parts;
  if (keys && keys->is_object()) {
    for (const auto& key : keys->get_object())
      parts.push_back(std::string(key.key()) + "=" + json::dump(key.value()));
  }
  return "[" + join(parts, ",") + "]";
}

}  // namespace muster::kube
