/// get and list: objects, Tables, metadata only; selectors; pages that stay at the first page's
/// revision. One piece: every form of the answer walks the same page in the same turns.
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "apiserver/rest/convert.h"
#include "apiserver/rest/go_json.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "json/pick.h"
#include "kube/apply/managed.h"
#include "kube/meta.h"
#include "kube/table/table.h"

namespace muster::apiserver {
namespace {

using Objects = std::map<std::string, StoredPtr, std::less<>>;

struct Page {
  std::vector<StoredPtr> objects;
  Revision revision = 0;
  std::string continue_token;
  std::int64_t remaining = 0;
};

std::string make_continue(std::int64_t revision, const std::string& last_key) {
  json::Object token;
  token["v"] = "meta.k8s.io/v1";
  token["rv"] = revision;
  token["start"] = last_key + std::string(1, '\0');
  return base64url_encode(json::dump(json::Value(std::move(token))));
}

struct ContinueToken {
  std::int64_t revision = 0;
  std::string start;
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

/// The objects of the selection in [after, …), at most `limit` of them (0: all).
Page take(const Resource& resource,
          const Objects& objects,
          const Selection& selection,
          const std::string& after,
          std::size_t limit) {
  Page page;
  const std::string prefix =
      resource.info.namespaced && !selection.ns.empty() ? selection.ns + "/" : "";
  const auto name = selection.fields.required_name();
  if (!name.empty() && (!resource.info.namespaced || !prefix.empty())) {
    const auto found = objects.find(prefix + std::string(name));
    if (found != objects.end() && selection.matches(resource, *found->second))
      page.objects.push_back(found->second);
    return page;
  }
  auto it = after.empty() ? objects.lower_bound(prefix) : objects.upper_bound(after);
  for (; it != objects.end() && it->first.starts_with(prefix); ++it) {
    if (!selection.everything && !selection.matches(resource, *it->second)) continue;
    if (limit != 0 && page.objects.size() == limit) {
      page.continue_token = page.objects.back()->key;
      if (selection.everything) {
        for (; it != objects.end() && it->first.starts_with(prefix); ++it) ++page.remaining;
      }
      break;
    }
    page.objects.push_back(it->second);
  }
  return page;
}

Result<Page> find_page(Core& core, const Call& call, const Selection& selection) {
  Collection& collection = core.collection(*call.resource);
  const std::string version(call.target.get("resourceVersion"));
  const std::string_view match = call.target.get("resourceVersionMatch");
  const std::string_view token_text = call.target.get("continue");
  const std::int64_t limit_given = parse_int(call.target.get("limit")).value_or(0);
  std::size_t limit = limit_given > 0 ? static_cast<std::size_t>(limit_given) : 0;
  if (version == "0" && token_text.empty()) limit = 0;  // served from the cache, whole

  Revision revision = core.image.revision();
  std::string after;
  bool exact = false;
  if (!token_text.empty()) {
    const auto token = parse_continue(token_text);
    if (!token) return fail(token.error());
    after = token->start;
    if (token->revision > 0) {
      revision = static_cast<Revision>(token->revision);
      exact = true;
    }
  } else if (match == "Exact") {
    revision = static_cast<Revision>(*parse_int(version));
    exact = true;
  }
  Page page;
  if (exact && collection.newest() > revision) {
    const auto past = collection.at(revision);
    if (!past) return fail(token_text.empty() ? past.error() : expired_continue(after));
    page = take(*call.resource, *past, selection, after, limit);
  } else {
    page = take(*call.resource, collection.objects(), selection, after, limit);
  }
  page.revision = revision;
  if (!page.continue_token.empty())
    page.continue_token = make_continue(static_cast<std::int64_t>(revision), page.continue_token);
  return page;
}

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

/// Whether the sets of managedFields are among these members.
bool names_managers(const json::Picks& picks, bool inside = false) {
  if (inside && picks.empty()) return true;
  return std::any_of(picks.begin(), picks.end(), [&](const json::Pick& pick) {
    if (inside) return pick.name == "managedFields" || pick.name == "*";
    return (pick.name == "metadata" || pick.name == "*") && names_managers(pick.children, true);
  });
}

/// The members that a list asks for; `name` is the version they are asked of and their text.
struct Fields {
  json::Picks picks;
  std::shared_ptr<const std::string> name;
};

/// How many different `fields` an object remembers its text for.
constexpr std::size_t kPickedMax = 3;
/// What is left of an object, roughly.
constexpr std::size_t kPickedBytes = 640;

/// The same text is the same pointer as long as it is among the last ones asked for, so that
/// thousands of objects need not compare it.
std::shared_ptr<const std::string> shared_name(std::string name) {
  constexpr std::size_t kNames = 32;
  thread_local std::deque<std::shared_ptr<const std::string>> names;
  for (const auto& each : names) {
    if (*each == name) return each;
  }
  if (names.size() == kNames) names.pop_front();
  return names.emplace_back(std::make_shared<const std::string>(std::move(name)));
}

const std::string& picked_text(const Resource& resource,
                               const Stored& stored,
                               const Fields& fields) {
  for (const Stored::Picked& each : stored.picked) {
    if (each.fields == fields.name || *each.fields == *fields.name) return each.text;
  }
  if (stored.picked.size() == kPickedMax) stored.picked.erase(stored.picked.begin());
  Stored::Picked& made = stored.picked.emplace_back();
  made.fields = fields.name;
  const bool managers = names_managers(fields.picks);
  if (resource.same_as_storage() && !managers) {
    json::append_picked(stored.object, fields.picks, made.text);
  } else {
    json::Value object = to_served(resource, stored.object);
    if (managers) kube::unpack_managers(object);
    json::append_picked(object, fields.picks, made.text);
  }
  made.text.shrink_to_fit();
  return made.text;
}

/// `fields` empty: whole objects.
std::string list_text(const Resource& resource, const Page& page, const Fields& fields) {
  std::string body;
  std::size_t size = 256;
  const bool whole = fields.picks.empty();
  if (whole) {
    for (const StoredPtr& stored : page.objects) size += stored->bytes->size() + 1;
  } else {
    size += page.objects.size() * kPickedBytes;
  }
  body.reserve(size);
  if (resource.custom()) {
    body += fmt::format("{{\"apiVersion\":\"{}\",\"items\":[", resource.api_version());
  } else {
    body += fmt::format(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{}\"",
        resource.list_kind(),
        resource.api_version(),
        page.revision);
    if (!page.continue_token.empty())
      body += fmt::format(",\"continue\":\"{}\"", page.continue_token);
    if (page.remaining > 0) body += fmt::format(",\"remainingItemCount\":{}", page.remaining);
    body += "},\"items\":[";
  }
  bool first = true;
  for (const StoredPtr& stored : page.objects) {
    if (!first) body += ',';
    first = false;
    if (whole) {
      append_list_item(resource, *stored, body);
    } else {
      body += picked_text(resource, *stored, fields);
    }
  }
  body += ']';
  if (resource.custom()) {
    body += fmt::format(",\"kind\":\"{}\",\"metadata\":{{\"continue\":\"{}\"",
                        resource.list_kind(),
                        page.continue_token);
    if (page.remaining > 0) body += fmt::format(",\"remainingItemCount\":{}", page.remaining);
    body += fmt::format(",\"resourceVersion\":\"{}\"}}", page.revision);
  }
  body += "}\n";
  return body;
}

/// `fields=metadata(name),status(phase)`: the members of the items that the caller reads. Other
/// servers do not know the parameter and answer with whole objects.
Result<Fields> list_fields(const Call& call) {
  const std::string_view text = call.target.get("fields");
  if (text.empty()) return Fields{};
  auto picks = json::parse_picks(text);
  if (!picks) return fail(bad_request(picks.error().message));
  return Fields{std::move(*picks),
                shared_name(fmt::format("{} {}", call.resource->api_version(), text))};
}

std::string partial_list_text(const Page& page) {
  std::string body = fmt::format(
      "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"{}\"",
      page.revision);
  if (!page.continue_token.empty())
    body += fmt::format(",\"continue\":\"{}\"", page.continue_token);
  if (page.remaining > 0) body += fmt::format(",\"remainingItemCount\":{}", page.remaining);
  body += "},\"items\":[";
  bool first = true;
  for (const StoredPtr& stored : page.objects) {
    if (!first) body += ',';
    first = false;
    body += partial_metadata(stored->object);
  }
  body += "]}\n";
  return body;
}

net::Response raw_json(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

Result<Reply> as_negotiated(const Accepted& accepted, int status, std::string body) {
  if (!accepted.yaml && !accepted.pretty) return raw_json(status, std::move(body));
  const auto value = json::parse(body);
  if (!value) return fail(value.error());
  return encode(accepted, status, *value);
}

/// The same for lists, which may be long: YAML of ten thousand pods takes seconds, of a worker.
Task<Result<Reply>> list_as_negotiated(Core& core, Accepted accepted, std::string body) {
  const bool rewritten = accepted.yaml || accepted.pretty;
  if (!rewritten || body.size() < kReadAheadFrom)
    co_return as_negotiated(accepted, 200, std::move(body));
  Result<Reply> made = fail(Error{});
  std::function<void()> work = [&] { made = as_negotiated(accepted, 200, std::move(body)); };
  co_await core.env.run_on_worker(std::move(work));
  co_return made;
}

}  // namespace

bool Selection::matches(const Resource& resource, const Stored& stored) const {
  if (everything) return true;
  if (!labels.matches_object(stored.object)) return false;
  if (fields.empty()) return true;
  return resource.same_as_storage() ? fields.matches(stored.object)
                                    : fields.matches(to_served(resource, stored.object));
}

Result<Selection> parse_selection(const Call& call) {
  Selection selection;
  selection.ns = call.ns;
  auto labels = kube::LabelSelector::parse(call.target.get("labelSelector"));
  if (!labels) return fail(labels.error());
  auto fields = kube::FieldSelector::parse(call.target.get("fieldSelector"));
  if (!fields) return fail(fields.error());
  if (call.resource->custom()) {
    for (const kube::FieldSelector::Term& term : fields->terms()) {
      if (term.field != "metadata.name" && term.field != "metadata.namespace")
        return fail(bad_request("field label not supported: " + term.field));
    }
  } else {
    const auto known = fields->check(call.resource->info.group, call.resource->info.kind);
    if (!known) return fail(known.error());
  }
  selection.labels = std::move(*labels);
  selection.fields = std::move(*fields);
  selection.everything = selection.labels.everything() && selection.fields.empty();
  return selection;
}

Result<Revision> parse_version(std::string_view text) {
  if (text.empty()) return Revision{0};
  const auto number = parse_int(text);
  if (!number || *number < 0)
    return fail(bad_request(fmt::format(
        "invalid resource version: resourceVersion: Invalid value: {}: strconv.ParseUint: parsing {}: invalid syntax",
        quoted(text),
        quoted(text))));
  return static_cast<Revision>(*number);
}

Task<bool> wait_for_version(Core& core, Revision revision) {
  for (int i = 0; i < 60 && core.image.revision() < revision && !core.gate.closed(); ++i)
    co_await core.env.sleep(std::chrono::milliseconds(50));
  co_return core.image.revision() >= revision;
}

std::string table_text(Core& core,
                       const Call& call,
                       const Accepted& accepted,
                       const std::vector<StoredPtr>& objects,
                       const TableParts& parts,
                       bool columns) {
  const Resource& resource = *call.resource;
  const std::string_view include = call.target.get("includeObject");
  std::string body = fmt::format(
      "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{}\",\"metadata\":{{\"resourceVersion\":\"{}\"",
      accepted.table_version,
      parts.resource_version);
  if (!parts.continue_token.empty())
    body += fmt::format(",\"continue\":\"{}\"", parts.continue_token);
  if (parts.remaining > 0) body += fmt::format(",\"remainingItemCount\":{}", parts.remaining);
  body += "},\"columnDefinitions\":";
  body += columns ? json::dump(kube::column_definitions(resource.info)) : "null";
  body += ",\"rows\":[";
  const Time now = core.env.now();
  bool first = true;
  for (const StoredPtr& stored : objects) {
    if (!first) body += ',';
    first = false;
    json::Value row =
        resource.same_as_storage()
            ? kube::table_row(resource.info, stored->object, now)
            : kube::table_row(resource.info, to_served(resource, stored->object), now);
    std::string text = json::dump(row);
    text.pop_back();
    body += text;
    if (include == "None") {
      body += ",\"object\":null}";
    } else if (include == "Object") {
      body += ",\"object\":" + *served_bytes(resource, *stored) + "}";
    } else {
      body += ",\"object\":" + partial_metadata(stored->object) + "}";
    }
  }
  body += "]}";
  return body;
}

namespace {

Result<void> check_include(const Call& call) {
  const std::string_view include = call.target.get("includeObject");
  if (include.empty() || include == "Metadata" || include == "Object" || include == "None")
    return {};
  return fail(bad_request(fmt::format(
      "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
      quoted(include))));
}

Error not_acceptable(const Resource& resource, bool list) {
  Error error;
  error.code = Code::kNotAcceptable;
  const std::string internal =
      (resource.info.group.empty() ? std::string("core")
                                   : resource.info.group.substr(0, resource.info.group.find('.'))) +
      ".";
  error.message =
      list
          ? fmt::format(
                "you requested PartialObjectMetadata, but the requested object is a list (*{}{})",
                internal,
                resource.list_kind())
          : fmt::format(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{}{})",
                internal,
                resource.info.kind);
  return error;
}

}  // namespace

Reply value_reply(const Call& call, const Accepted& accepted, int status, json::Value value) {
  if (!call.in_process) return encode(accepted, status, value);
  Reply reply;
  reply.status = status;
  reply.object = std::make_shared<const json::Value>(std::move(value));
  return reply;
}

Result<Reply> object_response(
    Core& core, const Call& call, const Accepted& accepted, int status, const StoredPtr& stored) {
  switch (accepted.form) {
    case Form::kTable: {
      const auto included = check_include(call);
      if (!included) return fail(included.error());
      TableParts parts;
      parts.resource_version = std::to_string(stored->revision);
      return as_negotiated(
          accepted, status, table_text(core, call, accepted, {stored}, parts, true) + "\n");
    }
    case Form::kPartialObject:
      return as_negotiated(accepted, status, partial_metadata(stored->object) + "\n");
    case Form::kPartialObjectList:
    case Form::kDiscovery:
      return fail(not_acceptable(*call.resource, false));
    case Form::kObject:
      break;
  }
  if (call.in_process) {
    Reply reply;
    reply.status = status;
    reply.object = served_object(*call.resource, stored);
    return reply;
  }
  return as_negotiated(accepted, status, *served_bytes(*call.resource, *stored) + "\n");
}

Task<Result<Reply>> get_object(Core& core, Call& call, Accepted accepted) {
  const auto version = parse_version(call.target.get("resourceVersion"));
  if (!version) co_return fail(version.error());
  if (*version > core.image.revision()) {
    const bool reached = co_await wait_for_version(core, *version);
    if (!reached) co_return fail(version_too_large(*version, core.image.revision()));
  }
  const StoredPtr stored = core.find(*call.resource, call.ns, call.name);
  if (!stored) co_return fail(not_found(*call.resource, call.name));
  co_return object_response(core, call, accepted, 200, stored);
}

Task<Result<Reply>> list_objects(Core& core, Call& call, Accepted accepted) {
  if (accepted.form == Form::kPartialObject) co_return fail(not_acceptable(*call.resource, true));
  const auto selection = parse_selection(call);
  if (!selection) co_return fail(selection.error());
  const auto version = parse_version(call.target.get("resourceVersion"));
  if (!version) co_return fail(version.error());
  const auto valid = check_list_options(call);
  if (!valid) co_return fail(valid.error());
  const auto fields = list_fields(call);
  if (!fields) co_return fail(fields.error());
  if (accepted.form == Form::kTable) {
    const auto included = check_include(call);
    if (!included) co_return fail(included.error());
  }
  if (*version > core.image.revision()) {
    const bool reached = co_await wait_for_version(core, *version);
    if (!reached) co_return fail(version_too_large(*version, core.image.revision()));
  }
  const auto page = find_page(core, call, *selection);
  if (!page) {
    Error error = page.error();
    if (error.code != Code::kExpired || error.subject.name.empty()) co_return fail(error);
    json::Value status = status_of(error);
    json::make(status, {"metadata", "continue"}) = json::at(status, "details", "name");
    json::remove(status, {"details"});
    co_return json_response(410, status);
  }
  if (accepted.form == Form::kTable) {
    TableParts parts;
    parts.resource_version = std::to_string(page->revision);
    parts.continue_token = page->continue_token;
    parts.remaining = page->remaining;
    auto table = co_await list_as_negotiated(
        core, accepted, table_text(core, call, accepted, page->objects, parts, true) + "\n");
    co_return table;
  }
  if (accepted.form == Form::kPartialObjectList) {
    auto list = co_await list_as_negotiated(core, accepted, partial_list_text(*page));
    co_return list;
  }
  if (call.in_process) {
    Reply reply;
    reply.items.reserve(page->objects.size());
    for (const StoredPtr& stored : page->objects)
      reply.items.push_back(served_object(*call.resource, stored));
    reply.revision = page->revision;
    co_return reply;
  }
  auto response =
      co_await list_as_negotiated(core, accepted, list_text(*call.resource, *page, *fields));
  if (response && !fields->picks.empty()) response->headers.set("Preference-Applied", "fields");
  co_return response;
}

}  // namespace muster::apiserver
