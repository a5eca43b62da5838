#include "cli/submit/submit_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

constexpr std::size_t kNameMax = 49;  // leaves room for "-launcher-xxxxx" in 63

bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

tl::unexpected<Error> wrong(std::string message) {
  return fail(Code::kInvalid, std::move(message));
}

Result<void> check_mount_path(std::string_view path, std::string_view entry) {
  if (path.empty() || path[0] != '/')
    return wrong(fmt::format("the path of \"{}\" must be absolute", entry));
  if (path == "/") return wrong(fmt::format("the path of \"{}\" must not be /", entry));
  return {};
}

Result<void> read_claims(const Values& values, SubmitValues& out) {
  std::set<std::string> seen;
  for (const std::string& entry : values.list("data")) {
    const std::vector<std::string> parts = split(entry, ':');
    if (parts.size() != 2)
      return wrong(
          fmt::format("--data \"{}\": wanted <persistent volume claim>:<mount point>", entry));
    const std::string& claim = parts[0];
    const bool good =
        claim.size() >= 2 && alnum(claim[0]) && std::all_of(claim.begin(), claim.end(), [](char c) {
          return alnum(c) || c == '_' || c == '.' || c == '-';
        });
    if (!good)
      return wrong(fmt::format("--data \"{}\": \"{}\" is not the name of a claim", entry, claim));
    if (!seen.insert(claim).second)
      return wrong(fmt::format("--data: claim \"{}\" is given twice", claim));
    if (const auto path = check_mount_path(parts[1], entry); !path) return path;
    out.claims.push_back({claim, claim, parts[1]});
  }
  int index = 0;
  for (const std::string& entry : values.list("data-dir")) {
    const std::vector<std::string> parts = split(entry, ':');
    if (parts.size() > 2)
      return wrong(fmt::format("--data-dir \"{}\": wanted <host path>[:<container path>]", entry));
    for (const std::string& part : parts) {
      if (const auto path = check_mount_path(part, entry); !path) return path;
    }
    out.host_paths.push_back({fmt::format("training-data-{}", index++), parts[0], parts.back()});
  }
  return {};
}

/// key=value:effect,operator with any of the parts left out, or "all".
Result<void> read_tolerations(const Values& values, SubmitValues& out) {
  for (const std::string& entry : values.list("toleration")) {
    if (entry == "all") {
      out.tolerations = {json::Object{{"operator", "Exists"}}};
      return {};
    }
    const std::size_t comma = entry.rfind(',');
    std::string how = comma == std::string::npos ? "" : entry.substr(comma + 1);
    const std::string rest = entry.substr(0, comma);
    const std::size_t colon = rest.rfind(':');
    const std::string effect = colon == std::string::npos ? "" : rest.substr(colon + 1);
    const std::string taint = rest.substr(0, colon);
    const std::size_t equals = taint.find('=');
    const std::string key = taint.substr(0, equals);
    if (how.empty()) how = equals == std::string::npos ? "Exists" : "Equal";
    const bool good_effect = effect.empty() || effect == "NoSchedule" ||
                             effect == "PreferNoSchedule" || effect == "NoExecute";
    if (key.empty() || key.find(':') != std::string::npos || !good_effect ||
        (how != "Equal" && how != "Exists")) {
      return wrong(fmt::format(
          "--toleration \"{}\": wanted key=value:effect,operator (effect NoSchedule, PreferNoSchedule or NoExecute; operator Equal or Exists) or all",
          entry));
    }
    json::Object toleration{{"key", key}, {"operator", how}};
    if (equals != std::string::npos && how == "Equal")
      toleration["value"] = taint.substr(equals + 1);
    if (!effect.empty()) toleration["effect"] = effect;
    out.tolerations.push_back(std::move(toleration));
  }
  return {};
}

