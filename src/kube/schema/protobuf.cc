#include "kube/schema/protobuf.h"

#include <fmt/core.h>

#include <bit>

#include "base/strings.h"
#include "kube/schema/protobuf_cursor.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;
using Cursor = ProtobufCursor;

constexpr int kDepthMax = 64;
constexpr std::string_view kMagic("k8s\0", 4);
constexpr std::uint32_t kBytes = 2;  // the wire type

std::uint32_t wire_of(std::uint32_t tag) { return tag & 7; }
std::size_t number_of(std::uint32_t tag) { return tag >> 3; }

bool is_zero(const Value& value) {
  return value.is_null() || (!value.is_object() && !value.is_array() && json::is_empty(value));
}

/// How many members a message can have: its tags, so that its object is made as large at once.
std::size_t members_of(std::string_view bytes) {
  Cursor in(bytes);
  std::size_t count = 0;
  std::uint32_t last = 0;
  for (std::uint32_t tag = 0; !in.at_end() && in.tag(tag) && in.skip(tag);)
    count += tag != std::exchange(last, tag);
  return count;
}

class Decoder {
 public:
  explicit Decoder(const Schema& schema) : schema_(schema) {}

  const Field* left_out = nullptr;  // may be null
  std::string problem;

  bool message(const Type& type, std::string_view bytes, Object& out, int depth);

 private:
  using Fields = std::vector<const Field*>;

  bool flattened(
      const Fields& fields, std::size_t level, std::string_view bytes, Object& out, int depth);
  bool field(const Field& field, std::uint32_t tag, Cursor& in, Object& out, int depth);
  bool list_item(const FieldType& element, std::uint32_t tag, Cursor& in, Value& list, int depth);
  bool map_entry(const FieldType& element, Cursor& in, Value& map, int depth);
  bool value(const FieldType& type, std::uint32_t tag, Cursor& in, Value& out, int depth);
  bool special(const Type& type, std::string_view bytes, Value& out, int depth);
  bool props_or(const Type& type, std::string_view bytes, Value& out, int depth);
  bool broken(std::string text) {
    if (problem.empty()) problem = std::move(text);
    return false;
  }

  const Schema& schema_;
};

bool Decoder::message(const Type& type, std::string_view bytes, Object& out, int depth) {
  if (depth > kDepthMax) return broken("the message is nested too deeply");
  if (out.empty()) out.reserve(members_of(bytes));
  Cursor in(bytes);
  while (!in.at_end()) {
    std::uint32_t tag = 0;
    if (!in.tag(tag)) return broken("the message ends in the middle of a field");
    const Fields* const fields =
        number_of(tag) < type.by_number.size() ? &type.by_number[number_of(tag)] : nullptr;
    if (fields == nullptr || fields->empty() || fields->front() == left_out) {
      if (!in.skip(tag))
        return broken(
            fmt::format("{}: field {} cannot be skipped", type.short_name(), number_of(tag)));
      continue;
    }
    if (const Field& only = *fields->front(); only.proto.size() == 1) {
      if (!field(only, tag, in, out, depth))
        return broken(fmt::format("{}.{} does not decode", type.short_name(), only.name));
      continue;
    }
    // Several JSON fields live inside one embedded message (Volume.configMap is field 19 of field
    // 2).
    std::string_view raw;
    if (wire_of(tag) != kBytes || !in.bytes(raw) || !flattened(*fields, 1, raw, out, depth + 1)) {
      return broken(fmt::format("{}: field {} does not decode", type.short_name(), number_of(tag)));
    }
  }
  return true;
}

