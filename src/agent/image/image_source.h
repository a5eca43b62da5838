/// Where images come from: a containerd, what is pulled into it, imported from archives and removed
/// from it when the disk is full. Made by the agent unless all pods run on this machine's files. On
/// the loop.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/image/containerd.h"
#include "agent/image/image_file.h"
#include "agent/image/image_store.h"
#include "agent/image/pulls.h"
#include "json/json.h"
#include "net/loop/loop.h"

namespace muster::agent::image {

struct SourceOptions {
  /// "containerd": one of our own; "unix:///path": one that runs already, whose images are not
  /// collected.
  std::string source;
  std::string directory;  // of our own containerd, and of what we remember
  std::string archives;   // *.tar in it are imported at start
  PodSupport pods;        // of our own containerd
  int parallel_pulls_max = 3;
  std::vector<Registry> registries;
  Collection collection;
  /// Names and ids of images that containers use.
  std::function<std::set<std::string>()> in_use;
  std::function<void()> on_change;  // the list of images is another
};

/// Fails with what was wanted, unless it is none, containerd or a socket.
Result<void> check_source(const std::string& source);

class ImageSource final : public Source {
 public:
  ImageSource(net::Loop& loop, SourceOptions options);

  /// Returns once it is certain that images can be had; what takes longer goes on beside.
  Task<Result<void>> start();
  /// `clean`: our own containerd ends with us.
  Task<void> stop(bool clean);

  /// Archives have been imported.
  Task<void> wait_ready() override;
  Pulls& pulls() override { return pulls_; }
  [[nodiscard]] std::string socket() const;
  /// A containerd that muster started for itself.
  [[nodiscard]] bool own() const { return options_.source == "containerd"; }
  [[nodiscard]] const json::Array& node_images() const override { return node_images_; }

 private:
  Task<void> begin(std::shared_ptr<bool> alive);
  Task<bool> wait_for_answer(std::shared_ptr<bool> alive);
  Task<void> import_archives();
  Task<void> look_again_and_again(std::shared_ptr<bool> alive);
  Task<void> list(std::shared_ptr<bool> alive);
  Task<void> collect(std::shared_ptr<bool> alive);

  net::Loop& loop_;
  SourceOptions options_;
  Containerd containerd_;
  ImageStore store_;
  Pulls pulls_;
  json::Array node_images_;
  bool ready_ = false;
  bool listing_ = false, list_again_ = false;
  std::vector<Signal*> waiting_;
  std::unique_ptr<Signal> wake_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Imports an archive (of docker save, or OCI's layout) by containerd's own tool. Blocking. The
/// names of the images that it held, or what was wrong.
Result<std::string> import_archive(const std::string& socket, const std::string& path);

/// Which images to remove when the disk is `used_percent` full: those that nobody uses and that are
/// old enough, the longest unused first. Pure.
struct Candidate {
  StoredImage image;
  Time last_used;
};
std::vector<StoredImage> unused_images(std::vector<Candidate> images,
                                       const std::set<std::string>& in_use,
                                       Time now,
                                       Duration age);
/// As a node's status lists images.
json::Array list_for_node(std::vector<StoredImage> images);

}  // namespace muster::agent::image
