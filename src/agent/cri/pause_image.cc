#include "agent/cri/pause_image.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <map>

#include "base/strings.h"
#include "json/json.h"
#include "net/tls/tls.h"

// MUSTER_PAUSE is the program that the build made of pause.c.
asm(".pushsection .rodata.muster_pause,\"a\",@progbits\n"
    ".globl muster_pause\nmuster_pause:\n"
    ".incbin \"" MUSTER_PAUSE
    "\"\n"
    ".globl muster_pause_end\nmuster_pause_end:\n"
    ".byte 0\n.popsection\n");
extern "C" const char muster_pause[];
extern "C" const char muster_pause_end[];

namespace muster::agent::cri {
namespace {

constexpr std::size_t kBlock = 512;
#if defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

std::string digest(std::string_view bytes) { return "sha256:" + hex(net::sha256(bytes)); }

std::string closed(std::string tar) { return std::move(tar) + std::string(2 * kBlock, '\0'); }

json::Object descriptor(const char* type, const std::string& blob) {
  return json::Object{{"mediaType", fmt::format("application/vnd.oci.image.{}", type)},
                      {"digest", digest(blob)},
                      {"size", static_cast<std::int64_t>(blob.size())}};
}

}  // namespace

std::string tar_entry(std::string_view name, std::string_view content, int mode) {
  std::array<char, kBlock> head{};
  const auto put = [&head](std::size_t at, const std::string& text) {
    std::memcpy(head.data() + at, text.data(), text.size());
  };
  put(0, std::string(name.substr(0, 99)));
  put(100, fmt::format("{:07o}", mode));
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const auto byte : head) sum += static_cast<unsigned char>(byte);
  put(148, fmt::format("{:06o}", sum));
  head[154] = '\0';
  std::string out(head.data(), head.size());
  out += content;
  out.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  return out;
}

std::string pause_archive() {
  const std::string_view program(muster_pause,
                                 static_cast<std::size_t>(muster_pause_end - muster_pause));
  const auto layer = closed(tar_entry("pause", program, 0755));
  const auto config = json::dump(json::Object{
      {"architecture", kArchitecture},
      {"os", "linux"},
      {"config", json::Object{{"Entrypoint", json::Array{"/pause"}}}},
      {"rootfs", json::Object{{"type", "layers"}, {"diff_ids", json::Array{digest(layer)}}}}});
  const auto manifest =
      json::dump(json::Object{{"schemaVersion", 2},
                              {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                              {"config", descriptor("config.v1+json", config)},
                              {"layers", json::Array{descriptor("layer.v1.tar", layer)}}});
  auto listed = descriptor("manifest.v1+json", manifest);
  listed["annotations"] = json::Object{{"io.containerd.image.name", kPauseImage},
                                       {"org.opencontainers.image.ref.name", kPauseImage}};
  const auto index = json::dump(
      json::Object{{"schemaVersion", 2}, {"manifests", json::Array{json::Value(listed)}}});
  std::string out = tar_entry("oci-layout", R"({"imageLayoutVersion": "1.0.0"})", 0644);
  out += tar_entry("index.json", index, 0644);
  for (const auto& blob : {layer, config, manifest})
    out += tar_entry("blobs/sha256/" + hex(net::sha256(blob)), blob, 0644);
  return closed(std::move(out));
}

}  // namespace muster::agent::cri
