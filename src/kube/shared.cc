#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kube/settled.h"

namespace muster::kube {
namespace {

constexpr int kDepthMax = 200;  // the parser's own

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || i + static_cast<std::size_t>(more) >= text.size())
      return false;
    const auto second = static_cast<unsigned char>(text[i + 1]);
    // Overlong forms, surrogates and what lies behind U+10FFFF.
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return false;
    if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return false;
    for (int k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) & 0xC0) != 0x80)
        return false;
    }
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

bool settle(json::Value& value, int depth) {
  if (depth > kDepthMax) return false;
  if (value.is_object()) {
    for (auto& member : value.get_object()) {
      if (!is_utf8(member.key()) || !settle(member.value(), depth + 1)) return false;
    }
  } else if (value.is_array()) {
    for (json::Value& element : value.get_array()) {
      if (!settle(element, depth + 1)) return false;
    }
  } else if (value.is_string()) {
    return is_utf8(value.get_string());
  } else if (value.is_uint64()) {
    if (const auto number = value.get_uint64(); number <= INT64_MAX) {
      value = static_cast<std::int64_t>(number);
    }
  } else if (value.is_double()) {
    return std::isfinite(value.get_double());
  }
  return true;
}

/// True when settle() would change nothing and refuse nothing.
bool is_settled(const json::Value& value, int depth) {
  if (depth > kDepthMax) return false;
  if (const json::Object* members = value.if_object()) {
    return std::all_of(members->begin(), members->end(), [&](const auto& member) {
      return is_utf8(member.key()) && is_settled(member.value(), depth + 1);
    });
  }
  if (const json::Array* elements = value.if_array()) {
    return std::all_of(elements->begin(), elements->end(), [&](const json::Value& element) {
      return is_settled(element, depth + 1);
    });
  }
  if (const json::String* text = value.if_string()) return is_utf8(*text);
  if (value.is_double()) return std::isfinite(value.get_double());
  return !value.is_uint64() || value.get_uint64() > INT64_MAX;
}

}  // namespace

Result<ObjectPtr> settled(const ObjectPtr& object) {
  if (is_settled(*object, 0)) return object;
  auto copy = settled(*object);
  if (!copy) return fail(std::move(copy.error()));
  return std::make_shared<const json::Value>(std::move(*copy));
}

Result<json::Value> settled(const json::Value& value) { return settled(value, {}); }

Result<json::Value> settled(const json::Value& value, json::Storage storage) {
  json::Value copy(value, std::move(storage));
  if (!settle(copy, 0)) {
    return fail(Code::kBadRequest,
                "the object holds text that is not UTF-8, a number that JSON has not, or is nested "
                "too deeply");
  }
  return copy;
}

}  // namespace muster::kube
