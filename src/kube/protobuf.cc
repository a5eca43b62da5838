#include "kube/protobuf.h"

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>

#include <bit>
#include <set>

#include "base/strings.h"

namespace muster::kube {
namespace {

using google::protobuf::io::CodedInputStream;
using json::Array;
using json::Object;
using json::Value;

constexpr int kDepthMax = 64;
constexpr std::string_view kMagic("k8s\0", 4);

/// Go writes a struct's plain fields even when they are zero, but a pointer only when it is set. The JSON form
/// leaves plain zeros out, and a pointer's zero means something ("replicas: 0"). These names are pointers.
bool keeps_zero(const Field& field) {
  static const std::set<std::string_view> kPointers = {
      "activeDeadlineSeconds", "allocateLoadBalancerNodePorts", "allowPrivilegeEscalation", "allowVolumeExpansion", "automountServiceAccountToken",
      "backoffLimit", "backoffLimitPerIndex", "blockOwnerDeletion", "completions", "controller", "defaultMode", "deletionGracePeriodSeconds",
      "enableServiceLinks", "expirationSeconds", "failedJobsHistoryLimit", "fsGroup", "gracePeriodSeconds", "holderIdentity", "hostUsers", "immutable",
      "leaseDurationSeconds", "leaseTransitions", "manualSelector", "maxFailedIndexes", "maxReplicas", "minDomains", "minReplicas", "mode", "optional",
      "orphanDependents", "parallelism", "partition", "port", "priority", "privileged", "progressDeadlineSeconds", "readOnlyRootFilesystem", "ready",
      "replicas", "revisionHistoryLimit", "runAsGroup", "runAsNonRoot", "runAsUser", "seconds", "serving", "setHostnameAsFQDN", "shareProcessNamespace",
      "started", "startingDeadlineSeconds", "storageClassName", "successfulJobsHistoryLimit", "suspend", "terminating", "terminationGracePeriodSeconds",
      "timeoutSeconds", "tolerationSeconds", "ttlSecondsAfterFinished", "minCount", "minGroupCount", "maximum", "minimum", "maxLength", "minLength",
      "maxItems", "minItems", "maxProperties", "minProperties", "multipleOf", "x-kubernetes-preserve-unknown-fields"};
  return field.required || kPointers.contains(field.name);
}

bool is_zero(const Value& value) { return value.is_null() || (!value.is_object() && !value.is_array() && json::is_empty(value)); }

class Decoder {
 public:
  explicit Decoder(const Schema& schema) : schema_(schema) {}

  bool message(const Type& type, std::string_view bytes, Object& out, int depth);
  std::string problem;

 private:
  using Fields = std::vector<const Field*>;

  bool flattened(const Fields& fields, std::size_t level, std::string_view bytes, Object& out, int depth);
  bool field(const Field& field, std::uint32_t tag, CodedInputStream& in, Object& out, int depth);
  bool list_item(const FieldType& element, std::uint32_t tag, CodedInputStream& in, Value& list, int depth);
  bool map_entry(const FieldType& element, CodedInputStream& in, Value& map, int depth);
  bool value(const FieldType& type, std::uint32_t tag, CodedInputStream& in, Value& out, int depth);
  bool special(const Type& type, std::string_view bytes, Value& out, int depth);
  bool props_or(const Type& type, std::string_view bytes, Value& out, int depth);
  bool broken(std::string text) {
    if (problem.empty()) problem = std::move(text);
    return false;
  }

  static bool bytes(CodedInputStream& in, std::string& out) {
    std::uint32_t size = 0;
    return in.ReadVarint32(&size) && size <= 64U * 1024 * 1024 && in.ReadString(&out, static_cast<int>(size));
  }
  static bool skip(CodedInputStream& in, std::uint32_t tag, int depth) {
    std::uint64_t number = 0;
    std::uint32_t small = 0;
    switch (tag & 7) {
      case 0: return in.ReadVarint64(&number);
      case 1: return in.ReadLittleEndian64(&number);
      case 2: return in.ReadVarint32(&small) && in.Skip(static_cast<int>(std::min<std::uint32_t>(small, 0x7fffffff)));
      case 3: {  // groups: nobody sends them, but skipping must end
        if (depth > kDepthMax) return false;
        for (std::uint32_t inner = in.ReadTag(); inner != 0; inner = in.ReadTag()) {
          if ((inner & 7) == 4) return true;
          if (!skip(in, inner, depth + 1)) return false;
        }
        return false;
      }
      case 5: return in.ReadLittleEndian32(&small);
      default: return false;
    }
  }

