#include "agent/image/image_store.h"

#include "agent/image/containerd.h"

namespace muster::agent::image {
namespace {

using std::chrono::seconds;
constexpr Duration kQuick = seconds(10);
constexpr Duration kPullMax = std::chrono::hours(6);
constexpr const char* kSnapshots = "/containerd.services.snapshots.v1.Snapshots/";

std::string view_key(const std::string& chain_id) {
  return "muster-" + (chain_id.empty() ? std::string("empty") : chain_id);
}

}  // namespace

ImageStore::ImageStore(net::Loop& loop, const std::string& socket)
    : client_(net::make_grpc_client(loop, socket)) {}

Task<Result<std::string>> ImageStore::call(const char* method,
                                           std::string message,
                                           Duration timeout) {
  net::GrpcCall call;
  call.method = method;
  call.message = std::move(message);
  call.timeout = timeout;
  call.metadata = {{"containerd-namespace", kContainerdNamespace}};
  auto answer = co_await client_->call(std::move(call));
  co_return answer;
}

Task<Result<std::string>> ImageStore::version() {
  const auto answer = co_await call("/runtime.v1.RuntimeService/Version", "", kQuick);
  if (!answer) co_return fail(answer.error());
  co_return read_version(*answer);
}

Task<Result<std::optional<StoredImage>>> ImageStore::find(std::string name) {
  const auto answer = co_await call(
      "/runtime.v1.ImageService/ImageStatus", image_status_request(name, false), kQuick);
  if (!answer) co_return fail(answer.error());
  auto status = read_image_status(*answer);
  if (!status) co_return fail(status.error());
  std::optional<StoredImage> out;
  if (status->found) out = std::move(status->image);
  co_return out;
}

const LoadedImage* ImageStore::loaded(const std::string& id) const {
  const auto found = loaded_.find(id);
  return found == loaded_.end() ? nullptr : &found->second;
}

Task<Result<LoadedImage>> ImageStore::load(StoredImage image) {
  if (const auto* known = loaded(image.id); known != nullptr) {
    auto out = *known;
    out.stored = std::move(image);  // it may have got another name
    co_return out;
  }
  const auto answer = co_await call(
      "/runtime.v1.ImageService/ImageStatus", image_status_request(image.id, true), kQuick);
  if (!answer) co_return fail(answer.error());
  const auto status = read_image_status(*answer);
  if (!status) co_return fail(status.error());
  const auto info = status->info.find("info");
  if (!status->found || info == status->info.end())
    co_return fail(Code::kNotFound, "containerd does not describe the image \"" + image.id + "\"");
  auto config = parse_image_info(info->second);
  if (!config) co_return fail(config.error());
  auto layers = co_await view(config->chain_id);
  if (!layers) co_return fail(layers.error());
  LoadedImage out{std::move(image), std::move(*config), std::move(*layers)};
  loaded_[out.stored.id] = out;
  co_return out;
}

Task<Result<std::vector<std::string>>> ImageStore::view(std::string chain_id) {
  const auto key = view_key(chain_id);
  static const std::string kView = std::string(kSnapshots) + "View";
  static const std::string kMounts = std::string(kSnapshots) + "Mounts";
  auto answer = co_await call(kView.c_str(), view_request(key, chain_id), kQuick);
  if (!answer && answer.error().code == Code::kAlreadyExists)
    answer = co_await call(kMounts.c_str(), mounts_request(key), kQuick);
  if (!answer) co_return fail(answer.error());
  const auto mounts = read_mounts(*answer);
  if (!mounts) co_return fail(mounts.error());
  co_return layers_of(*mounts);
}

Task<Result<void>> ImageStore::pull(std::string name, Login login) {
  const auto answer = co_await call(
      "/runtime.v1.ImageService/PullImage", pull_image_request(name, login), kPullMax);
  if (!answer) co_return fail(answer.error());
  const auto pulled = read_pulled(*answer);
  if (!pulled) co_return fail(pulled.error());
  co_return Result<void>();
}

Task<Result<std::vector<StoredImage>>> ImageStore::list() {
  const auto answer =
      co_await call("/runtime.v1.ImageService/ListImages", list_images_request(), kQuick);
  if (!answer) co_return fail(answer.error());
  co_return read_image_list(*answer);
}

Task<Result<void>> ImageStore::remove(StoredImage image) {
  // Its chain is known only while it is there; it may be one of an earlier muster.
  const auto whole = co_await load(image);
  const auto removed = co_await call(
      "/runtime.v1.ImageService/RemoveImage", remove_image_request(image.id), seconds(60));
  if (!removed) co_return fail(removed.error());
  loaded_.erase(image.id);
  if (!whole) co_return Result<void>();
  for (const auto& [id, other] : loaded_) {  // two images may be the same files
    if (other.config.chain_id == whole->config.chain_id) co_return Result<void>();
  }
  static const std::string kRemove = std::string(kSnapshots) + "Remove";
  const auto dropped = co_await call(
      kRemove.c_str(), remove_snapshot_request(view_key(whole->config.chain_id)), seconds(60));
  if (!dropped && dropped.error().code != Code::kNotFound) co_return fail(dropped.error());
  co_return Result<void>();
}

Task<Result<std::string>> ImageStore::filesystem() {
  const auto answer = co_await call("/runtime.v1.ImageService/ImageFsInfo", "", kQuick);
  if (!answer) co_return fail(answer.error());
  co_return read_image_filesystem(*answer);
}

Task<Result<std::vector<Download>>> ImageStore::downloads() {
  const auto answer =
      co_await call("/containerd.services.content.v1.Content/ListStatuses", "", kQuick);
  if (!answer) co_return fail(answer.error());
  co_return read_downloads(*answer);
}

}  // namespace muster::agent::image
