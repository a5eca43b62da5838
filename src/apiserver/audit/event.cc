#include "apiserver/audit/event.h"

#include <algorithm>
#include <cstring>

#include "apiserver/audit/text.h"
#include "apiserver/rest/read_ahead.h"
#include "base/strings.h"
#include "json/text.h"
#include "json/yaml.h"
#include "kube/apply/managed.h"
#include "kube/names.h"
#include "kube/schema/protobuf.h"
#include "kube/security/names.h"

namespace muster::apiserver::audit {
namespace {

/// An error that is longer is no Status of ours.
constexpr std::size_t kFailureBytesMax = 64 * 1024;

/// A member whose value is a text; `before` is what stands before that.
[[gnu::always_inline]] inline void add(Text& out, std::string_view before, std::string_view value) {
  out.add(before);
  out.add_string(value);
}

inline void add_unless_empty(Text& out, std::string_view before, std::string_view value) {
  if (!value.empty()) add(out, before, value);
}

/// What holds nothing to escape.
[[gnu::always_inline]] inline void add_plain(Text& out,
                                             std::string_view before,
                                             std::string_view value) {
  out.add(before);
  out.add_plain(value);
}

void add_list(Text& out, const std::vector<std::string>& values) {
  std::string_view before = "[";
  for (const std::string& each : values) add(out, std::exchange(before, ","), each);
  out.add(values.empty() ? "[]" : "]");
}

void add_user(Text& out, const User& user) {
  add(out, R"({"username":)", user.name);
  add_unless_empty(out, R"(,"uid":)", user.uid);
  if (!user.groups.empty()) {
    out.add(R"(,"groups":)");
    add_list(out, user.groups);
  }
  if (!user.extra.empty()) {
    std::string_view before = R"(,"extra":{)";
    for (const auto& [key, values] : user.extra) {
      add(out, std::exchange(before, ","), key);
      out.add(":");
      add_list(out, values);
    }
    out.add("}");
  }
  out.add("}");
}

/// Null if it is no object that can be read: the body of a request may be anything.
json::Value value_of(const Content& content) {
  // A copy in memory of its own: that of the object may be in use on the loop.
  if (content.object) return json::Value(*content.object, json::Storage());
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

constexpr std::string_view kStatus = R"(,"responseStatus":{"metadata":{})", kCode = R"(,"code":)";

/// A Status without what its metadata and details say.
void add_status(std::string& out, const Bodies& bodies) {
  if (bodies.code == 0) return;
  out += kStatus;
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
  out.append(kCode).append(std::to_string(bodies.code)).append(1, '}');
}

/// The same of an answer that says nothing to read.
void add_code(Text& out, int code) {
  if (code == 0) return;
  out.add(kStatus);
  out.add(kCode);
  out.add_digits<3>(static_cast<std::uint32_t>(code));
  out.add("}");
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

void add_reference(Text& out, const Event& event) {
  add_plain(out, R"(,"objectRef":{"resource":)", event.resource);
  add_unless_empty(out, R"(,"namespace":)", event.ns);
  add_unless_empty(out, R"(,"name":)", event.name);
  if (!event.group.empty()) add_plain(out, R"(,"apiGroup":)", event.group);
  add_plain(out, R"(,"apiVersion":)", event.version);
  add_unless_empty(out, R"(,"subresource":)", event.subresource);
  out.add("}");
}

std::string_view host_of(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

void add_sources(Text& out, const Event& event) {
  std::string_view before = R"(,"sourceIPs":[)";
  if (!event.forwarded.empty()) {
    for (const std::string& each : split_nonempty(event.forwarded, ','))
      add(out, std::exchange(before, ","), trim(each));
  }
  if (!event.source.empty()) add(out, std::exchange(before, ","), host_of(event.source));
  if (before == ",") out.add("]");
}

void add_who(Text& out, const Event& event) {
  out.add(R"(,"user":)");
  add_user(out, event.user);
  if (event.acting != nullptr) {
    out.add(R"(,"impersonatedUser":)");
    add_user(out, *event.acting);
  }
  add_sources(out, event);
  add_unless_empty(out, R"(,"userAgent":)", event.agent);
}

/// How every line of a level begins, up to its id.
std::string_view head_of(Level level) {
  static constexpr std::string_view kHeads[] = {
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"None","auditID":")",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":")",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":")",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":")"};
  return kHeads[static_cast<int>(level)];
}

/// What stands between the id and the address.
std::string_view middle_of(Stage stage) {
  static constexpr std::string_view kMiddles[] = {R"(","stage":"RequestReceived","requestURI":)",
                                                  R"(","stage":"ResponseStarted","requestURI":)",
                                                  R"(","stage":"ResponseComplete","requestURI":)",
                                                  R"(","stage":"Panic","requestURI":)"};
  return kMiddles[static_cast<int>(stage)];
}

void add_head(Text& out, const Event& event, Phrases& phrases) {
  out.add(head_of(event.level));
  out.add(event.id);
  add(out, middle_of(event.stage), event.uri);
  // Verbs of resources are words of ours.
  if (event.resource.empty())
    add(out, R"(,"verb":)", event.verb);
  else
    add_plain(out, R"(,"verb":)", event.verb);
  out.add(phrases.who(event));
  if (!event.resource.empty()) add_reference(out, event);
}

/// "2026-11-18T15:04:05.000000Z" with the quotes. Times of neighbouring lines are mostly of one
/// second.
void add_time(Text& out, std::string_view before, Time time) {
  constexpr std::int64_t kMicros = 1'000'000;
  constexpr std::size_t kLength = sizeof "\"2006-01-02T15:04:05." - 1;
  thread_local std::int64_t second = -1;
  thread_local char text[kLength];
  if (time.us < 0) return add(out, before, format_micro_time(time));
  if (time.us / kMicros != second) {
    const std::string made = "\"" + format_time(time);
    if (made.size() != kLength) return add(out, before, format_micro_time(time));  // after 9999
    second = time.us / kMicros;
    std::memcpy(text, made.data(), kLength);
    text[kLength - 1] = '.';
  }
  out.add(before);
  out.add({text, kLength});
  out.add_digits<6>(static_cast<std::uint32_t>(time.us % kMicros));
  out.add("Z\"");
}

void add_decision(Text& out, std::string_view decision, std::string_view reason) {
  add_plain(out, R"(,"annotations":{)", kube::names::access::kDecision);
  out.add(":");
  out.add_plain(decision);
  add_plain(out, ",", kube::names::access::kReason);
  add(out, ":", reason);
}

void add_annotations(Text& out, const Event& event, Phrases& phrases) {
  const bool reasoned = event.reason != nullptr && *event.reason;
  if (reasoned && event.annotations.empty()) return out.add(phrases.why(*event.reason));
  std::string_view before = R"(,"annotations":{)";
  if (!event.decision.empty()) {
    add_decision(out, event.decision, reasoned ? **event.reason : std::string_view());
    before = ",";
  }
  for (const auto& [key, value] : event.annotations) {
    add_plain(out, std::exchange(before, ","), key);
    add(out, ":", value);
  }
  if (before == ",") out.add("}");
}

void add_end(Text& out, const Event& event, Phrases& phrases) {
  add_time(out, R"(,"requestReceivedTimestamp":)", event.received);
  add_time(out, R"(,"stageTimestamp":)", event.at);
  add_annotations(out, event, phrases);
  out.add("}\n");
}

/// What `add` adds.
template <typename Add>
std::string text_of(const Add& add) {
  Block block;
  {
    Text out(block);
    add(out);
  }
  return std::string(block.view());
}

/// Texts of one kind differ in length or at their end, and most are longer than what a hash of all
/// of it would be worth.
std::uint64_t mark_of(std::string_view text) {
  std::uint64_t end = 0;
  if (text.size() >= sizeof end) {
    std::memcpy(&end, text.data() + text.size() - sizeof end, sizeof end);
  } else {
    for (const char c : text) end = end << 8 | static_cast<unsigned char>(c);
  }
  return end + text.size();
}

/// Which of a few places.
std::size_t place_of(std::uint64_t mark, std::size_t places) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  return (mark * kMix >> 32) % places;
}

}  // namespace

