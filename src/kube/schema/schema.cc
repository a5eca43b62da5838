#include "kube/schema/schema.h"

#include <fmt/core.h>

#include <bit>

#include "base/quantity.h"
#include "base/strings.h"
#include "json/erase.h"
#include "kube/embedded.h"
#include "kube/kinds/kind.h"

namespace muster::kube {
namespace {

/// Length and three letters tell nearly all fields of one type apart.
std::size_t hash_of(std::string_view name) {
  if (name.empty()) return 0;
  const auto letter = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(name[at]));
  };
  return name.size() * 131 + letter(0) * 31 + letter(name.size() / 2) * 7 +
         letter(name.size() - 1) * 3;
}

Special special_of(std::string_view name) {
  if (name == "io.k8s.apimachinery.pkg.api.resource.Quantity") return Special::kQuantity;
  if (name == "io.k8s.apimachinery.pkg.apis.meta.v1.Time") return Special::kTime;
  if (name == "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime") return Special::kMicroTime;
  if (name == "io.k8s.apimachinery.pkg.util.intstr.IntOrString") return Special::kIntOrString;
  if (name == "io.k8s.apimachinery.pkg.runtime.RawExtension") return Special::kRawExtension;
  if (name == "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1") return Special::kFieldsV1;
  constexpr std::string_view kCrd = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
  if (!name.starts_with(kCrd)) return Special::kNone;
  name.remove_prefix(kCrd.size());
  if (name == "JSON") return Special::kJson;
  if (name == "JSONSchemaPropsOrBool") return Special::kPropsOrBool;
  if (name == "JSONSchemaPropsOrArray") return Special::kPropsOrArray;
  if (name == "JSONSchemaPropsOrStringArray") return Special::kPropsOrStrings;
  return Special::kNone;
}

Scalar kind_of(std::string_view scalar) {
  if (scalar == "string") return Scalar::kString;
  if (scalar == "string:byte") return Scalar::kBytes;
  if (scalar == "boolean") return Scalar::kBoolean;
  if (scalar == "integer:int32") return Scalar::kInt32;
  if (scalar == "integer:int64") return Scalar::kInt64;
  if (scalar == "number:double") return Scalar::kDouble;
  return scalar == "any" || scalar == "object" ? Scalar::kAny : Scalar::kOther;
}

std::vector<std::string> strings(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value& value : json::as_array(list)) out.push_back(json::text(value));
  return out;
}

}  // namespace

/// Fills a Schema from the two tables. A table that does not parse is a broken build, so it stops
/// the program.
struct SchemaLoader {
  Schema schema;

  FieldType field_type(const json::Value& value) {
    FieldType out;
    if (value.is_array()) {
      out.shape = FieldType::Shape::kList;
      out.element = std::make_shared<FieldType>(field_type(value.get_array().at(0)));
    } else if (value.is_object()) {
      out.shape = FieldType::Shape::kMap;
      out.element = std::make_shared<FieldType>(field_type(json::at(value, "map")));
    } else {
      const std::string_view name = json::as_string(value);
      const auto found = schema.types_.find(name);
      if (found == schema.types_.end()) {
        out.scalar = name;
      } else {
        out.type = &found->second;
        if (found->second.scalar.empty())
          out.shape = FieldType::Shape::kMessage;
        else
          out.scalar = found->second.scalar;
      }
      out.kind = kind_of(out.scalar);
    }
    return out;
  }

  Field field(std::string_view name, const json::Value& value) {
    Field out;
    out.name = name;
    for (const auto& member : json::as_object(value)) {
      const std::string_view key = member.key();
      const json::Value& is = member.value();
      if (key == "type")
        out.type = field_type(is);
      else if (key == "required")
        out.required = json::as_bool(is);
      else if (key == "patchStrategy")
        out.patch_strategy = json::as_string(is);
      else if (key == "mergeKey")
        out.merge_key = json::as_string(is);
      else if (key == "listType")
        out.list_type = json::as_string(is);
      else if (key == "mapType")
        out.map_type = json::as_string(is);
      else if (key == "listMapKeys")
        out.list_map_keys = strings(is);
      else if (key == "enum")
        out.enumeration = strings(is);
      else if (key == "pointer")
        out.pointer = json::as_bool(is);
      else if (key == "default")
        out.default_value = is;
      else if (key == "proto" && is.is_int64())
        out.proto = {static_cast<int>(is.get_int64())};
      else if (key == "proto")
        for (const json::Value& number : json::as_array(is))
          out.proto.push_back(static_cast<int>(json::as_int(number)));
    }
    return out;
  }

