#include "client/watch_frames.h"

#include <fmt/core.h>

#include "client/watch_text.h"
#include "kube/schema/protobuf.h"
#include "kube/schema/protobuf_cursor.h"

namespace muster::client {
namespace {

constexpr std::size_t kLengthBytes = 4;

/// The two members of WatchEvent: {1: type, 2: {1: the object in its envelope}}.
struct Parts {
  std::string_view type, object;
};

/// The last value of field `number` of a message of byte fields.
bool read_field(std::string_view message, std::uint32_t number, std::string_view& out) {
  for (kube::ProtobufCursor in(message); !in.at_end();) {
    std::uint32_t tag = 0;
    if (!in.tag(tag)) return false;
    if (tag == (number << 3 | 2) ? !in.bytes(out) : !in.skip(tag)) return false;
  }
  return true;
}

bool read_parts(std::string_view frame, Parts& out) {
  std::string_view extension;
  return read_field(frame, 1, out.type) && read_field(frame, 2, extension) &&
         read_field(extension, 1, out.object);
}

}  // namespace

std::optional<std::string_view> WatchLines::next() {
  const auto end = buffer_.find('\n', searched_);
  if (end == std::string::npos) {
    buffer_.erase(0, start_);
    start_ = 0;
    searched_ = buffer_.size();
    return std::nullopt;
  }
  const auto line = std::string_view(buffer_).substr(start_, end - start_);
  start_ = searched_ = end + 1;
  return line;
}

Result<WatchEvent> WatchLines::parse(std::string_view line, const WatchFormat& format) {
  return parse_watch_line(line, format.what, format.managed_fields);
}

std::optional<std::string_view> WatchFrames::next() {
  const auto rest = std::string_view(buffer_).substr(start_);
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes && i < rest.size(); ++i)
    length = length << 8 | static_cast<unsigned char>(rest[i]);
  if (rest.size() < kLengthBytes || rest.size() - kLengthBytes < length) {
    buffer_.erase(0, start_);
    start_ = 0;
    return std::nullopt;
  }
  start_ += kLengthBytes + length;
  return rest.substr(kLengthBytes, length);
}

Result<WatchEvent> WatchFrames::parse(std::string_view frame, const WatchFormat& format) {
  Parts parts;
  if (!read_parts(frame, parts) || parts.type.empty())
    return fail(Code::kInternal, fmt::format("{}: a frame is not a watch event", format.what));
  auto object = kube::decode_protobuf(
      kube::Schema::builtin(),
      parts.object,
      format.managed_fields ? kube::ManagedFields::kKeep : kube::ManagedFields::kLeaveOut);
  if (!object)
    return fail(Code::kInternal, fmt::format("{}: {}", format.what, object.error().message));
  if (parts.type == "ERROR")
    return fail(
        error_of_status(*object, static_cast<int>(json::as_int(json::at(*object, "code"), 500))));
  return WatchEvent{std::string(parts.type),
                    std::make_shared<const json::Value>(std::move(*object))};
}

}  // namespace muster::client
