/// Files of the Container Device Interface: what a vendor says a container needs to use a device
/// (https://tags.cncf.io/container-device-interface/blob/main/SPEC.md). Text in, values out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent::cdi {

struct DeviceNode {
  std::string path;       // in the container
  std::string host_path;  // on this machine
  std::string permissions;
};

struct FileMount {
  std::string host_path;
  std::string container_path;
  bool read_only = true;
};

/// A program that the vendor wants run while the container is made.
struct Hook {
  std::string path;
  std::vector<std::string> args;
};

/// What is done to a container.
struct Edits {
  std::vector<std::string> env;  // "NAME=value"
  std::vector<DeviceNode> nodes;
  std::vector<FileMount> mounts;
  std::vector<Hook> hooks;
  bool more = false;  // something else that is not understood here

  void add(const Edits& other);
};

struct Spec {
  std::string kind;  // "vendor.com/class"
  std::map<std::string, Edits> devices;
  Edits edits;  // with any of them
};

/// JSON or YAML.
Result<Spec> parse(std::string_view text);

/// All files of some folders.
class Registry {
 public:
  /// Later folders go before earlier ones. A device that two files of one folder name is nobody's.
  /// What cannot be read is left out and told in problems(). Blocking.
  static Registry load(const std::vector<std::string>& folders);

  /// For devices of one kind, by name: what is done for all of them together. Absent: one is not named
  /// in any file.
  [[nodiscard]] Result<Edits> edits_of(const std::string& kind,
                                       const std::vector<std::string>& names) const;
  /// Names of the devices of a kind, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& kind) const;
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Place {
    std::size_t spec = 0;
    std::size_t folder = 0;
    bool twice = false;
  };
  std::vector<Spec> specs_;
  std::map<std::string, Place> devices_;  // "kind=name"
  std::vector<std::string> problems_;
};

}  // namespace muster::agent::cdi