  void types(const json::Object& table) {
    for (const auto& member : table) {
      Type& type = schema.types_[std::string(member.key())];
      type.name = member.key();
      type.special = special_of(type.name);
      const json::Value& scalar = json::at(member.value(), "type");
      // An empty message ({"type":"object"} without fields) is a message all the same.
      if (scalar.is_string() &&
          (json::as_string(scalar) != "object" || type.special != Special::kNone))
        type.scalar = json::as_string(scalar);
      type.map_type = json::text_at(member.value(), "mapType");
      for (const json::Value& gvk : json::array_at(member.value(), "gvk")) {
        const json::Array& parts = json::as_array(gvk);
        type.gvks.push_back(
            {json::text(parts.at(0)), json::text(parts.at(1)), json::text(parts.at(2))});
        schema.by_gvk_[type.gvks.back()] = &type;
      }
    }
    for (const auto& member : table) {
      Type& type = schema.types_.find(std::string_view(member.key()))->second;
      for (const auto& entry : json::object_at(member.value(), "fields")) {
        Field& made = type.fields[std::string(entry.key())];
        made = field(std::string_view(entry.key()), entry.value());
        if (made.proto.empty()) continue;
        const auto number = static_cast<std::size_t>(made.proto[0]);
        if (type.by_number.size() <= number) type.by_number.resize(number + 1);
        type.by_number[number].push_back(&made);
      }
      index(type);
    }
  }

  /// A look-up is one hash and one comparison, because every field of every body is looked up
  /// several times.
  static void index(Type& type) {
    if (type.fields.empty()) return;
    type.by_hash.resize(std::bit_ceil(type.fields.size() * 4));
    std::size_t ordinal = 0;
    for (auto& [name, field] : type.fields) {
      field.ordinal = ordinal++;
      std::size_t place = hash_of(name);
      while (type.by_hash[place & (type.by_hash.size() - 1)] != nullptr) ++place;
      type.by_hash[place & (type.by_hash.size() - 1)] = &field;
    }
  }

  void resources(const json::Array& table) {
    for (const json::Value& value : table) {
      ResourceInfo& info = schema.resources_.emplace_back();
      info.group = json::text_at(value, "group");
      info.version = json::text_at(value, "version");
      info.plural = json::text_at(value, "resource");
      info.singular = json::text_at(value, "singular");
      info.kind = json::text_at(value, "kind");
      info.namespaced = json::bool_at(value, "namespaced");
      info.verbs = strings(json::at(value, "verbs"));
      info.short_names = strings(json::at(value, "shortNames"));
      info.categories = strings(json::at(value, "categories"));
      for (const json::Value& sub : json::array_at(value, "subresources")) {
        // A kind without a group of its own belongs to the resource's group-version.
        const bool foreign =
            json::at(sub, "group").is_string() || json::at(sub, "version").is_string();
        info.subresources.push_back({json::text_at(sub, "name"),
                                     foreign ? json::text_at(sub, "group") : info.group,
                                     foreign ? json::text_at(sub, "version") : info.version,
                                     json::text_at(sub, "kind"),
                                     strings(json::at(sub, "verbs"))});
      }
      if (const KindRules* rules = find_rules(info.group, info.kind); rules != nullptr)
        info.columns = rules->columns;
      for (const json::Value& column : json::array_at(value, "columns")) {
        info.columns.push_back({json::text_at(column, "name"),
                                json::text_at(column, "type"),
                                json::text_at(column, "format"),
                                json::text_at(column, "description"),
                                static_cast<int>(json::int_at(column, "priority")),
                                ""});
      }
    }
  }

  static Schema load() {
    SchemaLoader loader;
    const auto types = json::parse(embedded_types());
    const auto resources = json::parse(embedded_resources());
    MUSTER_CHECK(types && resources, "the embedded table of kinds does not parse");
    loader.types(types->as_object());
    loader.resources(resources->as_array());
    return std::move(loader.schema);
  }
};

const Field* Type::find(std::string_view field) const {
  if (by_hash.empty()) return nullptr;
  for (std::size_t place = hash_of(field);; ++place) {
    const Field* there = by_hash[place & (by_hash.size() - 1)];
    if (there == nullptr || there->name == field) return there;
  }
}

std::string_view Type::short_name() const {
  return std::string_view(name).substr(name.rfind('.') + 1);
}

const Subresource* ResourceInfo::find_subresource(std::string_view subresource) const {
  for (const Subresource& sub : subresources) {
    if (sub.name == subresource) return &sub;
  }
  return nullptr;
}

const Schema& Schema::builtin() {
  static const Schema kSchema = SchemaLoader::load();
  return kSchema;
}

