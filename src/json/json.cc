#include "json/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/src.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "base/strings.h"
#include "json/memory.h"
#include "json/text.h"

namespace muster::json {

/// Eight bytes at a time.
bool is_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  // The high bit of each byte that is zero (and, after the first such byte, perhaps of others).
  const auto zeros = [](std::uint64_t word) { return (word - kOnes) & ~word & kHigh; };
  const auto special = [&](std::uint64_t word) {
    const std::uint64_t below_space = (word - kOnes * 0x20) & ~word & kHigh;
    return below_space | zeros(word ^ (kOnes * '"')) | zeros(word ^ (kOnes * '\\')) |
           zeros(word ^ (kOnes * 0x7f));
  };
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (special(word) != 0) return false;
  }
  if (at == text.size()) return true;
  std::uint64_t rest = kOnes * ' ';
  // The last eight, some of them a second time: a load of fixed length needs not wait for a store.
  if (at > 0) {
    std::memcpy(&rest, text.data() + text.size() - sizeof rest, sizeof rest);
  } else {
    for (const char c : text) rest = rest << 8 | static_cast<unsigned char>(c);
  }
  return special(rest) == 0;
}

namespace {

constexpr std::size_t kMaxDepth = 200;

void write_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    while (at + 8 < text.size() && is_plain(text.substr(at, 8))) at += 8;
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, done, at - done);
    done = at + 1;
    out += '\\';
    switch (byte) {
      case '"':
      case '\\':
        out += text[at];
        break;
      case '\b':
        out += 'b';
        break;
      case '\f':
        out += 'f';
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      default:
        out.append("u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  out.append(text, done).append(1, '"');
}

void write_string(std::string& out, std::string_view text) {
  // Nearly every string is written as it is; a serializer for each would cost more than the rest of
  // the object.
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  write_escaped(out, text);
}

void write_number(std::string& out, double number) {
  // Boost prints 0.5 as 5E-1; fmt's shortest form reads as people expect and parses back exactly.
  if (std::isfinite(number)) {
    out += number == std::floor(number) && std::abs(number) < 1e15 ? fmt::format("{:.0f}", number)
                                                                   : fmt::format("{}", number);
  } else {
    out += "null";
  }
}

void write(std::string& out, const Value& value, int indent) {
  const auto newline = [&](int depth) {
    if (indent >= 0) {
      out += '\n';
      out.append(static_cast<std::size_t>(depth) * 2, ' ');
    }
  };
  const int inner = indent < 0 ? -1 : indent + 1;
  switch (value.kind()) {
    case boost::json::kind::double_:
      write_number(out, value.get_double());
      return;
    case boost::json::kind::array: {
      const Array& array = value.get_array();
      out += '[';
      for (std::size_t i = 0; i < array.size(); ++i) {
        if (i > 0) out += ',';
        newline(inner);
        write(out, array[i], inner);
      }
      if (!array.empty()) newline(indent);
      out += ']';
      return;
    }
    case boost::json::kind::object: {
      const Object& object = value.get_object();
      out += '{';
      bool first = true;
      for (const auto& member : object) {
        if (!first) out += ',';
        first = false;
        newline(inner);
        write_string(out, member.key());
        out += indent < 0 ? ":" : ": ";
        write(out, member.value(), inner);
      }
      if (!object.empty()) newline(indent);
      out += '}';
      return;
    }
    case boost::json::kind::string:
      write_string(out, value.get_string());
      return;
    case boost::json::kind::int64:
      out += std::to_string(value.get_int64());
      return;
    case boost::json::kind::uint64:
      out += std::to_string(value.get_uint64());
      return;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case boost::json::kind::null:
      out += "null";
      return;
  }
}

/// Scans the text once more for keys that stand twice in one object. Runs only when asked
/// (fieldValidation), on text that has already parsed.
class DuplicateKeys {
 public:
  DuplicateKeys(std::string_view text, std::vector<std::string>* found)
      : text_(text), found_(found) {
    value();
  }

 private:
  /// Where the scan is: in the member of an object, or at an item of an array.
  struct Step {
    std::string_view key;
    int index;  // of an item; -1 for a member
  };

  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  /// What stands between the quotes, as it stands there.
  std::string_view string() {
    const std::size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    return text_.substr(first, at_++ - first);
  }
  /// The key itself; nearly none is written with escapes.
  std::string_view key() {
    const std::string_view raw = string();
    if (raw.find('\\') == std::string_view::npos) return raw;
    boost::system::error_code failure;
    const Value parsed =
        boost::json::parse(boost::json::string_view(raw.data() - 1, raw.size() + 2), failure);
    return unescaped_.emplace_back(parsed.is_string() ? std::string(parsed.get_string())
                                                      : std::string());
  }
  [[nodiscard]] std::string path() const {
    std::string out;
    for (const Step& step : steps_) {
      if (step.index >= 0)
        out += fmt::format("[{}]", step.index);
      else
        out.append(out.empty() ? "" : ".").append(step.key);
    }
    return out;
  }

  void value() {
    space();
    if (at_ >= text_.size()) return;
    if (text_[at_] == '{') {
      object();
    } else if (text_[at_] == '[') {
      array();
    } else if (text_[at_] == '"') {
      string();
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ']')
        ++at_;
    }
  }
  void array() {
    ++at_;
    for (int i = 0; at_ < text_.size(); ++i) {
      space();
      if (text_[at_] == ']') break;
      steps_.push_back({"", i});
      value();
      steps_.pop_back();
      space();
      if (text_[at_] == ',') ++at_;
    }
    ++at_;
  }
  void object() {
    ++at_;
    const std::size_t first = keys_.size();  // those of the objects around stand before
    std::set<std::string_view> many;         // a long object is not searched key by key
    while (at_ < text_.size()) {
      space();
      if (text_[at_] == '}') break;
      const std::string_view name = key();
      steps_.push_back({name, -1});
      if (!note(name, first, many)) found_->push_back(path());
      space();
      ++at_;  // ':'
      value();
      steps_.pop_back();
      space();
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
    keys_.resize(first);
    ++at_;
  }
  /// False for a key that this object has had.
  bool note(std::string_view name, std::size_t first, std::set<std::string_view>& many) {
    constexpr std::size_t kFew = 24;
    if (keys_.size() - first >= kFew) {
      if (many.empty())
        many.insert(keys_.begin() + static_cast<std::ptrdiff_t>(first), keys_.end());
      return many.insert(name).second;
    }
    const bool fresh =
        std::find(keys_.begin() + static_cast<std::ptrdiff_t>(first), keys_.end(), name) ==
        keys_.end();
    if (fresh) keys_.push_back(name);
    return fresh;
  }

  std::string_view text_;
  std::vector<std::string>* found_;
  std::size_t at_ = 0;
  std::vector<Step> steps_;
  std::vector<std::string_view> keys_;
  std::deque<std::string> unescaped_;  // keys_ and steps_ point here
};

double as_double(const Value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  return static_cast<double>(value.get_uint64());
}

}  // namespace

