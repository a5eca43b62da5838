#include "apiserver/audit/event.h"

#include "apiserver/rest/read_ahead.h"
#include "base/strings.h"
#include "json/text.h"
#include "json/yaml.h"
#include "kube/apply/managed.h"
#include "kube/names.h"
#include "kube/schema/protobuf.h"

namespace muster::apiserver::audit {
namespace {

/// An error that is longer is no Status of ours.
constexpr std::size_t kFailureBytesMax = 64 * 1024;

/// A member whose value is a text; `before` is what stands before that.
void add(std::string& out, std::string_view before, std::string_view value) {
  out += before;
  json::append_string(out, value);
}

/// The same of what holds nothing to escape: words of ours, ids and names that were looked at.
void add_plain(std::string& out, std::string_view before, std::string_view value) {
  out.append(before).append(1, '"').append(value).append(1, '"');
}

void add_unless_empty(std::string& out, std::string_view before, std::string_view value) {
  if (!value.empty()) add(out, before, value);
}

void add_list(std::string& out, const std::vector<std::string>& values) {
  char before = '[';
  for (const std::string& each : values) {
    out += std::exchange(before, ',');
    json::append_string(out, each);
  }
  out += values.empty() ? "[]" : "]";
}

void add_user(std::string& out, const User& user) {
  add(out, R"({"username":)", user.name);
  add_unless_empty(out, R"(,"uid":)", user.uid);
  if (!user.groups.empty()) {
    out += R"(,"groups":)";
    add_list(out, user.groups);
  }
  if (!user.extra.empty()) {
    out += R"(,"extra":)";
    char next = '{';
    for (const auto& [key, values] : user.extra) {
      out += std::exchange(next, ',');
      json::append_key(out, "", key);
      add_list(out, values);
    }
    out += '}';
  }
  out += '}';
}

/// Null if it is no object that can be read: the body of a request may be anything.
json::Value value_of(const Content& content) {
  if (content.object) return *content.object;
  if (content.text.empty()) return nullptr;
  Result<json::Value> read = json::Value();
  if (content.type.find("protobuf") != std::string::npos)
    read = kube::decode_protobuf(kube::Schema::builtin(), content.text);
  else if (content.type.find("yaml") != std::string::npos)
    read = json::parse_yaml_one(content.text, kValuesMax);
  else
    read = json::parse(content.text);
  return read ? std::move(*read) : json::Value();
}

void drop_managed_fields(json::Value& object) {
  json::remove(object, {"metadata", "managedFields"});
  if (!object.is_object()) return;
  if (json::Value* items = object.get_object().if_contains("items");
      items != nullptr && items->is_array()) {
    for (json::Value& item : items->get_array()) json::remove(item, {"metadata", "managedFields"});
  }
}

json::Value body_value(const Content& content, bool omit_managed_fields) {
  json::Value value = value_of(content);
  if (omit_managed_fields)
    drop_managed_fields(value);
  else if (content.object)
    kube::unpack_managers(value);
  return value;
}

/// A Status without what its metadata and details say.
void add_status(std::string& out, const Bodies& bodies) {
  if (bodies.code == 0) return;
  out += R"(,"responseStatus":{"metadata":{})";
  if (bodies.code >= 400 && bodies.failure.text.size() <= kFailureBytesMax) {
    const json::Value status = value_of(bodies.failure);
    const bool quotes = bodies.secret && (bodies.code == 400 || bodies.code == 422);
    for (const std::string_view key : {"status", "message", "reason"}) {
      // What is wrong with a body may quote it.
      if (quotes && key == "message") continue;
      const json::Value& value = json::at(status, key);
      if (!value.is_string()) continue;
      out += ',';
      json::append_key(out, "", key);
      json::append(out, value);
    }
  }
  out.append(R"(,"code":)").append(std::to_string(bodies.code)).append(1, '}');
}

void add_bodies(std::string& out, const Bodies& bodies) {
  add_status(out, bodies);
  if (bodies.secret) return;
  for (const auto& [before, content] : {std::pair(R"(,"requestObject":)", &bodies.request),
                                        std::pair(R"(,"responseObject":)", &bodies.response)}) {
    const json::Value body = body_value(*content, bodies.omit_managed_fields);
    if (body.is_null()) continue;
    out += before;
    json::append(out, body);
  }
}

void add_reference(std::string& out, const Event& event) {
  add_plain(out, R"(,"objectRef":{"resource":)", event.resource);
  add_unless_empty(out, R"(,"namespace":)", event.ns);
  add_unless_empty(out, R"(,"name":)", event.name);
  if (!event.group.empty()) add_plain(out, R"(,"apiGroup":)", event.group);
  add_plain(out, R"(,"apiVersion":)", event.version);
  add_unless_empty(out, R"(,"subresource":)", event.subresource);
  out += '}';
}

std::string_view host_of(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

void add_sources(std::string& out, const Event& event) {
  std::string_view before = R"(,"sourceIPs":[)";
  for (const std::string& each : split_nonempty(event.forwarded, ','))
    add(out, std::exchange(before, ","), trim(each));
  if (!event.source.empty()) add(out, std::exchange(before, ","), host_of(event.source));
  if (before == ",") out += ']';
}

void add_head(std::string& out, const Event& event, Users& users) {
  add_plain(
      out, R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":)", name_of(event.level));
  add_plain(out, R"(,"auditID":)", event.id);
  add_plain(out, R"(,"stage":)", name_of(event.stage));
  add(out, R"(,"requestURI":)", event.uri);
  add(out, R"(,"verb":)", event.verb);
  out.append(R"(,"user":)").append(users.text_of(event.user));
  if (event.acting != nullptr)
    out.append(R"(,"impersonatedUser":)").append(users.text_of(*event.acting));
  add_sources(out, event);
  add_unless_empty(out, R"(,"userAgent":)", event.agent);
  if (!event.resource.empty()) add_reference(out, event);
}

/// Times of neighbouring lines are mostly of one second.
void add_time(std::string& out, std::string_view before, Time time) {
  constexpr std::int64_t kMicros = 1'000'000;
  thread_local std::int64_t second = -1;
  thread_local std::string text;  // "2006-01-02T15:04:05."
  if (time.us < 0) return add(out, before, format_micro_time(time));
  if (time.us / kMicros != second) {
    second = time.us / kMicros;
    text = format_time(time);
    text.back() = '.';
  }
  char micros[] = "000000Z\"";
  std::int64_t rest = time.us % kMicros;
  for (int at = 5; at >= 0; --at, rest /= 10) micros[at] = static_cast<char>('0' + rest % 10);
  out.append(before).append(1, '"').append(text).append(micros);
}

void add_end(std::string& out, const Event& event) {
  add_time(out, R"(,"requestReceivedTimestamp":)", event.received);
  add_time(out, R"(,"stageTimestamp":)", event.at);
  std::string_view before = R"(,"annotations":{)";
  for (const auto& [key, value] : event.annotations) {
    add_plain(out, std::exchange(before, ","), key);
    out += ':';
    json::append_string(out, value);
  }
  out += event.annotations.empty() ? "}\n" : "}}\n";
}

}  // namespace

const std::string& Users::text_of(const User& user) {
  Known& known = known_[std::hash<std::string>()(user.name) % known_.size()];
  if (known.text.empty() || known.user != user) {
    known.user = user;
    known.text.clear();
    add_user(known.text, user);
  }
  return known.text;
}

void Lines::add(const Event& event, Bodies&& bodies, Users& users) {
  ++count_;
  add_head(text_, event, users);
  if (bodies.empty()) {
    add_status(text_, bodies);
  } else {
    gap_bytes_ += sizeof(gaps_.front()) + bodies.failure.text.size() + bodies.request.text.size() +
                  bodies.response.text.size();
    gaps_.emplace_back(text_.size(), std::move(bodies));
  }
  add_end(text_, event);
}

std::string Lines::take() {
  if (gaps_.empty()) return std::move(text_);
  std::string out;
  out.reserve(bytes());
  std::size_t done = 0;
  for (const auto& [at, bodies] : gaps_) {
    out.append(text_, done, at - done);
    add_bodies(out, bodies);
    done = at;
  }
  out.append(text_, done);
  return out;
}

bool holds_secrets(std::string_view group,
                   std::string_view resource,
                   std::string_view subresource) {
  if (group.empty())
    return resource == "secrets" || (resource == "serviceaccounts" && subresource == "token");
  return group == kube::groups::kAuthentication && resource == "tokenreviews";
}

}  // namespace muster::apiserver::audit
