/// Each scenario format has a reader, which says whether a file is its own and runs it. Formats live in
/// their own files and register themselves in formats().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::vectors {

struct Failure {
  std::string step;
  std::string wanted;
  std::string got;
};

/// Every way in which the file failed; empty = passed.
using Failures = std::vector<Failure>;

struct Format {
  std::string name;
  /// Is this file of the format? `path` helps where the content alone does not tell.
  bool (*claims)(const std::string& path, const json::Value& file);
  Failures (*run)(const std::string& path, const json::Value& file);
  /// Printed before the closing line; may be absent.
  void (*summary)() = nullptr;
};

/// Filled by static Registration objects, one in each format's file.
std::vector<Format>& formats();

struct Registration {
  explicit Registration(Format format) { formats().push_back(std::move(format)); }
};

}  // namespace muster::vectors