const Value& null_value() {
  static const Value kNull;
  return kNull;
}

Result<Value> parse(std::string_view text) { return parse(text, nullptr, {}); }

Result<Value> parse(std::string_view text, std::vector<std::string>* duplicate_keys) {
  return parse(text, duplicate_keys, {});
}

Result<Value> parse(std::string_view text,
                    std::vector<std::string>* duplicate_keys,
                    Storage storage) {
  boost::system::error_code failure;
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::stream_parser parser({}, options);
  parser.reset(std::move(storage));
  const std::size_t used = parser.write_some(text.data(), text.size(), failure);
  if (!failure) parser.finish(failure);
  if (failure) {
    return fail(Code::kBadRequest,
                fmt::format("json parse error at byte {}: {}", used, failure.message()));
  }
  std::size_t rest = used;
  while (rest < text.size() &&
         (text[rest] == ' ' || text[rest] == '\n' || text[rest] == '\r' || text[rest] == '\t'))
    ++rest;
  if (rest != text.size()) {
    return fail(Code::kBadRequest,
                fmt::format("json parse error at byte {}: text after the value", rest));
  }
  if (duplicate_keys != nullptr) DuplicateKeys(text, duplicate_keys);
  return parser.release();
}

std::string dump(const Value& value) {
  std::string out;
  write(out, value, -1);
  return out;
}

void append(std::string& out, const Value& value) { write(out, value, -1); }

void append_string(std::string& out, std::string_view text) { write_string(out, text); }

void append_key(std::string& out, std::string_view prefix, std::string_view text) {
  if (is_plain(text))
    out.append(1, '"').append(prefix).append(text).append("\":", 2);
  else
    write_string(out, std::string(prefix).append(text)), out += ':';
}

std::string dump_pretty(const Value& value) {
  std::string out;
  write(out, value, 0);
  return out;
}