bool Decoder::flattened(
    const Fields& fields, std::size_t level, std::string_view bytes, Object& out, int depth) {
  if (depth > kDepthMax) return false;
  Cursor in(bytes);
  while (!in.at_end()) {
    std::uint32_t tag = 0;
    if (!in.tag(tag)) return false;
    Fields inside;
    const Field* exact = nullptr;
    for (const Field* candidate : fields) {
      if (candidate->proto.size() <= level ||
          static_cast<std::size_t>(candidate->proto[level]) != number_of(tag))
        continue;
      if (candidate->proto.size() == level + 1)
        exact = candidate;
      else
        inside.push_back(candidate);
    }
    if (exact != nullptr) {
      if (!field(*exact, tag, in, out, depth)) return false;
    } else if (!inside.empty()) {
      std::string_view raw;
      if (wire_of(tag) != kBytes || !in.bytes(raw) ||
          !flattened(inside, level + 1, raw, out, depth + 1))
        return false;
    } else if (!in.skip(tag)) {
      return false;
    }
  }
  return true;
}

bool Decoder::field(const Field& field, std::uint32_t tag, Cursor& in, Object& out, int depth) {
  switch (field.type.shape) {
    case FieldType::Shape::kList:
      return list_item(*field.type.element, tag, in, out[field.name], depth);
    case FieldType::Shape::kMap:
      return wire_of(tag) == kBytes && map_entry(*field.type.element, in, out[field.name], depth);
    case FieldType::Shape::kMessage: {
      // Written twice means merged, by the rules of protobuf.
      std::string_view raw;
      if (wire_of(tag) != kBytes || !in.bytes(raw)) return false;
      Value& into = out[field.name];
      if (!into.is_object()) into.emplace_object();
      return message(*field.type.type, raw, into.get_object(), depth + 1);
    }
    case FieldType::Shape::kScalar:
      break;
  }
  Value decoded;
  if (!value(field.type, tag, in, decoded, depth)) return false;
  if (!is_zero(decoded) || ((field.required || field.pointer) && !decoded.is_null()))
    out[field.name] = std::move(decoded);
  return true;
}

bool Decoder::list_item(
    const FieldType& element, std::uint32_t tag, Cursor& in, Value& list, int depth) {
  if (!list.is_array()) list.emplace_array();
  const bool numeric = element.scalar.starts_with("integer") || element.scalar == "boolean";
  if (numeric && wire_of(tag) == kBytes) {  // packed
    std::string_view raw;
    if (!in.bytes(raw)) return false;
    Cursor packed(raw);
    for (std::uint64_t number = 0; !packed.at_end();) {
      if (!packed.varint(number)) return false;
      list.get_array().push_back(element.scalar == "boolean"
                                     ? Value(number != 0)
                                     : Value(static_cast<std::int64_t>(number)));
    }
    return true;
  }
  Value item;
  if (!value(element, tag, in, item, depth)) return false;
  list.get_array().push_back(std::move(item));
  return true;
}

bool Decoder::map_entry(const FieldType& element, Cursor& in, Value& map, int depth) {
  if (!map.is_object()) map.emplace_object();
  std::string_view raw,
      // An entry may leave out its key; a view of nothing at all is no name for Boost.JSON.
      key = "";
  if (!in.bytes(raw)) return false;
  Cursor entry(raw);
  Value item;
  while (!entry.at_end()) {
    std::uint32_t tag = 0;
    if (!entry.tag(tag)) return false;
    if (number_of(tag) == 1 && wire_of(tag) == kBytes) {
      if (!entry.bytes(key)) return false;
    } else if (number_of(tag) != 2) {
      if (!entry.skip(tag)) return false;
    } else if (element.shape == FieldType::Shape::kList) {
      std::string_view inner;  // {1: item …}
      if (wire_of(tag) != kBytes || !entry.bytes(inner)) return false;
      if (!item.is_array()) item.emplace_array();
      for (Cursor items(inner); !items.at_end();) {
        std::uint32_t item_tag = 0;
        if (!items.tag(item_tag)) return false;
        if (number_of(item_tag) == 1 ? !list_item(*element.element, item_tag, items, item, depth)
                                     : !items.skip(item_tag))
          return false;
      }
    } else if (!value(element, tag, entry, item, depth)) {
      return false;
    }
  }
  if (item.is_null()) {
    if (element.shape == FieldType::Shape::kMessage)
      item.emplace_object();
    else if (element.scalar == "boolean")
      item = false;
    else if (element.scalar.starts_with("integer"))
      item = 0;
    else
      item = "";
  }
  map.get_object()[key] = std::move(item);
  return true;
}

