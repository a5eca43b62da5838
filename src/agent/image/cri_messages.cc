#include "agent/image/cri_messages.h"

#include <fmt/core.h>

#include "agent/image/protobuf.h"
#include "base/strings.h"

namespace muster::agent::image {
namespace {

constexpr auto kSnapshotter = "overlayfs";

tl::unexpected<Error> broken(const char* what) {
  return fail(Code::kInternal, fmt::format("the answer of containerd is not a {}", what));
}

MessageWriter image_spec(std::string_view image) {
  MessageWriter out;
  out.text(1, image);
  return out;
}

bool read_entry(std::string_view bytes, std::map<std::string, std::string>& out) {
  std::string key, value;
  const bool whole = read_message(bytes, [&](const MessageField& field) {
    if (field.number == 1) key = std::string(field.bytes);
    if (field.number == 2) value = std::string(field.bytes);
  });
  if (whole) out[key] = std::move(value);
  return whole;
}

bool read_image(std::string_view bytes, StoredImage& out) {
  return read_message(bytes, [&](const MessageField& field) {
    if (field.number == 1) out.id = std::string(field.bytes);
    if (field.number == 2) out.repo_tags.emplace_back(field.bytes);
    if (field.number == 3) out.repo_digests.emplace_back(field.bytes);
    if (field.number == 4) out.size_bytes = field.value;
    if (field.number == 8) out.pinned = field.value != 0;
  });
}

}  // namespace

std::string image_status_request(std::string_view image, bool verbose) {
  MessageWriter out;
  return out.message(1, image_spec(image)).number(2, verbose ? 1 : 0).bytes();
}

Result<ImageStatus> read_image_status(std::string_view message) {
  ImageStatus out;
  bool whole = true;
  whole = read_message(message,
                       [&](const MessageField& field) {
                         if (!field.is_bytes) return;
                         if (field.number == 1) {
                           out.found = true;
                           whole = read_image(field.bytes, out.image) && whole;
                         }
                         if (field.number == 2) whole = read_entry(field.bytes, out.info) && whole;
                       }) &&
          whole;
  if (!whole) return broken("ImageStatusResponse");
  return out;
}

std::string list_images_request() { return {}; }

Result<std::vector<StoredImage>> read_image_list(std::string_view message) {
  std::vector<StoredImage> out;
  bool parts = true;
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number == 1 && field.is_bytes)
      parts = read_image(field.bytes, out.emplace_back()) && parts;
  });
  if (!whole || !parts) return broken("ListImagesResponse");
  return out;
}

std::string pull_image_request(std::string_view image, const Login& login) {
  MessageWriter out;
  out.message(1, image_spec(image));
  if (login.empty()) return out.bytes();
  MessageWriter auth;
  auth.text(1, login.username).text(2, login.password).text(5, login.identity_token);
  return out.message(2, auth).bytes();
}

Result<std::string> read_pulled(std::string_view message) {
  std::string out;
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number == 1) out = std::string(field.bytes);
  });
  if (!whole) return broken("PullImageResponse");
  return out;
}

std::string remove_image_request(std::string_view image) {
  MessageWriter out;
  return out.message(1, image_spec(image)).bytes();
}

Result<std::string> read_image_filesystem(std::string_view message) {
  std::string out;
  bool parts = true;
  const auto read_id = [&](const MessageField& field) {
    if (field.number == 1 && out.empty()) out = std::string(field.bytes);
  };
  const auto read_usage = [&](const MessageField& field) {
    if (field.number == 2 && field.is_bytes) parts = read_message(field.bytes, read_id) && parts;
  };
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number == 1 && field.is_bytes) parts = read_message(field.bytes, read_usage) && parts;
  });
  if (!whole || !parts || out.empty()) return broken("ImageFsInfoResponse");
  return out;
}

Result<std::string> read_version(std::string_view message) {
  std::string name, version;
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number == 2) name = std::string(field.bytes);
    if (field.number == 3) version = std::string(field.bytes);
  });
  if (!whole) return broken("VersionResponse");
  return name + " " + version;
}

std::string view_request(std::string_view key, std::string_view parent) {
  MessageWriter out;
  // Without the label the next collection of containerd's own takes the view away.
  out.text(1, kSnapshotter)
      .text(2, key)
      .text(3, parent)
      .entry(4, "containerd.io/gc.root", "muster");
  return out.bytes();
}

std::string mounts_request(std::string_view key) {
  MessageWriter out;
  return out.text(1, kSnapshotter).text(2, key).bytes();
}

std::string remove_snapshot_request(std::string_view key) { return mounts_request(key); }

Result<std::vector<Mounted>> read_mounts(std::string_view message) {
  std::vector<Mounted> out;
  bool parts = true;
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number != 1 || !field.is_bytes) return;
    auto& one = out.emplace_back();
    parts = read_message(field.bytes,
                         [&one](const MessageField& part) {
                           if (part.number == 1) one.type = std::string(part.bytes);
                           if (part.number == 2) one.source = std::string(part.bytes);
                           if (part.number == 4) one.options.emplace_back(part.bytes);
                         }) &&
            parts;
  });
  if (!whole || !parts) return broken("list of mounts");
  return out;
}

Result<std::vector<std::string>> layers_of(const std::vector<Mounted>& mounts) {
  constexpr std::string_view kLower = "lowerdir=";
  if (mounts.size() == 1 && mounts[0].type == "bind" && !mounts[0].source.empty())
    return std::vector<std::string>{mounts[0].source};
  if (mounts.size() == 1 && mounts[0].type == "overlay") {
    for (const auto& option : mounts[0].options) {
      if (option.starts_with(kLower))
        return split_nonempty(std::string_view(option).substr(kLower.size()), ':');
    }
  }
  return fail(Code::kInternal,
              fmt::format("containerd shows the image as {} mounts of type \"{}\"; wanted one of "
                          "type overlay or bind (is its snapshotter overlayfs?)",
                          mounts.size(),
                          mounts.empty() ? "" : mounts[0].type));
}

Result<std::vector<Download>> read_downloads(std::string_view message) {
  std::vector<Download> out;
  bool parts = true;
  const bool whole = read_message(message, [&](const MessageField& field) {
    if (field.number != 1 || !field.is_bytes) return;
    auto& one = out.emplace_back();
    parts = read_message(field.bytes,
                         [&one](const MessageField& part) {
                           if (part.number == 3) one.ref = std::string(part.bytes);
                           if (part.number == 4) one.done_bytes = part.value;
                           if (part.number == 5) one.total_bytes = part.value;
                         }) &&
            parts;
  });
  if (!whole || !parts) return broken("ListContentStatusesResponse");
  return out;
}

}  // namespace muster::agent::image
