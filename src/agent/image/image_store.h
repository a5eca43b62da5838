/// The images of a containerd: asked for, pulled, listed, removed, and their layers as directories.
///
/// Layers come from one view for each image, which is made once and keeps them: a container's start
/// makes no call. On the loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/image/cri_messages.h"
#include "agent/image/image_config.h"
#include "base/task.h"
#include "net/http2/grpc.h"

namespace muster::agent::image {

struct LoadedImage {
  StoredImage stored;
  ImageConfig config;
  std::vector<std::string> layers;  // uppermost first
};

/// What pulls need of it.
class PulledImages {
 public:
  virtual ~PulledImages() = default;
  /// Absent: it is not there.
  virtual Task<Result<std::optional<StoredImage>>> find(std::string name) = 0;
  /// An image that is there, with everything that a container needs of it.
  virtual Task<Result<LoadedImage>> load(StoredImage image) = 0;
  virtual Task<Result<void>> pull(std::string name, Login login) = 0;
  virtual Task<Result<std::vector<Download>>> downloads() = 0;
};

class ImageStore final : public PulledImages {
 public:
  ImageStore(net::Loop& loop, const std::string& socket);

  Task<Result<std::string>> version();
  Task<Result<std::optional<StoredImage>>> find(std::string name) override;
  Task<Result<LoadedImage>> load(StoredImage image) override;
  /// What is known of it without asking; null: nothing.
  [[nodiscard]] const LoadedImage* loaded(const std::string& id) const;
  Task<Result<void>> pull(std::string name, Login login) override;
  Task<Result<std::vector<StoredImage>>> list();
  /// With all its names, and our view of it. Containers that run keep what they have.
  Task<Result<void>> remove(StoredImage image);
  /// The folder that holds images.
  Task<Result<std::string>> filesystem();
  Task<Result<std::vector<Download>>> downloads() override;

 private:
  Task<Result<std::string>> call(const char* method, std::string message, Duration timeout);
  Task<Result<std::vector<std::string>>> view(std::string chain_id);

  std::unique_ptr<net::GrpcClient> client_;
  std::map<std::string, LoadedImage> loaded_;  // by id
};

}  // namespace muster::agent::image
