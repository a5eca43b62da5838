#include "apiserver/rest/go_json.h"

#include <fmt/core.h>

#include <cctype>

namespace muster::apiserver {
namespace {

constexpr std::string_view kEnd = "unexpected end of JSON input";
constexpr int kDepthMax = 10'000;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string run() {
    value(0);
    if (!error_.empty()) return error_;
    space();
    if (at_ < text_.size()) bad("after top-level value");
    return error_;
  }

 private:
  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  void bad(std::string_view context) {
    if (!error_.empty()) return;
    if (at_ >= text_.size()) {
      error_ = kEnd;
      return;
    }
    const char c = text_[at_];
    const auto byte = static_cast<unsigned char>(c);
    std::string shown = fmt::format("'{}'", c);
    if (c == '\'') shown = "'\\''";
    if (c == '"') shown = "'\"'";
    if (c == '\n') shown = "'\\n'";
    if (c == '\t') shown = "'\\t'";
    if (c == '\0' || (byte < 0x20 && c != '\n' && c != '\t'))
      shown = fmt::format("'\\x{:02x}'", byte);
    if ((byte >= 0x80 && byte < 0xA0) || byte == 0xAD) {
      shown = fmt::format("'\\u{:04x}'", byte);
    } else if (byte >= 0x80) {
      // Go shows the byte as the Latin-1 character of that number.
      shown = fmt::format(
          "'{}{}'", static_cast<char>(0xC0 | (byte >> 6)), static_cast<char>(0x80 | (byte & 0x3F)));
    }
    error_ = fmt::format("invalid character {} {}", shown, context);
  }
  void value(int depth) {
    space();
    if (at_ >= text_.size()) return bad("looking for beginning of value");
    if (depth > kDepthMax) return bad("exceeded max depth");
    const char c = text_[at_];
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return string();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (c == word[0]) return literal(word);
    }
    bad("looking for beginning of value");
  }
  void literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
      if (at_ >= text_.size() || text_[at_] != word[i]) {
        bad(fmt::format("in literal {} (expecting '{}')", word, word[i]));
        return;
      }
    }
  }
  void digits(std::string_view context) {
    if (at_ >= text_.size() || std::isdigit(static_cast<unsigned char>(text_[at_])) == 0) {
      bad(context);
      return;
    }
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  void number() {
    if (text_[at_] == '-') ++at_;
    if (at_ < text_.size() && text_[at_] == '0') {
      ++at_;
    } else {
      digits("in numeric literal");
    }
    if (error_.empty() && at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      digits("after decimal point in numeric literal");
    }
    if (error_.empty() && at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits("in exponent of numeric literal");
    }
  }
  void string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return bad("in string literal");
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ >= text_.size() ||
            std::string_view("\"\\/bfnrtu").find(text_[at_]) == std::string_view::npos)
          return bad("in string escape code");
        if (text_[at_] == 'u') {
          for (int i = 0; i < 4; ++i) {
            ++at_;
            if (at_ >= text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0)
              return bad("in \\u hexadecimal character escape");
          }
        }
      }
      ++at_;
    }
    if (at_ >= text_.size()) return bad("");
    ++at_;
  }
  void object(int depth) {
    ++at_;
    space();
    if (at_ < text_.size() && text_[at_] == '}') {
      ++at_;
      return;
    }
    while (error_.empty()) {
      space();
      if (at_ >= text_.size() || text_[at_] != '"')
        return bad("looking for beginning of object key string");
      string();
      if (!error_.empty()) return;
      space();
      if (at_ >= text_.size() || text_[at_] != ':') return bad("after object key");
      ++at_;
      value(depth + 1);
      if (!error_.empty()) return;
      space();
      if (at_ < text_.size() && text_[at_] == '}') {
        ++at_;
        return;
      }
      if (at_ >= text_.size() || text_[at_] != ',') return bad("after object key:value pair");
      ++at_;
    }
  }
  void array(int depth) {
    ++at_;
    space();
    if (at_ < text_.size() && text_[at_] == ']') {
      ++at_;
      return;
    }
    while (error_.empty()) {
      value(depth + 1);
      if (!error_.empty()) return;
      space();
      if (at_ < text_.size() && text_[at_] == ']') {
        ++at_;
        return;
      }
      if (at_ >= text_.size() || text_[at_] != ',') return bad("after array element");
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace

std::string go_json_error(std::string_view text) { return Scanner(text).run(); }

}  // namespace muster::apiserver