  const Schema& schema_;
};

CodedInputStream open(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
}

bool Decoder::message(const Type& type, std::string_view bytes, Object& out, int depth) {
  if (depth > kDepthMax) return broken("the message is nested too deeply");
  CodedInputStream in = open(bytes);
  while (true) {
    const std::uint32_t tag = in.ReadTag();
    if (tag == 0) return in.ConsumedEntireMessage() || broken("the message ends in the middle of a field");
    const auto [first, last] = type.by_number.equal_range(static_cast<int>(tag >> 3));
    if (first == last) {
      if (!skip(in, tag, depth)) return broken(fmt::format("{}: field {} cannot be skipped", type.short_name(), tag >> 3));
      continue;
    }
    if (first->second->proto.size() == 1) {
      if (!field(*first->second, tag, in, out, depth)) return broken(fmt::format("{}.{} does not decode", type.short_name(), first->second->name));
      continue;
    }
    // Several JSON fields live inside one embedded message (Volume.configMap is field 19 of field 2).
    Fields inside;
    for (auto at = first; at != last; ++at) inside.push_back(at->second);
    std::string raw;
    if ((tag & 7) != 2 || !Decoder::bytes(in, raw) || !flattened(inside, 1, raw, out, depth + 1)) {
      return broken(fmt::format("{}: field {} does not decode", type.short_name(), tag >> 3));
    }
  }
}

bool Decoder::flattened(const Fields& fields, std::size_t level, std::string_view bytes, Object& out, int depth) {
  if (depth > kDepthMax) return false;
  CodedInputStream in = open(bytes);
  while (true) {
    const std::uint32_t tag = in.ReadTag();
    if (tag == 0) return in.ConsumedEntireMessage();
    const int number = static_cast<int>(tag >> 3);
    Fields inside;
    const Field* exact = nullptr;
    for (const Field* candidate : fields) {
      if (candidate->proto.size() <= level || candidate->proto[level] != number) continue;
      if (candidate->proto.size() == level + 1) exact = candidate;
      else inside.push_back(candidate);
    }
    if (exact != nullptr) {
      if (!field(*exact, tag, in, out, depth)) return false;
    } else if (!inside.empty()) {
      std::string raw;
      if ((tag & 7) != 2 || !Decoder::bytes(in, raw) || !flattened(inside, level + 1, raw, out, depth + 1)) return false;
    } else if (!skip(in, tag, depth)) {
      return false;
    }
  }
}

bool Decoder::field(const Field& field, std::uint32_t tag, CodedInputStream& in, Object& out, int depth) {
  switch (field.type.shape) {
    case FieldType::Shape::kList: return list_item(*field.type.element, tag, in, out[field.name], depth);
    case FieldType::Shape::kMap: return (tag & 7) == 2 && map_entry(*field.type.element, in, out[field.name], depth);
    case FieldType::Shape::kMessage: {
      // Written twice means merged, by the rules of protobuf.
      std::string raw;
      if ((tag & 7) != 2 || !bytes(in, raw)) return false;
      Value& into = out[field.name];
      if (!into.is_object()) into.emplace_object();
      return message(*field.type.type, raw, into.get_object(), depth + 1);
    }
    case FieldType::Shape::kScalar: break;
  }
  Value decoded;
  if (!value(field.type, tag, in, decoded, depth)) return false;
  if (!is_zero(decoded) || (keeps_zero(field) && !decoded.is_null())) out[field.name] = std::move(decoded);
  return true;
}

bool Decoder::list_item(const FieldType& element, std::uint32_t tag, CodedInputStream& in, Value& list, int depth) {
  if (!list.is_array()) list.emplace_array();
  const bool numeric = element.scalar.starts_with("integer") || element.scalar == "boolean";
  if (numeric && (tag & 7) == 2) {  // packed
    std::string raw;
    if (!bytes(in, raw)) return false;
    CodedInputStream packed = open(raw);
    std::uint64_t number = 0;
    while (packed.CurrentPosition() < static_cast<int>(raw.size())) {
      if (!packed.ReadVarint64(&number)) return false;
      list.get_array().push_back(element.scalar == "boolean" ? Value(number != 0) : Value(static_cast<std::int64_t>(number)));
    }
    return true;
  }
  Value item;
  if (!value(element, tag, in, item, depth)) return false;
  list.get_array().push_back(std::move(item));
  return true;
}

bool Decoder::map_entry(const FieldType& element, CodedInputStream& in, Value& map, int depth) {
  if (!map.is_object()) map.emplace_object();
  std::string raw, key;
  if (!bytes(in, raw)) return false;
  CodedInputStream entry = open(raw);
  Value item;
  while (const std::uint32_t tag = entry.ReadTag()) {
    if (tag == 10) {
      if (!bytes(entry, key)) return false;
    } else if ((tag >> 3) == 2) {
      if (element.shape == FieldType::Shape::kList) {
        std::string inner;  // {1: item …}
        if ((tag & 7) != 2 || !bytes(entry, inner)) return false;
        if (!item.is_array()) item.emplace_array();
        CodedInputStream items = open(inner);
        while (const std::uint32_t item_tag = items.ReadTag()) {
          if ((item_tag >> 3) == 1 ? !list_item(*element.element, item_tag, items, item, depth) : !skip(items, item_tag, depth)) return false;
        }
        if (!items.ConsumedEntireMessage()) return false;
      } else if (!value(element, tag, entry, item, depth)) {
        return false;
      }
    } else if (!skip(entry, tag, depth)) {
      return false;
    }
  }
  if (!entry.ConsumedEntireMessage()) return false;
  if (item.is_null()) {
    if (element.shape == FieldType::Shape::kMessage) item.emplace_object();
    else if (element.scalar == "boolean") item = false;
    else if (element.scalar.starts_with("integer")) item = 0;
    else item = "";
  }
  map.get_object()[key] = std::move(item);
  return true;
}

bool Decoder::value(const FieldType& type, std::uint32_t tag, CodedInputStream& in, Value& out, int depth) {
  if (type.shape == FieldType::Shape::kList || type.shape == FieldType::Shape::kMap) return false;
  std::string raw;
  if (type.shape == FieldType::Shape::kMessage) {
    if ((tag & 7) != 2 || !bytes(in, raw)) return false;
    out.emplace_object();
    return message(*type.type, raw, out.get_object(), depth + 1);
  }
  if (type.type != nullptr && type.type->special != Special::kNone) {
    return (tag & 7) == 2 && bytes(in, raw) && special(*type.type, raw, out, depth + 1);
  }
  if (type.scalar == "boolean" || type.scalar.starts_with("integer")) {
    std::uint64_t number = 0;
    if ((tag & 7) != 0 || !in.ReadVarint64(&number)) return false;
    if (type.scalar == "boolean") out = number != 0;
    else if (type.scalar == "integer:int32") out = static_cast<std::int64_t>(static_cast<std::int32_t>(number));
    else out = static_cast<std::int64_t>(number);
    return true;
  }
  if (type.scalar == "number:double") {
    std::uint64_t number = 0;
    if ((tag & 7) != 1 || !in.ReadLittleEndian64(&number)) return false;
    out = std::bit_cast<double>(number);
    return true;
  }
  if ((tag & 7) != 2 || !bytes(in, raw)) return false;
  out = type.scalar == "string:byte" ? base64_encode(raw) : raw;
  return true;
}

/// The members of a small message that is not in the table: numbers and bytes by field number.
struct Small {
  std::uint64_t numbers[4] = {0, 0, 0, 0};
  std::string texts[4];
  bool seen[4] = {false, false, false, false};