bool Decoder::value(const FieldType& type, std::uint32_t tag, Cursor& in, Value& out, int depth) {
  if (type.shape == FieldType::Shape::kList || type.shape == FieldType::Shape::kMap) return false;
  std::string_view raw;
  if (type.shape == FieldType::Shape::kMessage) {
    if (wire_of(tag) != kBytes || !in.bytes(raw)) return false;
    out.emplace_object();
    return message(*type.type, raw, out.get_object(), depth + 1);
  }
  if (type.type != nullptr && type.type->special != Special::kNone) {
    return wire_of(tag) == kBytes && in.bytes(raw) && special(*type.type, raw, out, depth + 1);
  }
  if (type.scalar == "boolean" || type.scalar.starts_with("integer")) {
    std::uint64_t number = 0;
    if (wire_of(tag) != 0 || !in.varint(number)) return false;
    if (type.scalar == "boolean")
      out = number != 0;
    else if (type.scalar == "integer:int32")
      out = static_cast<std::int64_t>(static_cast<std::int32_t>(number));
    else
      out = static_cast<std::int64_t>(number);
    return true;
  }
  if (type.scalar == "number:double") {
    std::uint64_t number = 0;
    if (wire_of(tag) != 1 || !in.fixed64(number)) return false;
    out = std::bit_cast<double>(number);
    return true;
  }
  if (wire_of(tag) != kBytes || !in.bytes(raw)) return false;
  if (type.scalar == "string:byte")
    out = base64_encode(raw);
  else
    out = raw;
  return true;
}

/// The members of a small message that is not in the table: numbers and bytes by field number.
struct Small {
  std::uint64_t numbers[5] = {0, 0, 0, 0, 0};
  std::string_view texts[5];

  bool read(std::string_view bytes) {
    for (Cursor in(bytes); !in.at_end();) {
      std::uint32_t tag = 0;
      if (!in.tag(tag)) return false;
      std::uint64_t number = 0;
      std::string_view text;
      if (wire_of(tag) == 0 ? !in.varint(number) : wire_of(tag) != kBytes || !in.bytes(text))
        return false;
      if (number_of(tag) >= std::size(texts)) continue;
      numbers[number_of(tag)] = number;
      texts[number_of(tag)] = text;
    }
    return true;
  }
};

bool Decoder::special(const Type& type, std::string_view raw, Value& out, int depth) {
  if (type.special == Special::kPropsOrBool || type.special == Special::kPropsOrArray ||
      type.special == Special::kPropsOrStrings) {
    return props_or(type, raw, out, depth);
  }
  Small small;
  if (!small.read(raw)) return false;
  switch (type.special) {
    case Special::kQuantity:
      out = small.texts[1].empty() ? std::string_view("0") : small.texts[1];
      return true;
    case Special::kTime:
    case Special::kMicroTime: {
      const auto seconds = static_cast<std::int64_t>(small.numbers[1]);
      const auto nanos = static_cast<std::int64_t>(small.numbers[2]);
      if (seconds == 0 && nanos == 0) return true;  // Go's zero time: no value
      // Years 1 to 9999, what RFC 3339 can write.
      if (seconds < -62135596800LL || seconds > 253402300799LL || nanos < 0 || nanos > 999'999'999)
        return false;
      const Time time{seconds * 1'000'000 + nanos / 1000};
      out = type.special == Special::kTime ? format_time(time) : format_micro_time(time);
      return true;
    }
    case Special::kIntOrString:
      if (small.numbers[1] == 0)
        out = static_cast<std::int64_t>(static_cast<std::int32_t>(small.numbers[2]));
      else
        out = small.texts[3];
      return true;
    default: {
      if (small.texts[1].empty()) return true;
      auto parsed = json::parse(small.texts[1]);
      if (!parsed) return broken(fmt::format("{}: {}", type.short_name(), parsed.error().message));
      out = std::move(*parsed);
      return true;
    }
  }
}

