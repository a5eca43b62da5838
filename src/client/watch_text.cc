#include "client/watch_text.h"

#include <fmt/core.h>

#include <optional>

#include "kube/meta.h"
#include "kube/names.h"

namespace muster::client {
namespace {

constexpr std::size_t kDepthMax = 200;

/// Steps over JSON text without looking into it. Wrong text gives an offset at the end of it, and
/// the parser says what is wrong.
class Skim {
 public:
  explicit Skim(std::string_view text) : text_(text) {}

  std::size_t at = 0;

  void space() {
    while (at < text_.size() && static_cast<unsigned char>(text_[at]) <= ' ') ++at;
  }
  bool take(char c) {
    space();
    if (at >= text_.size() || text_[at] != c) return false;
    ++at;
    return true;
  }
  /// The string that begins here, without its quotes and as it is written.
  std::string_view string() {
    space();
    const std::size_t first = at + 1;
    skip_string();
    return at > first ? text_.substr(first, at - 1 - first) : std::string_view();
  }
  void value() {
    space();
    if (at >= text_.size()) return;
    if (text_[at] == '"') return skip_string();
    if (text_[at] != '{' && text_[at] != '[') {
      while (at < text_.size() && text_[at] != ',' && text_[at] != '}' && text_[at] != ']') ++at;
      return;
    }
    for (int depth = 0; at < text_.size();) {
      const char c = text_[at];
      if (c == '"') {
        skip_string();
        continue;
      }
      ++at;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return;
    }
  }

 private:
  void skip_string() {
    for (++at; at < text_.size();) {
      const std::size_t end = text_.find('"', at);
      if (end == std::string_view::npos) break;
      std::size_t slashes = 0;
      while (end > slashes && text_[end - 1 - slashes] == '\\') ++slashes;
      at = end + 1;
      if (slashes % 2 == 0) return;
    }
    at = text_.size();
  }

  std::string_view text_;
};

/// Calls each(key, begin of the value) for the members of the object at `skim`; `each` moves behind
/// the value and returns false to stop.
template <typename Each>
void members(Skim& skim, Each each) {
  if (!skim.take('{')) return;
  while (!skim.take('}')) {
    const auto key = skim.string();
    if (!skim.take(':') || !each(key)) return;
    if (!skim.take(',')) return;
  }
}

struct Range {
  std::size_t begin = 0, end = 0;
};

/// Where the object's metadata.managedFields stands, with the comma that goes with it.
std::optional<Range> find_managed_fields(std::string_view text) {
  std::optional<Range> found;
  Skim skim(text);
  members(skim, [&](std::string_view key) {
    if (key != "metadata") {
      skim.value();
      return true;
    }
    std::size_t before = 0;  // the end of the member before
    bool first = true;
    if (!skim.take('{')) return false;
    while (!skim.take('}')) {
      skim.space();
      const std::size_t begin = skim.at;
      const auto name = skim.string();
      if (!skim.take(':')) return false;
      skim.value();
      const std::size_t end = skim.at;
      const bool more = skim.take(',');
      if (name == "managedFields") {
        found = more ? Range{begin, skim.at} : Range{first ? begin : before, end};
        return false;
      }
      if (!more) return false;
      before = end;
      first = false;
    }
    return false;
  });
  return found;
}

Result<ObjectPtr> parse_object(std::string_view text) {
  // Kept for its stack.
  static thread_local boost::json::parser parser = [] {
    boost::json::parse_options options;
    options.max_depth = kDepthMax;
    return boost::json::parser(boost::json::storage_ptr(), options);
  }();
  parser.reset();
  boost::system::error_code error;
  parser.write(text.data(), text.size(), error);
  if (error) return fail(Code::kInternal, error.message());
  return std::make_shared<const json::Value>(parser.release());
}

}  // namespace

Error error_of_status(const json::Value& status, int http_status) {
  Error error;
  error.code = code_of(json::string_at(status, "reason"), http_status);
  error.message = json::text_at(status, "message");
  const auto& details = json::at(status, "details");
  error.subject.name = json::text_at(details, "name");
  error.subject.group = json::text_at(details, "group");
  error.subject.kind = json::text_at(details, "kind");
  error.subject.uid = json::text_at(details, "uid");
  for (const auto& cause : json::array_at(details, "causes")) {
    error.causes.push_back({json::text_at(cause, "reason"),
                            json::text_at(cause, "message"),
                            json::text_at(cause, "field")});
  }
  error.retry_after_s = static_cast<int>(json::int_at(details, "retryAfterSeconds"));
  return error;
}

namespace {

struct Parts {
  std::string_view type, object;
};

/// `trust`: the type comes first and nothing behind the object, as every server writes it; then the
/// object need not be gone over for its end.
Parts parts_of(std::string_view line, bool trust) {
  Parts parts;
  Skim skim(line);
  members(skim, [&](std::string_view key) {
    if (key == "type") {
      parts.type = skim.string();
      return true;
    }
    skim.space();
    const std::size_t begin = skim.at;
    if (key == "object" && trust)
      skim.at = std::max(begin, std::min(line.find_last_of('}'), line.size()));
    else
      skim.value();
    if (key == "object") parts.object = line.substr(begin, skim.at - begin);
    return true;
  });
  return parts;
}

Result<ObjectPtr> object_of(std::string_view text, bool managed_fields) {
  const auto cut = managed_fields ? std::nullopt : find_managed_fields(text);
  if (!cut) return parse_object(text);
  std::string shorter;
  shorter.reserve(text.size() - (cut->end - cut->begin));
  shorter.append(text.substr(0, cut->begin)).append(text.substr(cut->end));
  return parse_object(shorter);
}

}  // namespace

Result<WatchEvent> parse_watch_line(std::string_view line,
                                    std::string_view what,
                                    bool managed_fields) {
  Parts parts = parts_of(line, true);
  auto parsed = object_of(parts.object, managed_fields);
  if (!parsed || parts.type.empty()) {
    parts = parts_of(line, false);
    if (parts.type.empty() || parts.object.empty())
      return fail(Code::kInternal, fmt::format("{}: a line is not a watch event", what));
    parsed = object_of(parts.object, managed_fields);
  }
  if (!parsed)
    return fail(Code::kInternal,
                fmt::format("{}: a line is not JSON: {}", what, parsed.error().message));
  if (parts.type == "ERROR")
    return fail(
        error_of_status(**parsed, static_cast<int>(json::as_int(json::at(**parsed, "code"), 500))));
  return WatchEvent{std::string(parts.type), std::move(*parsed)};
}

bool is_initial_end(const WatchEvent& event) {
  return event.type == "BOOKMARK" &&
         kube::annotation(*event.object, kube::names::kubernetes::kInitialEventsEnd) == "true";
}

}  // namespace muster::client