Result<void> read_config_files(const Values& values, SubmitValues& out) {
  std::set<std::string> seen;
  for (const std::string& entry : values.list("config-file")) {
    if (!seen.insert(entry).second) continue;
    const std::vector<std::string> parts = split(entry, ':');
    if (parts.size() > 2)
      return wrong(
          fmt::format("--config-file \"{}\": wanted <host file>[:<container file>]", entry));
    std::string host = parts[0];
    if (host.starts_with("~/")) {
      const char* home = std::getenv("HOME");
      host = std::string(home == nullptr ? "" : home) + host.substr(1);
    }
    std::error_code failure;
    const std::filesystem::path absolute =
        std::filesystem::absolute(host, failure).lexically_normal();
    const std::filesystem::path target =
        parts.size() == 2 ? std::filesystem::path(parts[1]) : absolute;
    if (!target.is_absolute())
      return wrong(fmt::format("--config-file \"{}\": the container path must be absolute", entry));
    std::ifstream file(absolute, std::ios::binary);
    if (!std::filesystem::is_regular_file(absolute, failure) || !file) {
      return wrong(
          fmt::format("--config-file \"{}\": no readable file {}", entry, absolute.string()));
    }
    std::ostringstream content;
    content << file.rdbuf();
    out.files.push_back({target.parent_path().string(), target.filename().string(), content.str()});
  }
  return {};
}

Result<void> read_devices(const Values& values, SubmitValues& out) {
  for (const std::string& entry : values.list("device")) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const std::string amount = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (name.find('/') == std::string::npos || amount.empty() || !parse_quantity(amount)) {
      return wrong(fmt::format(
          "--device \"{}\": wanted <vendor>/<resource>=<quantity>, such as amd.com/gpu=1", entry));
    }
    if (name == "nvidia.com/gpu") return wrong("--device nvidia.com/gpu: use --gpus");
    out.devices.emplace_back(name, amount);
  }
  return {};
}

Result<void> read_sync(const Values& values, SubmitValues& out) {
  out.sync_mode = values.text("sync-mode");
  out.sync_source = values.text("sync-source");
  out.sync_image = values.text("sync-image");
  if (!out.sync_mode.empty() && out.sync_mode != "git" && out.sync_mode != "rsync") {
    return wrong(fmt::format("unknown sync mode: {}, wanted git or rsync", out.sync_mode));
  }
  if (!out.sync_mode.empty() && out.sync_source.empty())
    return wrong("--sync-source must be set when --sync-mode is set");
  return {};
}

std::optional<std::int64_t> seconds_of(const Values& values, std::string_view flag) {
  const std::int64_t seconds = values.duration(flag).count() / 1'000'000;
  return seconds > 0 ? std::optional<std::int64_t>(seconds) : std::nullopt;
}

Result<void> read_placement(const Values& values, SubmitValues& out) {
  const std::string queue = values.text("queue");
  out.queued = queue == "true";
  if (!queue.empty() && queue != "true" && queue != "false") out.queue = queue;
  out.on_preempt = values.text("on-preempt");
  if (!out.on_preempt.empty() && out.on_preempt != "fail" && out.on_preempt != "requeue") {
    return wrong(fmt::format("--on-preempt {}: wanted fail or requeue", out.on_preempt));
  }
  if (values.duration("expected-duration").count() > 0)
    out.annotations.emplace_back(kube::names::kExpectedDuration, values.text("expected-duration"));
  const auto selectors = read_pairs(values, "selector");
  if (!selectors) return fail(selectors.error());
  out.selectors = *selectors;
  return read_tolerations(values, out);
}

Result<void> read_type_values(const Values& values, SubmitValues& out) {
  for (const char* flag : {"cpu", "memory", "share-memory"}) {
    if (const auto checked = check_quantity(values, flag); !checked) return checked;
  }
  out.cpu = values.text("cpu");
  out.memory = values.text("memory");
  out.share_memory = values.text("share-memory");
  out.clean_policy = values.text("clean-task-policy");
  if (!out.clean_policy.empty() && out.clean_policy != "None" && out.clean_policy != "Running" &&
      out.clean_policy != "All") {
    return wrong(fmt::format("unsupported clean task policy: {}, wanted None, Running or All",
                             out.clean_policy));
  }
  for (const char* flag : {"running-timeout", "ttl-after-finished", "starting-timeout"}) {
    if (values.duration(flag).count() < 0)
      return wrong(fmt::format("--{} must not be negative", flag));
  }
  out.running_timeout_s = seconds_of(values, "running-timeout");
  out.starting_timeout_s = seconds_of(values, "starting-timeout");
  out.ttl_s = seconds_of(values, "ttl-after-finished");
  out.nproc_per_node = values.text("nproc-per-node");
  if (const std::string& n = out.nproc_per_node;
      !n.empty() && n != "auto" && n != "cpu" && n != "gpu" && !parse_int(n)) {
    return wrong(fmt::format("--nproc-per-node {}: wanted auto, cpu, gpu or a number", n));
  }
  out.gpu_topology = values.yes("gputopology");
  out.mounts_on_launcher = values.yes("mounts-on-launcher");
  return {};
}