bool Decoder::props_or(const Type& type, std::string_view raw, Value& out, int depth) {
  const Type* props =
      schema_.find_type("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  if (props == nullptr) return false;
  bool allows = false, schema = false;
  Array items;
  for (Cursor in(raw); !in.at_end();) {
    std::uint32_t tag = 0;
    std::string_view inner;
    if (!in.tag(tag)) return false;
    if (type.special == Special::kPropsOrBool && number_of(tag) == 1 && wire_of(tag) == 0) {
      std::uint64_t is = 0;
      if (!in.varint(is)) return false;
      allows = is != 0;
    } else if (wire_of(tag) == kBytes && in.bytes(inner)) {
      const bool is_schema =
          type.special == Special::kPropsOrBool ? number_of(tag) == 2 : number_of(tag) == 1;
      if (!is_schema && type.special == Special::kPropsOrStrings) {
        items.emplace_back(inner);
        continue;
      }
      Object decoded;
      if (!message(*props, inner, decoded, depth + 1)) return false;
      if (is_schema)
        out = std::move(decoded), schema = true;
      else
        items.emplace_back(std::move(decoded));
    } else {
      return false;
    }
  }
  if (!schema)
    out = type.special == Special::kPropsOrBool ? Value(allows) : Value(std::move(items));
  return true;
}

/// kubectl and client-go name DeleteOptions and friends in the group of the resource; the type is
/// the same.
const Type* find_kind(const Schema& schema, const Gvk& gvk) {
  if (const Type* type = schema.find_type(gvk)) return type;
  return schema.find_type("io.k8s.apimachinery.pkg.apis.meta.v1." + gvk.kind);
}

}  // namespace

Result<json::Value> decode_protobuf(const Schema& schema,
                                    std::string_view body,
                                    ManagedFields managed) {
  if (!body.starts_with(kMagic))
    return fail(
        Code::kBadRequest,
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  Small envelope, names;  // typeMeta, raw, contentEncoding, contentType
  if (!envelope.read(body.substr(kMagic.size()))) {
    return fail(
        Code::kBadRequest,
        "the protobuf envelope is broken: wanted typeMeta, raw, contentEncoding and contentType");
  }
  const auto [unused, type_meta, raw, encoding, content_type] = envelope.texts;
  if (!names.read(type_meta))
    return fail(Code::kBadRequest, "the protobuf envelope's typeMeta is broken");
  if (!encoding.empty())
    return fail(
        Code::kBadRequest,
        fmt::format("content encoding \"{}\" is not supported in a protobuf envelope", encoding));
  if (!content_type.empty() && content_type != "application/vnd.kubernetes.protobuf")
    return json::parse(raw);
  Value typed = Object{{"apiVersion", names.texts[1]}, {"kind", names.texts[2]}};
  const Type* type = find_kind(schema, gvk_of(typed));
  if (type == nullptr) {
    return fail(
        Code::kBadRequest,
        fmt::format(
            "no kind \"{}\" is registered for version \"{}\": it cannot be sent as protobuf",
            names.texts[2],
            names.texts[1]));
  }
  Decoder decoder(schema);
  if (managed == ManagedFields::kLeaveOut) {
    static const Type* const kMeta =
        Schema::builtin().find_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    decoder.left_out = kMeta == nullptr ? nullptr : kMeta->find("managedFields");
  }
  // apiVersion and kind first, as every other object has them.
  typed.get_object().reserve(2 + members_of(raw));
  if (!decoder.message(*type, raw, typed.get_object(), 0)) {
    return fail(Code::kBadRequest,
                fmt::format("{} in version \"{}\" cannot be decoded from protobuf: {}",
                            names.texts[2],
                            names.texts[1],
                            decoder.problem));
  }
  return typed;
}

}  // namespace muster::kube
