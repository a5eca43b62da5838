/// What an image name means on a machine that pulls none.
///
/// An image that is not in the file runs on the machine's own file system. The file (YAML) maps
/// names, or prefixes that end in `*`, to a directory that becomes the container's root:
///
///   images:
///   - name: "registry.example/train:*"
///     root: /srv/roots/train
///     entrypoint: [/usr/bin/python3]
///     env: {LANG: C.UTF-8}
///     workingDir: /workspace
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::agent {

struct Image {
  std::string root;  // empty: the machine's file system
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;
};

class Images {
 public:
  static Result<Images> load(const std::string& path);
  [[nodiscard]] Image find(const std::string& name) const;

 private:
  std::vector<std::pair<std::string, Image>> by_name_;
};

}  // namespace muster::agent
