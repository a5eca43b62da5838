#include "apiserver/rest/page.h"

#include <fmt/core.h>

#include "apiserver/rest/go_json.h"
#include "apiserver/rest/walk.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

/// `left`: how many objects come after it at this revision; 0: not known.
std::string make_continue(std::int64_t revision,
                          const std::string& last_key,
                          std::int64_t left = 0) {
  json::Object token;
  token["v"] = "meta.k8s.io/v1";
  token["rv"] = revision;
  token["start"] = last_key + std::string(1, '\0');
  if (left > 0) token["left"] = left;
  return base64url_encode(json::dump(json::Value(std::move(token))));
}

struct ContinueToken {
  std::int64_t revision = 0;
  std::string start;
  std::int64_t left = 0;
};

Result<ContinueToken> parse_continue(std::string_view text) {
  const auto decoded = base64url_decode(text);
  const auto bad = [](std::string_view why) {
    return fail(
        bad_request(fmt::format("invalid continue token: continue key is not valid: {}", why)));
  };
  if (!decoded) return bad("illegal base64 data");
  const auto value = json::parse(*decoded);
  if (!value) return bad(go_json_error(*decoded));
  if (json::string_at(*value, "v") != "meta.k8s.io/v1")
    return bad("server does not recognize this encoded version");
  ContinueToken token;
  token.revision = json::int_at(*value, "rv");
  token.start = json::text_at(*value, "start");
  token.left = json::int_at(*value, "left");
  if (token.start.empty() || token.revision == 0)
    return bad("incorrect encoded start resourceVersion");
  if (token.start.back() == '\0') token.start.pop_back();
  return token;
}

Error expired_continue(const std::string& start) {
  Error error;
  error.code = Code::kExpired;
  error.message =
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the "
      "continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
      "that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  error.subject.name = make_continue(-1, start);  // moved into metadata.continue by the caller
  return error;
}

/// Where a list begins, how far it goes, and when.
struct Range {
  Revision revision = 0;
  bool exact = false;  // at this revision, whatever has happened since
  std::string after;
  std::size_t limit = 0;  // 0: all
  std::int64_t left = 0;  // how many come after `after`; 0: not known
};

Result<Range> parse_range(Revision newest, const Call& call) {
  const std::string version(call.target.get("resourceVersion"));
  const std::string_view token_text = call.target.get("continue");
  const std::int64_t limit = parse_int(call.target.get("limit")).value_or(0);
  Range range;
  range.limit = limit > 0 ? static_cast<std::size_t>(limit) : 0;
  if (version == "0" && token_text.empty()) range.limit = 0;  // served from the cache, whole
  range.revision = newest;
  if (!token_text.empty()) {
    const auto token = parse_continue(token_text);
    if (!token) return fail(token.error());
    range.after = token->start;
    if (token->revision <= 0) return range;
    range.revision = static_cast<Revision>(token->revision);
    range.exact = true;
    range.left = token->left;
  } else if (call.target.get("resourceVersionMatch") == "Exact") {
    range.revision = static_cast<Revision>(*parse_int(version));
    range.exact = true;
  }
  return range;
}

}  // namespace

Result<void> check_list_options(const Call& call) {
  for (const std::string_view key : {"limit", "timeoutSeconds"}) {
    const std::string_view text = call.target.get(key);
    if (!text.empty() && !parse_int(text))
      return fail(
          bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", quoted(text))));
  }
  const std::string_view version = call.target.get("resourceVersion");
  const std::string_view match = call.target.get("resourceVersionMatch");
  const std::string_view token = call.target.get("continue");
  if (call.target.has("sendInitialEvents")) {
    return fail(invalid_option("ListOptions",
                               "sendInitialEvents",
                               "FieldValueForbidden",
                               "Forbidden: sendInitialEvents is forbidden for list"));
  }
  if (!match.empty()) {
    if (match != "Exact" && match != "NotOlderThan") {
      return fail(invalid_option(
          "ListOptions",
          "resourceVersionMatch",
          "FieldValueNotSupported",
          fmt::format("Unsupported value: {}: supported values: \"Exact\", \"NotOlderThan\", \"\"",
                      quoted(match))));
    }
    if (version.empty()) {
      return fail(invalid_option(
          "ListOptions",
          "resourceVersionMatch",
          "FieldValueForbidden",
          "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!token.empty()) {
      return fail(
          invalid_option("ListOptions",
                         "resourceVersionMatch",
                         "FieldValueForbidden",
                         "Forbidden: resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match == "Exact" && version == "0") {
      return fail(invalid_option(
          "ListOptions",
          "resourceVersionMatch",
          "FieldValueForbidden",
          "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
    }
  }
  if (!token.empty() && !version.empty() && version != "0" && parse_continue(token))
    return fail(bad_request("specifying resource version is not allowed when using continue"));
  return {};
}

Task<Result<Page>> find_page(Core& core, const Call& call, const Selection& selection) {
  const Resource& resource = *call.resource;
  const Collection& collection = core.collection(resource);
  const auto range = parse_range(core.image.revision(), call);
  if (!range) co_return fail(range.error());
  Objects undone;
  if (range->exact && collection.newest() > range->revision) {
    auto past = collection.undone(range->revision);
    if (!past)
      co_return fail(call.target.get("continue").empty() ? past.error()
                                                         : expired_continue(range->after));
    undone = std::move(*past);
  }
  // What is there now need not be counted; the pages after the first know what the one before said.
  const std::size_t now =
      selection.ns.empty() ? collection.objects().size() : collection.count(selection.ns);
  const bool first_of_now = range->after.empty() && !range->exact;
  const auto there = first_of_now ? static_cast<std::int64_t>(now) : range->left;
  Page page;
  page.revision = range->revision;
  std::string prefix = key_prefix(resource, selection.ns);
  const auto name = selection.fields.required_name();
  if (!name.empty() && (!resource.info.namespaced || !prefix.empty())) {
    const std::string key = prefix + std::string(name);
    const auto was = undone.find(key);
    const StoredPtr found = was == undone.end() ? collection.find(key) : was->second;
    if (found && selection.matches(resource, *found)) page.objects.push_back(found);
    co_return page;
  }
  Walk walk(collection.objects(), undone, std::move(prefix), range->after);
  const std::size_t most = range->limit == 0 ? 0 : range->limit + 1;
  page.objects = co_await find_selected(core.slices, resource, walk, selection, most);
  if (most == 0 || page.objects.size() < most) co_return page;
  page.objects.pop_back();
  if (selection.everything && there > static_cast<std::int64_t>(page.objects.size())) {
    page.remaining = there - static_cast<std::int64_t>(page.objects.size());
  } else if (selection.everything) {
    page.remaining = 1;
    while (walk.next() != nullptr) ++page.remaining;
  }
  page.continue_token = make_continue(
      static_cast<std::int64_t>(range->revision), page.objects.back()->key, page.remaining);
  co_return page;
}

}  // namespace muster::apiserver
