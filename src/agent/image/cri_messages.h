/// The messages of CRI's ImageService and of containerd's Snapshots and Content services that
/// images need. Field numbers are those of the published definitions: k8s.io/cri-api
/// pkg/apis/runtime/v1/api.proto and containerd api/services/{snapshots,content}/v1. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent::image {

/// Whom a registry is told we are; all empty: nobody.
struct Login {
  std::string username;
  std::string password;
  std::string identity_token;
  [[nodiscard]] bool empty() const { return username.empty() && identity_token.empty(); }
  auto operator<=>(const Login&) const = default;
};

/// An image as CRI lists it.
struct StoredImage {
  std::string id;                         // digest of its configuration
  std::vector<std::string> repo_tags;     // normalised
  std::vector<std::string> repo_digests;  // likewise
  std::uint64_t size_bytes = 0;
  bool pinned = false;
};

struct ImageStatus {
  bool found = false;
  StoredImage image;
  std::map<std::string, std::string> info;  // asked for verbosely: JSON under "info"
};

struct Mounted {
  std::string type;
  std::string source;
  std::vector<std::string> options;
};

struct Download {
  std::string ref;
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
};

std::string image_status_request(std::string_view image, bool verbose);
Result<ImageStatus> read_image_status(std::string_view message);

std::string list_images_request();
Result<std::vector<StoredImage>> read_image_list(std::string_view message);

std::string pull_image_request(std::string_view image, const Login& login);
/// The image's id, or a digest.
Result<std::string> read_pulled(std::string_view message);

std::string remove_image_request(std::string_view image);

/// Where images lie; the first file system that is named.
Result<std::string> read_image_filesystem(std::string_view message);

/// "containerd 1.6.20".
Result<std::string> read_version(std::string_view message);

std::string view_request(std::string_view key, std::string_view parent);
std::string mounts_request(std::string_view key);
std::string remove_snapshot_request(std::string_view key);
Result<std::vector<Mounted>> read_mounts(std::string_view message);
/// The directories that such mounts show, uppermost first: an overlay's lower ones, or the one that
/// is bound.
Result<std::vector<std::string>> layers_of(const std::vector<Mounted>& mounts);

Result<std::vector<Download>> read_downloads(std::string_view message);

}  // namespace muster::agent::image