const Type* Schema::find_type(std::string_view name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? nullptr : &found->second;
}

const Type* Schema::find_type(const Gvk& gvk) const {
  const auto found = by_gvk_.find(gvk);
  return found == by_gvk_.end() ? nullptr : found->second;
}

namespace {

/// Where Go's decoder would stop; nothing when the text is base64. Line breaks are skipped, as
/// there.
std::optional<std::size_t> base64_error_at(std::string_view text) {
  if (base64_decode(text)) return std::nullopt;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    const bool digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '/';
    if (!digit) return i;
    ++digits;
  }
  return text.size() - digits % 4;
}

std::string_view go_kind(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::bool_:
      return "bool";
    default:
      return "number";
  }
}

std::string go_type(const FieldType& type) {
  switch (type.shape) {
    case FieldType::Shape::kList:
      return "[]" + go_type(*type.element);
    case FieldType::Shape::kMap:
      return "map[string]" + go_type(*type.element);
    case FieldType::Shape::kMessage: {
      // "io.k8s.api.core.v1.PodSpec" is v1.PodSpec in Go.
      const std::string& name = type.type->name;
      const std::size_t last = name.rfind('.');
      const std::size_t before = name.rfind('.', last - 1);
      return name.substr(before + 1);
    }
    case FieldType::Shape::kScalar:
      break;
  }
  if (type.scalar == "boolean") return "bool";
  if (type.scalar == "integer:int32") return "int32";
  if (type.scalar == "integer:int64") return "int64";
  if (type.scalar == "number:double") return "float64";
  if (type.scalar == "string:byte") return "[]uint8";
  return "string";
}

/// Walks an object and its type together. The path is kept as a stack of pieces and only put
/// together for a message, so a clean object costs no allocation.
class Checker {
 public:
  explicit Checker(std::vector<std::string>* unknown) : unknown_(unknown) { path_.reserve(16); }

  bool message(const Type& type, const json::Object& object) {
    for (const auto& member : object) {
      const Field* field = type.find(member.key());
      if (!member_of(type, field, member.key(), member.value())) return false;
    }
    return true;
  }

  bool member_of(const Type& type,
                 const Field* field,
                 std::string_view key,
                 const json::Value& is) {
    path_.push_back({key, 0, false});
    if (field == nullptr) {
      if (unknown_ != nullptr) unknown_->push_back(path());
    } else if (!value(field->type, is, type)) {
      return false;
    }
    path_.pop_back();
    return true;
  }

  std::string error;

 private:
  struct Step {
    std::string_view name;  // empty for an index
    std::size_t index;
    bool key = false;  // of a map: part of the path, but not of Go's
  };

  bool value(const FieldType& type, const json::Value& is, const Type& owner) {
    if (is.is_null()) return true;
    switch (type.shape) {
      case FieldType::Shape::kMessage:
        return is.is_object() ? message(*type.type, is.get_object()) : mismatch(type, is, owner);
      case FieldType::Shape::kList: {
        if (!is.is_array()) return mismatch(type, is, owner);
        const json::Array& array = is.get_array();
        for (std::size_t i = 0; i < array.size(); ++i) {
          path_.push_back({"", i, false});
          if (!value(*type.element, array[i], owner)) return false;
          path_.pop_back();
        }
        return true;
      }
      case FieldType::Shape::kMap:
        if (!is.is_object()) return mismatch(type, is, owner);
        for (const auto& member : is.get_object()) {
          path_.push_back({member.key(), 0, true});
          if (!value(*type.element, member.value(), owner)) return false;
          path_.pop_back();
        }
        return true;
      case FieldType::Shape::kScalar:
        return scalar(type, is, owner);
    }
    return true;
  }

