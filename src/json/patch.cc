#include <fmt/core.h>

#include "base/strings.h"
#include "json/erase.h"
#include "json/json.h"

namespace muster::json {
namespace {

std::vector<std::string> pointer_parts(std::string_view pointer) {
  std::vector<std::string> parts;
  if (pointer.empty()) return parts;
  for (const std::string& part : split(pointer.substr(1), '/')) {
    parts.push_back(replace_all(replace_all(part, "~1", "/"), "~0", "~"));
  }
  return parts;
}

std::optional<std::size_t> array_index(std::string_view text, std::size_t size) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  const auto index = parse_int(text);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= size) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

const Value* step(const Value& value, const std::string& part) {
  if (const Object* object = value.if_object()) return object->if_contains(part);
  if (const Array* array = value.if_array()) {
    const auto index = array_index(part, array->size());
    return index ? &(*array)[*index] : nullptr;
  }
  return nullptr;
}

Value* find_parent(Value& root, const std::vector<std::string>& parts) {
  const Value* here = &root;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    here = step(*here, parts[i]);
    if (here == nullptr) return nullptr;
  }
  return const_cast<Value*>(here);
}

Result<void> missing(std::string_view path) {
  return fail(Code::kInvalid, fmt::format("path \"{}\" does not exist", path));
}

/// What the operations of one patch may cost together: members moved aside, values copied. A patch
/// of ten thousand operations on lists of hundreds stays below.
class Budget {
 public:
  void moved(std::size_t values) { spent_ += values; }
  void copied(const Value& value) {
    spent_ += 16;
    if (const String* string = value.if_string()) {
      spent_ += string->size() / 16;
    } else if (const Array* array = value.if_array()) {
      for (const Value& item : *array) copied(item);
    } else if (const Object* object = value.if_object()) {
      for (const auto& member : *object) copied(member.value());
    }
  }
  [[nodiscard]] Result<void> check() const {
    constexpr std::size_t kMost = 5'000'000;
    if (spent_ <= kMost) return {};
    return fail(Code::kTooLarge,
                "the JSON patch moves or copies too much: send the whole object instead");
  }

 private:
  std::size_t spent_ = 0;
};

Result<void> add(Value& root, std::string_view path, Value value, Budget& budget) {
  const auto parts = pointer_parts(path);
  if (parts.empty()) {
    root = std::move(value);
    return {};
  }
  Value* parent = find_parent(root, parts);
  if (parent == nullptr) return missing(path);
  if (Object* object = parent->if_object()) {
    (*object)[parts.back()] = std::move(value);
    return {};
  }
  if (Array* array = parent->if_array()) {
    if (parts.back() == "-") {
      array->push_back(std::move(value));
      return {};
    }
    const auto index = array_index(parts.back(), array->size() + 1);
    if (!index) return missing(path);
    budget.moved(array->size() - *index);
    array->insert(array->begin() + *index, std::move(value));
    return {};
  }
  return missing(path);
}

Result<Value> take(Value& root, std::string_view path, Budget& budget) {
  const auto parts = pointer_parts(path);
  if (parts.empty()) return fail(Code::kInvalid, "the whole document cannot be removed");
  Value* parent = find_parent(root, parts);
  if (parent != nullptr) {
    if (Object* object = parent->if_object()) {
      const auto found = object->find(parts.back());
      if (found != object->end()) {
        Value taken = std::move(found->value());
        // Each that moves up is also found anew in the object's table.
        budget.moved(8 * static_cast<std::size_t>(object->end() - found));
        object->stable_erase(found);
        return taken;
      }
    } else if (Array* array = parent->if_array()) {
      if (const auto index = array_index(parts.back(), array->size())) {
        Value taken = std::move((*array)[*index]);
        budget.moved(array->size() - *index);
        array->erase(array->begin() + *index);
        return taken;
      }
    }
  }
  return fail(Code::kInvalid, fmt::format("path \"{}\" does not exist", path));
}

Result<void> apply(Value& root, const Value& operation, Budget& budget) {
  const std::string op = text(at(operation, "op"));
  const std::string path = text(at(operation, "path"));
  if (!at(operation, "path").is_string() || (!path.empty() && path[0] != '/')) {
    return fail(
        Code::kInvalid,
        fmt::format("operation \"{}\": \"path\" must be a JSON pointer, found \"{}\"", op, path));
  }
  const Object* object = operation.if_object();
  const bool has_value = object != nullptr && object->contains("value");
  if (op == "add" || op == "replace" || op == "test") {
    if (!has_value)
      return fail(Code::kInvalid,
                  fmt::format("operation \"{}\" on \"{}\" needs a \"value\"", op, path));
  }
  if (op == "add") return add(root, path, at(operation, "value"), budget);
  if (op == "remove") {
    auto taken = take(root, path, budget);
    if (!taken) return fail(taken.error());
    return {};
  }
  if (op == "replace") {
    const Value* found = find_pointer(root, path);
    if (found == nullptr) return missing(path);
    *const_cast<Value*>(found) = at(operation, "value");
    return {};
  }
  if (op == "test") {
    const Value* found = find_pointer(root, path);
    if (found == nullptr ? !at(operation, "value").is_null()
                         : !equal(*found, at(operation, "value"))) {
      return fail(Code::kInvalid, fmt::format("testing path \"{}\" failed", path));
    }
    return {};
  }
  if (op == "move" || op == "copy") {
    const std::string from = text(at(operation, "from"));
    if (op == "copy") {
      const Value* found = find_pointer(root, from);
      if (found == nullptr) return missing(from);
      budget.copied(*found);
      if (auto fits = budget.check(); !fits) return fits;
      return add(root, path, Value(*found), budget);
    }
    if (path.size() > from.size() && path.starts_with(from + "/")) {
      return fail(Code::kInvalid, fmt::format("\"{}\" cannot be moved into itself", from));
    }
    auto taken = take(root, from, budget);
    if (!taken) return fail(taken.error());
    return add(root, path, std::move(*taken), budget);
  }
  return fail(
      Code::kInvalid,
      fmt::format("operation \"{}\" is unknown: wanted add, remove, replace, move, copy or test",
                  op));
}

}  // namespace

const Value* find_pointer(const Value& value, std::string_view pointer) {
  if (!pointer.empty() && pointer[0] != '/') return nullptr;
  const Value* here = &value;
  for (const std::string& part : pointer_parts(pointer)) {
    here = step(*here, part);
    if (here == nullptr) return nullptr;
  }
  return here;
}

void merge_patch(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  Object& object = target.get_object();
  bool removes = false;
  for (const auto& member : patch.get_object()) {
    if (!member.value().is_null())
      merge_patch(object[member.key()], member.value());
    else
      removes = true;
  }
  if (!removes) return;
  erase_members(object, [&](std::string_view key, const Value&) {
    const Value* wanted = patch.get_object().if_contains(key);
    return wanted != nullptr && wanted->is_null();
  });
}

Result<void> json_patch(Value& target, const Value& operations) {
  if (!operations.is_array())
    return fail(Code::kBadRequest, "a JSON patch must be a list of operations");
  // Ten thousand is Kubernetes' own limit (JSONPatch max operations).
  if (operations.get_array().size() > 10'000) {
    return fail(Code::kTooLarge, "a JSON patch may have at most 10000 operations");
  }
  Value result = target;
  Budget budget;
  for (const Value& operation : operations.get_array()) {
    auto done = apply(result, operation, budget);
    if (!done) return done;
    if (auto fits = budget.check(); !fits) return fits;
  }
  target = std::move(result);
  return {};
}

}  // namespace muster::json
