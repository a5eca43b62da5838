/// The scheduler's policy: the file that it follows, what a new text for it would change, and former
/// ones. The scheduler reads the file again within a second.
#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/md5.h"
#include "base/strings.h"
#include "portal/api/api.h"
#include "portal/api/versions.h"

namespace muster::portal {
namespace {

constexpr const char* kVersionsName = "muster-policy-versions";

struct Present {
  std::string text, version;  // no file: both empty
};

std::string version_of(const std::string& text) { return md5_hex(text); }

Task<Result<Present>> present_policy(World& world) {
  const Options& options = world.options;
  Result<std::string> text = std::string();
  bool there = false;
  co_await world.env.run_on_worker([&] {
    there = std::filesystem::exists(options.policy_file);
    if (there) text = read_file(options.policy_file);
  });
  if (!text) co_return fail(text.error());
  if (!there && !options.policy_optional)
    co_return fail(Code::kNotFound, fmt::format("{} does not exist", options.policy_file));
  if (!there) co_return Present{};
  co_return Present{*text, version_of(*text)};
}

/// Blank: the defaults, where they are what holds without a file.
Result<PolicyFacts> facts_of(const Options& options, const std::string& text) {
  if (options.policy_optional && trim(text).empty()) return PolicyFacts{};
  return options.read_policy(text);
}

/// "placement: spread (was pack)", for each key at the top that differs.
std::vector<std::string> differences(const std::string& before, const std::string& after) {
  const auto keys_of = [](const std::string& text) {
    auto document = json::parse_yaml_one(text);
    return document && document->is_object() ? document->get_object() : json::Object{};
  };
  const json::Object old_keys = keys_of(before), new_keys = keys_of(after);
  std::set<std::string> names;
  for (const auto& one : old_keys) names.emplace(one.key());
  for (const auto& one : new_keys) names.emplace(one.key());
  const auto shown = [](const json::Object& keys, const std::string& name) {
    const auto* value = keys.if_contains(name);
    if (value == nullptr) return std::string("not set");
    return value->is_string() ? json::text(*value) : json::dump(*value);
  };
  std::vector<std::string> list;
  for (const std::string& name : names) {
    const std::string was = shown(old_keys, name), is = shown(new_keys, name);
    if (was != is) list.push_back(fmt::format("{}: {} (was {})", name, is, was));
  }
  return list;
}

json::Value check_value(const Options& options, const Present& present, const std::string& text) {
  const auto facts = facts_of(options, text);
  if (!facts) return refused_text(facts.error().message);
  const auto before = facts_of(options, present.text);
  if (before && before->volcano != facts->volcano)
    return refused_text(fmt::format(
        "a change between Volcano's actions and plugins and Muster's own policy takes a restart: "
        "write it to {} and start Muster again",
        options.policy_file));
  json::Array changes, warnings;
  for (const std::string& one : differences(present.text, text)) changes.emplace_back(one);
  for (const std::string& one : facts->without_effect)
    warnings.emplace_back(fmt::format("{} is accepted and has no effect", one));
  return {{"ok", true},
          {"changes", json::Array{}},
          {"facts", std::move(changes)},
          {"warnings", std::move(warnings)}};
}

Task<void> put_policy(ApiWorld& api, ApiCall& call, const Present& present) {
  const Options& options = api.world.options;
  const auto wanted = co_await text_to_write(
      call, {present.version, present.text}, "policy", [&](const std::string& text) {
        return check_value(options, present, text);
      });
  if (!wanted) co_return;
  const std::string& text = *wanted;
  const bool blank = trim(text).empty();
  Result<void> written;
  co_await api.world.env.run_on_worker([&] {
    std::error_code failed;
    if (!blank)
      written = write_private(options.policy_file, text);
    else if (std::filesystem::remove(options.policy_file, failed); failed)
      written = fail(Code::kInternal,
                     fmt::format("remove {}: {}", options.policy_file, failed.message()));
  });
  if (!written) {
    co_await answer_error(call.writer, written.error());
    co_return;
  }
  const std::string version = blank ? "" : version_of(text);
  co_await keep_version(api.world, kVersionsName, call.visitor.user, {version, text});
  co_await answer_json(call.writer,
                       {{"text", text}, {"resourceVersion", version}, {"present", !blank}});
}

}  // namespace

Task<void> serve_policy(ApiWorld api, ApiCall call) {
  if (!call.visitor.user.admin) {
    co_await answer(
        call.writer,
        error_answer(
            403, "Forbidden", "only administrators may see and change the scheduler's policy"));
    co_return;
  }
  const auto present = co_await present_policy(api.world);
  if (!present) {
    co_await answer_error(call.writer, present.error());
    co_return;
  }
  const std::string& method = call.request.method;
  if (call.path[0] == "policy:check" && method == "POST") {
    const auto body = json::parse(call.request.body);
    if (!body || !json::at(*body, "text").is_string())
      co_await answer(call.writer, error_answer(400, "BadRequest", "wanted {text}"));
    else
      co_await answer_json(call.writer,
                           check_value(api.world.options, *present, json::text_at(*body, "text")));
  } else if (call.path.size() == 2 && call.path[1] == "versions" && method == "GET") {
    json::Array versions = co_await former_versions(api.world, kVersionsName);
    co_await answer_json(call.writer, std::move(versions));
  } else if (call.path.size() == 1 && call.path[0] == "policy" && method == "GET") {
    co_await answer_json(call.writer,
                         {{"text", present->text},
                          {"resourceVersion", present->version},
                          {"present", !present->version.empty()}});
  } else if (call.path.size() == 1 && call.path[0] == "policy" && method == "PUT") {
    co_await put_policy(api, call, *present);
  } else {
    co_await answer(
        call.writer,
        error_answer(404,
                     "NotFound",
                     "there are GET and PUT policy, POST policy:check and GET policy/versions"));
  }
}

}  // namespace muster::portal
