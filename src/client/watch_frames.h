/// A watch stream cut into its events: lines of JSON, or frames of protobuf with their length in
/// front.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client/client.h"

namespace muster::client {

struct WatchFormat {
  std::string what;            // names the watch in errors
  bool managed_fields = true;  // false leaves metadata.managedFields out
};

class WatchLines {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole line without its end; valid until the next call. Each byte is looked at once.
  std::optional<std::string_view> next();
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - start_; }
  static Result<WatchEvent> parse(std::string_view line, const WatchFormat& format);

 private:
  std::string buffer_;
  std::size_t start_ = 0;
  std::size_t searched_ = 0;
};

class WatchFrames {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame without its length; valid until the next call.
  std::optional<std::string_view> next();
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - start_; }
  static Result<WatchEvent> parse(std::string_view frame, const WatchFormat& format);

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

}  // namespace muster::client