  bool scalar(const FieldType& type, const json::Value& is, const Type& owner) {
    const Special special = type.type == nullptr ? Special::kNone : type.type->special;
    switch (special) {
      case Special::kQuantity: {
        if (is.is_number()) return true;
        if (!is.is_string())
          return bad(
              "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        const auto quantity = parse_quantity(json::as_string(is));
        return quantity ? true : bad(quantity.error().message);
      }
      case Special::kTime:
      case Special::kMicroTime: {
        if (!is.is_string()) return mismatch_as("Time", is, owner);
        if (json::as_string(is).empty()) return true;
        const auto time = parse_time(json::as_string(is));
        return time
                   ? true
                   : bad(fmt::format(
                         "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
                         quoted(json::as_string(is))));
      }
      case Special::kIntOrString:
        return is.is_string() || is.is_int64() || mismatch_as("intstr.IntOrString", is, owner);
      case Special::kRawExtension:
      case Special::kFieldsV1:
      case Special::kJson:
      case Special::kPropsOrBool:
      case Special::kPropsOrArray:
      case Special::kPropsOrStrings:
        return true;
      case Special::kNone:
        break;
    }
    switch (type.kind) {
      case Scalar::kBoolean:
        return is.is_bool() || mismatch(type, is, owner);
      case Scalar::kInt32:
      case Scalar::kInt64: {
        // A whole number written as 1.0 does not decode into a Go integer; one out of range
        // neither.
        if (!is.is_int64())
          return is.is_number() ? mismatch_number(type, is, owner) : mismatch(type, is, owner);
        const std::int64_t number = is.get_int64();
        if (type.kind == Scalar::kInt32 && number != static_cast<std::int32_t>(number))
          return mismatch_number(type, is, owner);
        return true;
      }
      case Scalar::kDouble:
        return is.is_number() || mismatch(type, is, owner);
      case Scalar::kAny:
        return true;
      case Scalar::kBytes:
        if (is.is_string()) {
          const auto wrong = base64_error_at(json::as_string(is));
          return wrong ? bad(fmt::format("illegal base64 data at input byte {}", *wrong)) : true;
        }
        break;
      case Scalar::kString:
      case Scalar::kOther:
        break;
    }
    return is.is_string() || mismatch(type, is, owner);
  }

  bool bad(std::string message) {
    error = std::move(message);
    return false;
  }
  bool mismatch(const FieldType& type, const json::Value& is, const Type& owner) {
    return mismatch_as(go_type(type), is, owner);
  }
  bool mismatch_number(const FieldType& type, const json::Value& is, const Type& owner) {
    return bad(fmt::format("json: cannot unmarshal number {} into Go struct field {}.{} of type {}",
                           json::dump(is),
                           owner.short_name(),
                           plain_path(),
                           go_type(type)));
  }
  bool mismatch_as(std::string_view wanted, const json::Value& is, const Type& owner) {
    return bad(fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}",
                           go_kind(is),
                           owner.short_name(),
                           plain_path(),
                           wanted));
  }

  [[nodiscard]] std::string path() const {
    std::string out;
    for (const Step& step : path_) {
      if (step.name.empty()) {
        out += fmt::format("[{}]", step.index);
      } else {
        if (!out.empty()) out += '.';
        out += step.name;
      }
    }
    return out;
  }
  /// Go's decoder names the fields on the way without list positions and map keys.
  [[nodiscard]] std::string plain_path() const {
    std::string out;
    for (const Step& step : path_) {
      if (step.name.empty() || step.key) continue;
      if (!out.empty()) out += '.';
      out += step.name;
    }
    return out;
  }

  std::vector<std::string>* unknown_;
  std::vector<Step> path_;
};

void drop_in(const FieldType& type, json::Value& value) {
  switch (type.shape) {
    case FieldType::Shape::kMessage:
      drop_unknown_fields(*type.type, value);
      return;
    case FieldType::Shape::kList:
      if (value.is_array() && type.element->shape != FieldType::Shape::kScalar) {
        for (json::Value& item : value.get_array()) drop_in(*type.element, item);
      }
      return;
    case FieldType::Shape::kMap:
      if (value.is_object() && type.element->shape != FieldType::Shape::kScalar) {
        for (auto& member : value.get_object()) drop_in(*type.element, member.value());
      }
      return;
    case FieldType::Shape::kScalar:
      return;
  }
}

}  // namespace

Result<std::vector<std::string>> check_fields(const Type& type, const json::Value& object) {
  std::vector<std::string> unknown;
  if (!object.is_object()) {
    return fail(Code::kBadRequest,
                fmt::format("json: cannot unmarshal {} into Go value of type {}",
                            go_kind(object),
                            go_type({.shape = FieldType::Shape::kMessage, .type = &type})));
  }
  Checker checker(&unknown);
  if (!checker.message(type, object.get_object())) return fail(Code::kBadRequest, checker.error);
  return unknown;
}

Result<std::vector<std::string>> check_member(const Type& type,
                                              const json::Value& object,
                                              std::string_view key) {
  std::vector<std::string> unknown;
  Checker checker(&unknown);
  if (!checker.member_of(type, type.find(key), key, json::at(object, key)))
    return fail(Code::kBadRequest, checker.error);
  return unknown;
}

void drop_unknown_fields(const Type& type, json::Value& value) {
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  json::erase_members(*object, [&](std::string_view key, json::Value& member) {
    const Field* field = type.find(key);
    if (field != nullptr) drop_in(field->type, member);
    return field == nullptr;
  });
}

}  // namespace muster::kube
