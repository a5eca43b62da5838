#include "json/pick.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <cstring>
#include <set>

namespace muster::json {
namespace {

/// Deeper than any object of Kubernetes is asked for; a bound on the recursion.
constexpr int kDepthMax = 16;

class PickParser {
 public:
  explicit PickParser(std::string_view text) : text_(text) {}

  Result<Picks> all() {
    auto picks = list(0);
    if (picks && at_ < text_.size())
      return fail(Code::kBadRequest,
                  fmt::format("fields: \")\" without \"(\" at position {}", at_));
    return picks;
  }

 private:
  Result<Picks> list(int depth) {
    if (depth > kDepthMax)
      return fail(Code::kBadRequest, fmt::format("fields: more than {} levels", kDepthMax));
    Picks picks;
    std::set<std::string_view> names;  // of this level: an object has each member once
    for (;;) {
      const std::size_t end = std::min(text_.find_first_of("(),", at_), text_.size());
      if (end == at_)
        return fail(Code::kBadRequest,
                    fmt::format("fields: a name is missing at position {}", at_));
      const std::string_view name = text_.substr(at_, end - at_);
      if (!names.insert(name).second)
        return fail(Code::kBadRequest, fmt::format("fields: \"{}\" is named twice", name));
      Pick& pick = picks.emplace_back(Pick{.name = std::string(name)});
      at_ = end;
      if (here() == '(') {
        ++at_;
        auto children = list(depth + 1);
        if (!children) return children;
        if (here() != ')') return fail(Code::kBadRequest, "fields: \"(\" without \")\"");
        ++at_;
        pick.children = std::move(*children);
      }
      if (here() != ',') return picks;
      ++at_;
    }
  }
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  std::size_t at_ = 0;
};

const Pick* find_pick(const Picks& picks, std::string_view name) {
  const Pick* star = nullptr;
  for (const Pick& each : picks) {
    if (each.name == name) return &each;
    if (each.name == "*") star = &each;
  }
  return star;
}

/// Names and most values in objects of Kubernetes need no escaping.
void append_text(std::string_view name, std::string& out) {
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
  });
  if (plain) {
    out.append("\"").append(name).append("\"");
  } else {
    out += dump(Value(name));
  }
}

void append_value(const Value& value, std::string& out) {
  if (value.is_string()) return append_text(value.get_string(), out);
  out += dump(value);
}

void append_member(
    bool& first, std::string_view name, const Value& value, const Picks& picks, std::string& out) {
  if (!first) out += ',';
  first = false;
  append_text(name, out);
  out += ':';
  append_picked(value, picks, out);
}

/// Skipping runs at the speed of memchr, parsing builds a tree.
class Cutter {
 public:
  Cutter(std::string_view text, std::string& out) : text_(text), out_(out) {}

  void value(const Picks& picks) {
    blanks();
    if (picks.empty()) {
      const std::size_t first = at_;
      skip();
      out_.append(text_.substr(first, at_ - first));
    } else if (here() == '{') {
      object(picks);
    } else if (here() == '[') {
      array(picks);
    } else {
      value({});
    }
  }

 private:
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void step() { at_ += at_ < text_.size() ? 1 : 0; }
  void blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  /// From the opening quote to behind the closing one; the text between, escapes as they are.
  std::string_view string() {
    step();
    const std::size_t first = at_;
    for (;;) {
      const void* quote =
          at_ < text_.size() ? std::memchr(text_.data() + at_, '"', text_.size() - at_) : nullptr;
      if (quote == nullptr) {
        at_ = text_.size();
        return text_.substr(first);
      }
      const std::size_t end =
          static_cast<std::size_t>(static_cast<const char*>(quote) - text_.data());
      std::size_t slashes = 0;
      while (end - slashes > first && text_[end - slashes - 1] == '\\') ++slashes;
      at_ = end + 1;
      if (slashes % 2 == 0) return text_.substr(first, end - first);
    }
  }

  void skip() {
    int depth = 0;
    do {
      switch (here()) {
        case '\0':
          return;
        case '"':
          string();
          break;
        case '{':
        case '[':
          ++depth;
          ++at_;
          break;
        case '}':
        case ']':
          if (depth == 0) return;
          --depth;
          ++at_;
          break;
        case ',':
          if (depth == 0) return;
          ++at_;
          break;
        default:
          ++at_;
      }
    } while (depth > 0 || (here() != ',' && here() != '}' && here() != ']' && at_ < text_.size()));
  }

  void object(const Picks& picks) {
    out_ += '{';
    ++at_;
    bool first = true;
    for (blanks(); here() == '"'; blanks()) {
      const std::string_view key = string();
      const Pick* found = find_pick(picks, key);
      blanks();
      step();  // ':'
      if (found == nullptr) {
        blanks();
        skip();
      } else {
        if (!first) out_ += ',';
        first = false;
        out_.append("\"").append(key).append("\":");
        value(found->children);
      }
      blanks();
      if (here() == ',') ++at_;
    }
    step();  // '}'
    out_ += '}';
  }

  void array(const Picks& picks) {
    out_ += '[';
    ++at_;
    bool first = true;
    for (blanks(); here() != ']' && here() != '\0'; blanks()) {
      if (!first) out_ += ',';
      first = false;
      const std::size_t before = at_;
      value(picks);
      if (at_ == before) return;  // not JSON
      blanks();
      if (here() == ',') ++at_;
    }
    step();  // ']'
    out_ += ']';
  }

  std::string_view text_;
  std::string& out_;
  std::size_t at_ = 0;
};

}  // namespace

struct Block::Memory {
  boost::json::monotonic_resource resource{64 * 1024};
};

Block::Block() : memory_(std::make_unique<Memory>()) {}
Block::~Block() = default;

Result<Value> Block::parse(std::string_view text) {
  boost::system::error_code failure;
  boost::json::parse_options options;
  options.max_depth = 200;
  boost::json::value value = boost::json::parse(text, failure, &memory_->resource, options);
  if (failure)
    return fail(Code::kBadRequest, fmt::format("json parse error: {}", failure.message()));
  return value;
}

Result<Picks> parse_picks(std::string_view text) { return PickParser(text).all(); }

std::string picks_text(const Picks& picks) {
  std::string text;
  for (const Pick& pick : picks) {
    if (!text.empty()) text += ',';
    text += pick.name;
    if (!pick.children.empty()) text += "(" + picks_text(pick.children) + ")";
  }
  return text;
}

void append_picked(const Value& value, const Picks& picks, std::string& out) {
  if (picks.empty()) return append_value(value, out);
  bool first = true;
  if (const Object* object = value.if_object()) {
    out += '{';
    const bool star =
        std::any_of(picks.begin(), picks.end(), [](const Pick& pick) { return pick.name == "*"; });
    if (star) {
      for (const auto& member : *object)
        append_member(
            first, member.key(), member.value(), find_pick(picks, member.key())->children, out);
    } else {
      for (const Pick& pick : picks) {
        if (const Value* member = object->if_contains(pick.name))
          append_member(first, pick.name, *member, pick.children, out);
      }
    }
    out += '}';
  } else if (const Array* array = value.if_array()) {
    out += '[';
    for (const Value& item : *array) {
      if (!first) out += ',';
      first = false;
      append_picked(item, picks, out);
    }
    out += ']';
  } else {
    append_value(value, out);
  }
}

std::string pick_from_text(std::string_view text, const Picks& picks) {
  std::string out;
  out.reserve(text.size() / 4);
  Cutter(text, out).value(picks);
  return out;
}

}  // namespace muster::json