  bool read(std::string_view bytes) {
    CodedInputStream in = open(bytes);
    while (const std::uint32_t tag = in.ReadTag()) {
      const std::uint32_t number = tag >> 3;
      std::uint32_t size = 0;
      if ((tag & 7) == 0) {
        std::uint64_t is = 0;
        if (!in.ReadVarint64(&is)) return false;
        if (number < 4) numbers[number] = is, seen[number] = true;
      } else if ((tag & 7) == 2) {
        std::string is;
        if (!in.ReadVarint32(&size) || size > bytes.size() || !in.ReadString(&is, static_cast<int>(size))) return false;
        if (number < 4) texts[number] = std::move(is), seen[number] = true;
      } else {
        return false;
      }
    }
    return in.ConsumedEntireMessage();
  }
};

bool Decoder::special(const Type& type, std::string_view raw, Value& out, int depth) {
  if (type.special == Special::kPropsOrBool || type.special == Special::kPropsOrArray || type.special == Special::kPropsOrStrings) {
    return props_or(type, raw, out, depth);
  }
  Small small;
  if (!small.read(raw)) return false;
  switch (type.special) {
    case Special::kQuantity: out = small.texts[1].empty() ? std::string("0") : small.texts[1]; return true;
    case Special::kTime:
    case Special::kMicroTime: {
      const auto seconds = static_cast<std::int64_t>(small.numbers[1]);
      const auto nanos = static_cast<std::int64_t>(small.numbers[2]);
      if (seconds == 0 && nanos == 0) return true;  // Go's zero time: no value
      // Years 1 to 9999, what RFC 3339 can write.
      if (seconds < -62135596800LL || seconds > 253402300799LL || nanos < 0 || nanos > 999'999'999) return false;
      const Time time{seconds * 1'000'000 + nanos / 1000};
      out = type.special == Special::kTime ? format_time(time) : format_micro_time(time);
      return true;
    }
    case Special::kIntOrString:
      if (small.numbers[1] == 0) out = static_cast<std::int64_t>(static_cast<std::int32_t>(small.numbers[2]));
      else out = small.texts[3];
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
  const Type* props = schema_.find_type("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  if (props == nullptr) return false;
  CodedInputStream in = open(raw);
  bool allows = false, schema = false;
  Array items;
  while (const std::uint32_t tag = in.ReadTag()) {
    std::string inner;
    const std::uint32_t number = tag >> 3;
    if (type.special == Special::kPropsOrBool && number == 1 && (tag & 7) == 0) {
      std::uint64_t is = 0;
      if (!in.ReadVarint64(&is)) return false;
      allows = is != 0;
    } else if ((tag & 7) == 2 && bytes(in, inner)) {
      const bool is_schema = type.special == Special::kPropsOrBool ? number == 2 : number == 1;
      if (!is_schema && type.special == Special::kPropsOrStrings) {
        items.emplace_back(inner);
        continue;
      }
      Object decoded;
      if (!message(*props, inner, decoded, depth + 1)) return false;
      if (is_schema) out = std::move(decoded), schema = true;
      else items.emplace_back(std::move(decoded));
    } else {
      return false;
    }
  }
  if (!schema) out = type.special == Special::kPropsOrBool ? Value(allows) : Value(std::move(items));
  return in.ConsumedEntireMessage();
}

/// kubectl and client-go name DeleteOptions and friends in the group of the resource; the type is the same.
const Type* find_kind(const Schema& schema, const Gvk& gvk) {
  if (const Type* type = schema.find_type(gvk)) return type;
  return schema.find_type("io.k8s.apimachinery.pkg.apis.meta.v1." + gvk.kind);
}

}  // namespace

Result<json::Value> decode_protobuf(const Schema& schema, std::string_view body) {
  if (!body.starts_with(kMagic)) return fail(Code::kBadRequest, "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  if (body.size() > 0x7fffffff) return fail(Code::kTooLarge, "the protobuf body is too large");
  CodedInputStream in = open(body.substr(kMagic.size()));
  std::string type_meta, raw, encoding, content_type;
  while (const std::uint32_t tag = in.ReadTag()) {
    std::uint32_t size = 0;
    std::string part;
    if ((tag & 7) != 2 || !in.ReadVarint32(&size) || size > body.size() || !in.ReadString(&part, static_cast<int>(size))) {
      return fail(Code::kBadRequest, "the protobuf envelope is broken: want typeMeta, raw, contentEncoding and contentType");
    }
    switch (tag >> 3) {
      case 1: type_meta = std::move(part); break;
      case 2: raw = std::move(part); break;
      case 3: encoding = std::move(part); break;
      case 4: content_type = std::move(part); break;
      default: break;
    }
  }
  if (!in.ConsumedEntireMessage()) return fail(Code::kBadRequest, "the protobuf envelope ends in the middle of a field");
  Small names;
  if (!names.read(type_meta)) return fail(Code::kBadRequest, "the protobuf envelope's typeMeta is broken");
  if (!encoding.empty()) return fail(Code::kBadRequest, fmt::format("content encoding \"{}\" is not supported in a protobuf envelope", encoding));
  Value typed = Object{{"apiVersion", names.texts[1]}, {"kind", names.texts[2]}};
  if (!content_type.empty() && content_type != "application/vnd.kubernetes.protobuf") return json::parse(raw);
  const Type* type = find_kind(schema, gvk_of(typed));
  if (type == nullptr) {
    return fail(Code::kBadRequest, fmt::format("no kind \"{}\" is registered for version \"{}\": it cannot be sent as protobuf", names.texts[2], names.texts[1]));
  }
  // apiVersion and kind first, as every other object has them.
  Decoder decoder(schema);
  if (!decoder.message(*type, raw, typed.get_object(), 0)) {
    return fail(Code::kBadRequest, fmt::format("{} in version \"{}\" cannot be decoded from protobuf: {}", names.texts[2], names.texts[1], decoder.problem));
  }
  return typed;
}

}  // namespace muster::kube
