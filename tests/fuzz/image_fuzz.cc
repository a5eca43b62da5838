/// What containerd, registries' names, secrets and images say: messages, configurations, logins,
/// lists of users. The first byte chooses the reader.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/cri/messages.h"
#include "agent/cri/streaming.h"
#include "agent/image/credentials.h"
#include "agent/image/cri_messages.h"
#include "agent/image/image_config.h"
#include "agent/image/image_file.h"
#include "agent/image/reference.h"
#include "agent/process/user_range.h"
#include "agent/process/users.h"
#include "base/strings.h"
#include "json/json.h"

using namespace muster;
using namespace muster::agent;

namespace {

void read_messages(std::string_view bytes) {
  (void)image::read_image_status(bytes);
  (void)image::read_image_list(bytes);
  (void)image::read_pulled(bytes);
  (void)image::read_image_filesystem(bytes);
  (void)image::read_version(bytes);
  (void)image::read_downloads(bytes);
  (void)cri::read_sandboxes(bytes);
  (void)cri::read_namespaces(bytes);
  (void)cri::read_maps_users(bytes, "runc");
  (void)cri::read_sandbox_address(bytes);
  (void)cri::read_containers(bytes);
  (void)cri::read_container_status(bytes);
  (void)cri::read_stats(bytes);
  (void)cri::read_event(bytes);
  if (const auto text = cri::read_text(bytes, "text"); text) {
    (void)cri::parse_stream_url(*text);
    (void)cri::exit_code_of(*text);
  }
  if (const auto mounts = image::read_mounts(bytes); mounts) (void)image::layers_of(*mounts);
}

/// A name that is one is one again when it is written in full.
void read_name(std::string_view text) {
  const auto once = image::parse_reference(text);
  if (!once) return;
  const auto twice = image::parse_reference(once->name());
  if (!twice || twice->name() != once->name()) std::abort();
}

void read_secret(std::string_view text) {
  image::Credentials all;
  (void)all.add_secret(
      json::Object{{"type", "kubernetes.io/dockerconfigjson"},
                   {"data", json::Object{{".dockerconfigjson", base64_encode(text)}}}});
  (void)all.matching(*image::parse_reference("registry.example/team/train:1"));
  (void)image::key_matches(text, "registry.example:5000/team/train");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      read_messages(text);
      break;
    case 1:
      read_name(text);
      break;
    case 2:
      read_secret(text);
      break;
    case 3:
      (void)image::parse_image_info(text);
      break;
    case 4:
      (void)ImageFile::parse(std::string(text));
      break;
    default:
      (void)process::find_user(text, text, text.substr(0, 16));
      (void)process::overlaps(process::kRangesFrom, process::ranges_in(text));
  }
  return 0;
}
