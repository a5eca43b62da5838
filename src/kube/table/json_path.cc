#include "base/strings.h"
#include "kube/table/table.h"

namespace muster::kube {
namespace {

using json::Value;

/// Reads a path from left to right and keeps the values it has reached so far.
class Reader {
 public:
  Reader(const Value& root, std::string_view path) : path_(path) { values_.push_back(&root); }

  std::vector<Value> run() {
    if (path_.starts_with("{") && path_.ends_with("}")) path_ = path_.substr(1, path_.size() - 2);
    if (path_.starts_with("$")) path_.remove_prefix(1);
    while (at_ < path_.size() && !failed_) {
      if (path_[at_] == '.') {
        ++at_;
        if (at_ < path_.size() && path_[at_] == '.')
          return {};  // recursive descent is not part of the subset
        if (at_ < path_.size() && path_[at_] != '[') field(name());
      } else if (path_[at_] == '[') {
        bracket();
      } else {
        field(name());
      }
    }
    std::vector<Value> out;
    if (failed_) return out;
    for (const Value* value : values_) out.push_back(*value);
    return out;
  }

 private:
  std::string name() {
    std::string out;
    while (at_ < path_.size() && path_[at_] != '.' && path_[at_] != '[') {
      if (path_[at_] == '\\' && at_ + 1 < path_.size()) ++at_;
      out += path_[at_++];
    }
    return out;
  }

  void field(const std::string& key) {
    std::vector<const Value*> next;
    for (const Value* value : values_) {
      if (key == "*") {
        if (value->is_object())
          for (const auto& member : value->get_object()) next.push_back(&member.value());
        if (value->is_array())
          for (const Value& item : value->get_array()) next.push_back(&item);
      } else if (const json::Object* object = value->if_object()) {
        if (const Value* member = object->if_contains(key)) next.push_back(member);
      }
    }
    values_ = std::move(next);
  }

  /// The text between the brackets, quotes respected.
  std::string inside() {
    ++at_;
    std::string out;
    char quote = 0;
    for (; at_ < path_.size(); ++at_) {
      const char c = path_[at_];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == ']') {
        ++at_;
        return out;
      }
      out += c;
    }
    failed_ = true;
    return out;
  }

  void bracket() {
    const std::string text = inside();
    if (failed_) return;
    if (text.starts_with("?(") && text.ends_with(")"))
      return filter(text.substr(2, text.size() - 3));
    if (text == "*") return field("*");
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"'))
      return field(text.substr(1, text.size() - 2));
    slice(text);
  }

  void slice(const std::string& text) {
    const auto parts = split(text, ':');
    std::vector<const Value*> next;
    for (const Value* value : values_) {
      const json::Array& list = json::as_array(*value);
      const auto size = static_cast<std::int64_t>(list.size());
      const auto place = [&](const std::string& part, std::int64_t otherwise) {
        if (trim(part).empty()) return otherwise;
        const std::int64_t index = parse_int(trim(part)).value_or(size);
        return index < 0 ? index + size : index;
      };
      std::int64_t first = place(parts[0], 0);
      std::int64_t last = parts.size() > 1 ? place(parts[1], size) : first + 1;
      if (parts.size() == 1 && trim(parts[0]).empty()) last = size;
      first = std::max<std::int64_t>(first, 0);
      for (std::int64_t i = first; i < std::min(last, size); ++i)
        next.push_back(&list[static_cast<std::size_t>(i)]);
    }
    values_ = std::move(next);
  }

  static std::string plain(std::string_view text) {
    text = trim(text);
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front())
      text = text.substr(1, text.size() - 2);
    return std::string(text);
  }

  /// @.type=="Ready", @.x!=3, @.x
  void filter(const std::string& text) {
    std::string_view op;
    std::size_t at = std::string::npos;
    for (const std::string_view candidate : {"==", "!=", ">=", "<=", ">", "<"}) {
      const std::size_t found = text.find(candidate);
      if (found < at) at = found, op = candidate;
    }
    const std::string left = std::string(trim(std::string_view(text).substr(0, at)));
    if (!left.starts_with("@")) {
      failed_ = true;
      return;
    }
    std::vector<const Value*> next;
    for (const Value* value : values_) {
      for (const Value& item : json::as_array(*value)) {
        const auto found = json_path(item, std::string_view(left).substr(1));
        bool keep = !found.empty();
        if (keep && !op.empty())
          keep = holds(found[0], op, plain(std::string_view(text).substr(at + op.size())));
        if (keep) next.push_back(&item);
      }
    }
    values_ = std::move(next);
  }

  static bool holds(const Value& value, std::string_view op, const std::string& wanted) {
    const std::string have = value.is_string() ? json::text(value) : json::dump(value);
    if (op == "==") return have == wanted;
    if (op == "!=") return have != wanted;
    const auto left = parse_int(have);
    const auto right = parse_int(wanted);
    if (!left || !right) return false;
    if (op == ">") return *left > *right;
    if (op == "<") return *left < *right;
    return op == ">=" ? *left >= *right : *left <= *right;
  }

  std::string_view path_;
  std::size_t at_ = 0;
  bool failed_ = false;
  std::vector<const Value*> values_;
};

}  // namespace

std::vector<json::Value> json_path(const json::Value& object, std::string_view path) {
  return Reader(object, path).run();
}

}  // namespace muster::kube
