/// The image file of `muster up --images FILE`: what image names mean on this machine, and where
/// images come from. Pure, but for reading it.
///
///   source: containerd                    # as --image-source, which goes before it
///   images:
///   - {name: "muster/host", host: true}   # runs on this machine's own files
///   - name: "registry.example/train:*"    # exact, or a prefix with *
///     root: /srv/roots/train              # a directory that is the container's root
///     entrypoint: [/usr/bin/python3]
///     env: {LANG: C.UTF-8}
///     workingDir: /workspace
///   host:                                 # of containers on this machine's files
///     show: [/root/.pyenv, "/data:rw"]    # visible though hidden or apart; :rw for writable
///     hide: [/srv/keys]                   # more than what is hidden anyway
///     env: {OMPI_ALLOW_RUN_AS_ROOT: "1"}  # instead of the usual
///   registries:
///   - {name: registry.example, endpoint: "http://127.0.0.1:5000", username: u, password: p}
///   collection: {above: 85, until: 80, age: 2m}   # percent of the disk; how young images are kept
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::agent {

/// What a container is started from.
struct Image {
  /// Directories that are its root, uppermost first; none: the machine's own files.
  std::vector<std::string> layers;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;
  std::string user;     // of an image that was pulled: who runs it unless the pod says so
  bool pulled = false;  // from a registry or an archive
  std::string name;     // of an image that was pulled: in full
  std::string id;       // and its digest in that repository

  [[nodiscard]] bool of_host() const { return layers.empty() && !pulled; }
};

struct Registry {
  std::string name;      // as images name it
  std::string endpoint;  // where it is really asked; empty: there
  std::string username;
  std::string password;
};

/// When images that nobody uses are removed.
struct Collection {
  int above_percent = 85;  // of the file system that holds them
  int until_percent = 80;
  Duration age = std::chrono::minutes(2);  // younger ones stay
};

/// Containers on this machine's own files.
struct HostFiles {
  std::vector<std::string> show;  // "/path" or "/path:rw"
  std::vector<std::string> hide;
  std::vector<std::pair<std::string, std::string>> env;
};

class ImageFile {
 public:
  /// An empty path: what holds without a file.
  static Result<ImageFile> load(const std::string& path);
  static Result<ImageFile> parse(const std::string& text);

  /// What the file, or this program itself, says of the name; absent: nothing. `pulls`: other images
  /// are pulled.
  [[nodiscard]] std::optional<Image> find(const std::string& name, bool pulls) const;

  std::string source;
  HostFiles host;
  std::vector<Registry> registries;
  Collection collection;

 private:
  std::vector<std::pair<std::string, Image>> by_name_;
};

}  // namespace muster::agent
