#include "agent/image/image_config.h"

#include "json/json.h"

namespace muster::agent::image {
namespace {

std::vector<std::string> words(const json::Value& list) {
  std::vector<std::string> out;
  for (const auto& item : json::as_array(list)) out.push_back(json::text(item));
  return out;
}

}  // namespace

Result<ImageConfig> parse_image_info(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object())
    return fail(Code::kInternal, "containerd's description of the image is not a JSON object");
  ImageConfig out;
  out.chain_id = json::text_at(*parsed, "chainID");
  const auto& config = json::at(*parsed, "imageSpec", "config");
  out.entrypoint = words(json::at(config, "Entrypoint"));
  out.command = words(json::at(config, "Cmd"));
  out.working_dir = json::text_at(config, "WorkingDir");
  out.user = json::text_at(config, "User");
  for (const auto& item : json::as_array(json::at(config, "Env"))) {
    const auto pair = json::text(item);
    const auto sign = pair.find('=');
    if (sign == 0 || sign == std::string::npos) continue;
    out.env.emplace_back(pair.substr(0, sign), pair.substr(sign + 1));
  }
  return out;
}

}  // namespace muster::agent::image
