/// get and list: objects, Tables, metadata only. Long lists are written in slices.
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "apiserver/rest/convert.h"
#include "apiserver/rest/page.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "base/pace.h"
#include "base/strings.h"
#include "json/pick.h"
#include "kube/apply/managed.h"
#include "kube/meta.h"
#include "kube/table/table.h"

namespace muster::apiserver {
namespace {

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
/// Its metadata, with the fields that managers own; a row of a Table with it.
constexpr std::size_t kPartialBytes = 2048;

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

/// What a list says of itself before or after its items.
std::string list_metadata(const Page& page) {
  std::string text = fmt::format("{{\"resourceVersion\":\"{}\"", page.revision);
  if (!page.continue_token.empty())
    text += fmt::format(",\"continue\":\"{}\"", page.continue_token);
  if (page.remaining > 0) text += fmt::format(",\"remainingItemCount\":{}", page.remaining);
  return text + "}";
}

/// Writes each object of the page behind `body`, with commas between; others have their turn
/// meanwhile.
template <typename Write>
Task<void> write_items(Slices& slices, const Page& page, std::string& body, Write write) {
  Pace pace(slices);
  bool first = true;
  for (const StoredPtr& stored : page.objects) {
    if (pace.over()) co_await pace.rest();
    if (!first) body += ',';
    first = false;
    write(*stored, body);
  }
}

/// Room for all of it at once: a text that grows is copied as a whole, again and again.
std::size_t list_bytes(const Page& page, bool whole, std::size_t each) {
  std::size_t size = 1024 + page.continue_token.size() + page.objects.size() * (each + 1);
  if (!whole) return size;
  for (const StoredPtr& stored : page.objects) size += stored->object.text_size();
  return size;
}

/// `fields` empty: whole objects.
Task<std::string> list_text(Slices& slices,
                            const Resource& resource,
                            const Page& page,
                            const Fields& fields) {
  const bool whole = fields.picks.empty();
  std::string body;
  body.reserve(list_bytes(page, whole, whole ? 0 : kPickedBytes));
  if (resource.custom()) {
    body += fmt::format("{{\"apiVersion\":\"{}\",\"items\":[", resource.api_version());
  } else {
    body += fmt::format("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
                        resource.list_kind(),
                        resource.api_version(),
                        list_metadata(page));
  }
  co_await write_items(slices, page, body, [&](const Stored& stored, std::string& out) {
    if (whole) {
      append_list_item(resource, stored, out);
    } else {
      out += picked_text(resource, stored, fields);
    }
  });
  body += ']';
  if (resource.custom()) {
    body += fmt::format(",\"kind\":\"{}\",\"metadata\":{{\"continue\":\"{}\"",
                        resource.list_kind(),
                        page.continue_token);
    if (page.remaining > 0) body += fmt::format(",\"remainingItemCount\":{}", page.remaining);
    body += fmt::format(",\"resourceVersion\":\"{}\"}}", page.revision);
  }
  body += "}\n";
  co_return body;
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

Task<std::string> partial_list_text(Slices& slices, const Page& page) {
  std::string body;
  body.reserve(list_bytes(page, false, kPartialBytes));
  body += fmt::format(
      "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{},\"items\":[",
      list_metadata(page));
  co_await write_items(slices, page, body, [](const Stored& stored, std::string& out) {
    out += partial_metadata(stored.object);
  });
  body += "]}\n";
  co_return body;
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

namespace {

std::string table_head(const Call& call,
                       const Accepted& accepted,
                       std::string_view metadata,
                       bool columns) {
  return fmt::format(
      "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{}\",\"metadata\":{},\"columnDefinitions\":{},\"rows\":[",
      accepted.table_version,
      metadata,
      columns ? json::dump(kube::column_definitions(call.resource->info)) : "null");
}

void append_row(const Call& call, const Stored& stored, Time now, std::string& body) {
  const Resource& resource = *call.resource;
  const std::string_view include = call.target.get("includeObject");
  const json::Value row =
      resource.same_as_storage()
          ? kube::table_row(resource.info, stored.object, now)
          : kube::table_row(resource.info, to_served(resource, stored.object), now);
  body += json::dump(row);
  body.pop_back();
  body += ",\"object\":";
  if (include == "None") {
    body += "null";
  } else if (include == "Object") {
    body += *served_bytes(resource, stored);
  } else {
    body += partial_metadata(stored.object);
  }
  body += '}';
}

Task<std::string> table_list_text(Core& core,
                                  const Call& call,
                                  const Accepted& accepted,
                                  const Page& page) {
  const Time now = core.env.now();
  std::string body;
  body.reserve(list_bytes(page, call.target.get("includeObject") == "Object", kPartialBytes));
  body += table_head(call, accepted, list_metadata(page), true);
  co_await write_items(core.slices, page, body, [&](const Stored& stored, std::string& out) {
    append_row(call, stored, now, out);
  });
  body += "]}\n";
  co_return body;
}

}  // namespace

std::string table_text(
    Core& core, const Call& call, const Accepted& accepted, const Stored& stored, bool columns) {
  const std::string metadata = fmt::format("{{\"resourceVersion\":\"{}\"}}", stored.revision);
  std::string body = table_head(call, accepted, metadata, columns);
  append_row(call, stored, core.env.now(), body);
  return body + "]}";
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
  // It outlives the request and its memory.
  reply.object = std::make_shared<const json::Value>(std::move(value), json::Storage());
  return reply;
}

Result<Reply> object_response(
    Core& core, const Call& call, const Accepted& accepted, int status, const StoredPtr& stored) {
  switch (accepted.form) {
    case Form::kTable: {
      const auto included = check_include(call);
      if (!included) return fail(included.error());
      return as_negotiated(
          accepted, status, table_text(core, call, accepted, *stored, true) + "\n");
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
  const auto page = co_await find_page(core, call, *selection);
  if (!page) {
    Error error = page.error();
    if (error.code != Code::kExpired || error.subject.name.empty()) co_return fail(error);
    json::Value status = status_of(error);
    json::make(status, {"metadata", "continue"}) = json::at(status, "details", "name");
    json::remove(status, {"details"});
    co_return json_response(410, status);
  }
  const bool plain = accepted.form != Form::kTable && accepted.form != Form::kPartialObjectList;
  if (call.in_process && plain) {
    Reply reply;
    reply.items.reserve(page->objects.size());
    for (const StoredPtr& stored : page->objects)
      reply.items.push_back(served_object(*call.resource, stored));
    reply.revision = page->revision;
    co_return reply;
  }
  std::string text;
  if (accepted.form == Form::kTable) {
    text = co_await table_list_text(core, call, accepted, *page);
  } else if (accepted.form == Form::kPartialObjectList) {
    text = co_await partial_list_text(core.slices, *page);
  } else {
    text = co_await list_text(core.slices, *call.resource, *page, *fields);
  }
  auto response = co_await list_as_negotiated(core, accepted, std::move(text));
  if (response && plain && !fields->picks.empty())
    response->headers.set("Preference-Applied", "fields");
  co_return response;
}

}  // namespace muster::apiserver