const std::string& Phrases::who(const Event& event) {
  const std::string_view host = host_of(event.source);
  const auto is_of_event = [&](const Who& known) {
    return !known.text.empty() && known.user.same_as(event.user) && known.host == host &&
           known.agent == event.agent && known.forwarded == event.forwarded;
  };
  if (event.acting != nullptr) {
    other_.text = text_of([&](Text& out) { add_who(out, event); });
    return other_.text;
  }
  if (latest_ != &other_ && is_of_event(*latest_)) return latest_->text;
  const std::uint64_t mark =
      mark_of(event.user.name) + 3 * mark_of(host) + 5 * mark_of(event.agent);
  Who& known = who_[place_of(mark, who_.size())];
  latest_ = &known;
  if (!is_of_event(known)) {
    known.user = event.user;
    known.host = host;
    known.forwarded = event.forwarded;
    known.agent = event.agent;
    known.text = text_of([&](Text& out) { add_who(out, event); });
  }
  return known.text;
}

const std::string& Phrases::why(const Reason& reason) {
  Why& known = why_[place_of(reinterpret_cast<std::uintptr_t>(reason.get()), why_.size())];
  if (known.reason != reason) {
    known.reason = reason;
    known.text = text_of([&](Text& out) {
      add_decision(out, "allow", *reason);
      out.add("}");
    });
  }
  return known.text;
}

void Lines::add(const Event& event, std::unique_ptr<Bodies> bodies, Phrases& phrases) {
  ++count_;
  Text out(text_);
  add_head(out, event, phrases);
  if (!bodies) {
    add_code(out, event.code);
  } else {
    bodies->code = event.code;
    out.finish();
    gap_bytes_ += sizeof(*bodies) + bodies->failure.text.size() + bodies->request.text.size() +
                  bodies->response.text.size();
    gaps_.emplace_back(text_.size(), std::move(bodies));
  }
  add_end(out, event, phrases);
}

Block Lines::take() {
  if (gaps_.empty()) return std::move(text_);
  Block out;
  out.reserve(bytes());
  std::size_t done = 0;
  std::string filling;
  for (const auto& [at, bodies] : gaps_) {
    out.append(text_.view().substr(done, at - done));
    filling.clear();
    add_bodies(filling, *bodies);
    out.append(filling);
    done = at;
  }
  out.append(text_.view().substr(done));
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
