#include "cli/lean.h"

#include <fmt/core.h>

#include <cstring>

namespace muster::cli {
namespace {

class Pruner {
 public:
  Pruner(std::string_view text, std::string& out) : text_(text), out_(out) {}

  void value(const std::vector<Keep>& keep) {
    blanks();
    if (keep.empty()) {
      const std::size_t first = at_;
      skip();
      out_.append(text_.substr(first, at_ - first));
    } else if (here() == '{') {
      object(keep);
    } else if (here() == '[') {
      array(keep);
    } else {
      value({});
    }
  }

 private:
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void step() { at_ += at_ < text_.size() ? 1 : 0; }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }

  /// From the opening quote to behind the closing one; the text between, escapes as they are.
  std::string_view string() {
    step();
    const std::size_t first = at_;
    for (;;) {
      const void* quote = at_ < text_.size() ? std::memchr(text_.data() + at_, '"', text_.size() - at_) : nullptr;
      if (quote == nullptr) {
        at_ = text_.size();
        return text_.substr(first);
      }
      const std::size_t end = static_cast<std::size_t>(static_cast<const char*>(quote) - text_.data());
      std::size_t slashes = 0;
      while (end - slashes > first && text_[end - slashes - 1] == '\\') ++slashes;
      at_ = end + 1;
      if (slashes % 2 == 0) return text_.substr(first, end - first);
    }
  }

  void skip() {
    int depth = 0;
    do {
      switch (here()) {
        case '\0': return;
        case '"': string(); break;
        case '{':
        case '[':
          ++depth;
          ++at_;
          break;
        case '}':
        case ']':
          if (depth == 0) return;
          --depth;
          ++at_;
          break;
        case ',':
          if (depth == 0) return;
          ++at_;
          break;
        default: ++at_;
      }
    } while (depth > 0 || (here() != ',' && here() != '}' && here() != ']' && at_ < text_.size()));
  }

  void object(const std::vector<Keep>& keep) {
    out_ += '{';
    ++at_;
    bool first = true;
    for (blanks(); here() == '"'; blanks()) {
      const std::string_view key = string();
      const Keep* found = nullptr;
      for (const Keep& each : keep) {
        if (each.name == key || (found == nullptr && each.name == "*")) found = &each;
        if (each.name == key) break;
      }
      blanks();
      step();  // ':'
      if (found == nullptr) {
        blanks();
        skip();
      } else {
        if (!first) out_ += ',';
        first = false;
        out_.append("\"").append(key).append("\":");
        value(found->children);
      }
      blanks();
      if (here() == ',') ++at_;
    }
    step();  // '}'
    out_ += '}';
  }

  void array(const std::vector<Keep>& keep) {
    out_ += '[';
    ++at_;
    bool first = true;
    for (blanks(); here() != ']' && here() != '\0'; blanks()) {
      if (!first) out_ += ',';
      first = false;
      const std::size_t before = at_;
      value(keep);
      if (at_ == before) return;  // not JSON
      blanks();
      if (here() == ',') ++at_;
    }
    step();  // ']'
    out_ += ']';
  }

  std::string_view text_;
  std::string& out_;
  std::size_t at_ = 0;
};

const std::vector<Keep>& metadata_members() {
  static const std::vector<Keep> kMembers{{"name"}, {"namespace"}, {"uid"}, {"creationTimestamp"}, {"deletionTimestamp"}, {"labels"}, {"annotations"}, {"ownerReferences", {{"uid"}}}};
  return kMembers;
}

}  // namespace

std::string prune_json(std::string_view text, const std::vector<Keep>& keep) {
  std::string out;
  out.reserve(text.size() / 4);
  Pruner(text, out).value(keep);
  return out;
}

const std::vector<Keep>& job_members() {
  static const std::vector<Keep> kPriority{{"spec", {{"priorityClassName"}}}};
  static const std::vector<Keep> kMembers{
      {"apiVersion"},
      {"kind"},
      {"metadata", metadata_members()},
      {"spec", {{"runPolicy"}, {"suspend"}, {"queue"}, {"priorityClassName"}, {"scheduler"}, {"runMode"}, {"template", kPriority}, {"launcher", {{"template", kPriority}}},
                {"worker", {{"template", kPriority}}}, {"*", {{"*", {{"template", kPriority}}}}}}},
      {"status"}};
  return kMembers;
}

const std::vector<Keep>& pod_members() {
  static const std::vector<Keep> kMembers{
      {"metadata", metadata_members()},
      {"spec", {{"nodeName"}, {"containers", {{"resources", {{"limits"}}}}}, {"initContainers", {{"name"}}}}},
      {"status", {{"phase"}, {"hostIP"}, {"podIP"}, {"startTime"}, {"reason"}, {"conditions", {{"type"}, {"status"}, {"reason"}, {"message"}, {"lastTransitionTime"}}},
                  {"containerStatuses", {{"ready"}, {"state"}}}, {"initContainerStatuses", {{"state"}}}}}};
  return kMembers;
}

Task<Result<std::vector<json::Value>>> lean_list(Session& session, const client::Resource& resource, std::string ns, const std::vector<Keep>& members) {
  net::Request request = session.request("GET", resource.path(ns));
  request.headers.set("Accept", "application/json");
  const auto answer = co_await session.cluster().http().request(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) {
    const auto status = json::parse(answer->body);
    co_return fail(code_of(status ? json::as_string(json::at(*status, "reason")) : "", answer->status),
                   status ? json::text(json::at(*status, "message")) : fmt::format("the server answered {}", answer->status));
  }
  auto parsed = json::parse(prune_json(answer->body, {{"items", members}}));
  if (!parsed) co_return fail(parsed.error());
  std::vector<json::Value> items;
  if (json::Object* list = parsed->if_object()) {
    if (json::Value* found = list->if_contains("items"); found != nullptr && found->is_array()) {
      for (json::Value& item : found->get_array()) items.push_back(std::move(item));
    }
  }
  co_return items;
}

}  // namespace muster::cli