Result<void> read_names(const Values& values, SubmitValues& out) {
  for (const auto& [flag, into] : {std::pair{"env", &out.env},
                                   std::pair{"annotation", &out.annotations},
                                   std::pair{"label", &out.labels}}) {
    const auto pairs = read_pairs(values, flag);
    if (!pairs) return fail(pairs.error());
    *into = *pairs;
  }
  for (const auto& [key, value] : out.annotations)
    out.eni = out.eni || (key == "k8s.aliyun.com/eni" && value == "true");
  return {};
}

}  // namespace

Result<void> check_name(const std::string& name) {
  if (name.size() > kNameMax) {
    return wrong(
        fmt::format("the job name \"{}\" is too long: it has {} characters, the most is {}",
                    name,
                    name.size(),
                    kNameMax));
  }
  const bool good =
      !name.empty() && lower_alnum(name.front()) && lower_alnum(name.back()) &&
      std::all_of(name.begin(), name.end(), [](char c) { return lower_alnum(c) || c == '-'; });
  if (good) return {};
  return wrong(fmt::format(
      "the job name \"{}\" must consist of lower case letters, digits and '-', and start and end with a letter or digit",
      name));
}

Result<Pairs> read_pairs(const Values& values, std::string_view flag) {
  Pairs pairs;
  for (const std::string& entry : values.list(flag)) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      return wrong(fmt::format("--{} \"{}\": wanted key=value", flag, entry));
    pairs.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return pairs;
}

Result<void> check_quantity(const Values& values, std::string_view flag) {
  const std::string text = values.text(flag);
  if (text.empty() || parse_quantity(text)) return {};
  return wrong(
      fmt::format("--{} is invalid: {} is not a quantity, such as 2 or 500m or 1Gi", flag, text));
}

Result<SubmitValues> read_submit_values(const SubmitContext& context, const Values& values) {
  SubmitValues out;
  out.name = values.text("name");
  if (const auto named = check_name(out.name); !named) return fail(named.error());
  if (const auto read = read_claims(values, out); !read) return fail(read.error());
  out.model_name = values.text("model-name");
  out.model_source = values.text("model-source");
  if (!out.model_name.empty() && out.model_source.empty())
    return wrong("--model-source must be set when --model-name is set");
  out.image = values.text("image");
  const bool role_images = !values.text("worker-image").empty();
  if (out.image.empty() && !role_images) return wrong("--image must be set");
  out.gpus = values.number("gpus");
  if (out.gpus < 0) return wrong("--gpus is invalid: it must not be negative");
  out.workers = values.number("workers");
  if (out.workers < 1 && context.type != "tfjob")
    return wrong(fmt::format("--workers is invalid: wanted at least 1, found {}", out.workers));
  out.retry = values.number("retry");
  if (out.retry < 0) return wrong("--retry is invalid: it must not be negative");
  out.command = context.command;
  out.shell = values.text("shell");
  out.working_dir = values.text("working-dir");
  out.pull_policy = values.text("image-pull-policy");
  out.priority = values.text("priority");
  out.scheduler = values.text("scheduler");
  out.gang = values.yes("gang");
  out.rdma = values.yes("rdma");
  out.host_network = values.yes("hostNetwork");
  out.host_ipc = values.yes("hostIPC");
  out.host_pid = values.yes("hostPID");
  out.tensorboard = values.yes("tensorboard");
  out.tensorboard_image = values.text("tensorboard-image");
  out.logdir = values.text("logdir");
  out.pull_secrets = values.list("image-pull-secret").empty() ? context.image_pull_secrets
                                                              : values.list("image-pull-secret");
  for (const auto& read : {read_devices(values, out),
                           read_names(values, out),
                           read_placement(values, out),
                           read_sync(values, out),
                           read_config_files(values, out),
                           read_type_values(values, out)}) {
    if (!read) return fail(read.error());
  }
  return out;
}

}  // namespace muster::cli