namespace {

/// Larger objects have an index of their own.
constexpr std::size_t kFewMembers = 18;

template <typename Word>
Word word_at(const char* text) {
  Word word;
  std::memcpy(&word, text, sizeof word);
  return word;
}

/// Compares a name as two words of one size, its first and its last bytes, which overlap in a short
/// one and leave a middle in a long one. Half of what a look-up costs would be calls of memcmp.
template <typename Word>
const Value* find_by_words(const Object& object, std::string_view key) {
  const std::size_t size = key.size(), last = size - sizeof(Word);
  const Word head = word_at<Word>(key.data()), tail = word_at<Word>(key.data() + last);
  for (const auto& member : object) {
    const auto name = member.key();
    if (name.size() != size || word_at<Word>(name.data()) != head ||
        word_at<Word>(name.data() + last) != tail)
      continue;
    if (size <= 2 * sizeof(Word) ||
        std::memcmp(
            name.data() + sizeof(Word), key.data() + sizeof(Word), size - 2 * sizeof(Word)) == 0)
      return &member.value();
  }
  return nullptr;
}

const Value* find_among_few(const Object& object, std::string_view key) {
  if (key.size() >= sizeof(std::uint64_t)) return find_by_words<std::uint64_t>(object, key);
  if (key.size() >= sizeof(std::uint32_t)) return find_by_words<std::uint32_t>(object, key);
  return key.size() >= sizeof(std::uint16_t) ? find_by_words<std::uint16_t>(object, key)
                                             : find_by_words<char>(object, key);
}

}  // namespace

const Value& at(const Value& value, std::string_view key) {
  const Object* object = value.if_object();
  if (object == nullptr) return null_value();
  const Value* member = key.empty() || object->size() > kFewMembers ? object->if_contains(key)
                                                                    : find_among_few(*object, key);
  return member == nullptr ? null_value() : *member;
}

Value& make(Value& value, std::initializer_list<std::string_view> path) {
  Value* here = &value;
  for (const std::string_view key : path) {
    if (!here->is_object()) here->emplace_object();
    here = &here->get_object()[key];
  }
  return *here;
}

Object& make_object(Value& value, std::initializer_list<std::string_view> path) {
  Value& here = make(value, path);
  if (!here.is_object()) here.emplace_object();
  return here.get_object();
}

void remove(Value& value, std::initializer_list<std::string_view> path) {
  Value* here = &value;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::string_view key = path.begin()[i];
    Object* object = here->if_object();
    if (object == nullptr) return;
    const auto found = object->find(key);
    if (found == object->end()) return;
    if (i + 1 == path.size()) {
      object->stable_erase(found);
      return;
    }
    here = &found->value();
  }
}

std::string_view as_string(const Value& value, std::string_view otherwise) {
  if (const String* string = value.if_string()) return {string->data(), string->size()};
  return otherwise;
}

std::int64_t as_int(const Value& value, std::int64_t otherwise) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return static_cast<std::int64_t>(value.get_uint64());
  if (value.is_double()) return static_cast<std::int64_t>(value.get_double());
  return otherwise;
}

bool as_bool(const Value& value, bool otherwise) {
  return value.is_bool() ? value.get_bool() : otherwise;
}

const Object& as_object(const Value& value) {
  static const Object kEmpty;
  return value.is_object() ? value.get_object() : kEmpty;
}

const Array& as_array(const Value& value) {
  static const Array kEmpty;
  return value.is_array() ? value.get_array() : kEmpty;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_int64() && b.is_int64()) return a.get_int64() == b.get_int64();
    return as_double(a) == as_double(b);
  }
  if (a.kind() != b.kind()) return false;
  if (a.is_object()) {
    const Object& left = a.get_object();
    const Object& right = b.get_object();
    if (left.size() != right.size()) return false;
    // Two states of one object have their members in the same order nearly always.
    auto beside = right.begin();
    for (const auto& member : left) {
      const Value* other =
          beside->key() == member.key() ? &beside->value() : right.if_contains(member.key());
      if (other == nullptr || !equal(member.value(), *other)) return false;
      ++beside;
    }
    return true;
  }
  if (a.is_array()) {
    const Array& left = a.get_array();
    const Array& right = b.get_array();
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!equal(left[i], right[i])) return false;
    }
    return true;
  }
  return a == b;
}

bool is_empty(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return true;
    case boost::json::kind::bool_:
      return !value.get_bool();
    case boost::json::kind::int64:
      return value.get_int64() == 0;
    case boost::json::kind::uint64:
      return value.get_uint64() == 0;
    case boost::json::kind::double_:
      return value.get_double() == 0;
    case boost::json::kind::string:
      return value.get_string().empty();
    case boost::json::kind::array:
      return value.get_array().empty();
    case boost::json::kind::object:
      return value.get_object().empty();
  }
  return false;
}

}  // namespace muster::json
