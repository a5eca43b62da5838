// HiveD's extender scenarios: node and pod events, HTTP requests, and the bindings that reach the
// API server.

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/strings.h"
#include "hived.h"
#include "hived/annotations.h"
#include "hived/extender.h"

namespace muster::vectors {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr Time kNow{1'700'000'000'000'000};

/// Lists that are sets: groups by name, top cells by address.
std::string set_key(const Value& item) {
  const Value& name = json::at(item, "metadata", "name");
  if (!name.is_null()) return json::dump(name);
  const Value& address = json::at(item, "cellAddress");
  return address.is_null() ? "" : json::dump(address);
}

bool matches(
    const Value& want, const Value& got, bool all_keys, std::string& why, const std::string& where);

bool matches_array(const Array& want,
                   const Array& got,
                   bool all_keys,
                   std::string& why,
                   const std::string& where) {
  if (want.size() != got.size()) {
    why = fmt::format("{} has {} elements, wanted {}", where, got.size(), want.size());
    return false;
  }
  const bool set = !want.empty() && !set_key(want[0]).empty();
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Value* other = &got[i];
    if (set) {
      other = nullptr;
      for (const Value& candidate : got) {
        if (set_key(candidate) == set_key(want[i])) other = &candidate;
      }
      if (other == nullptr) {
        why = fmt::format("{} lacks {}", where, set_key(want[i]));
        return false;
      }
    }
    if (!matches(want[i], *other, all_keys, why, fmt::format("{}[{}]", where, i))) return false;
  }
  return true;
}

bool matches(const Value& want,
             const Value& got,
             bool all_keys,
             std::string& why,
             const std::string& where) {
  if (want.is_object() && got.is_object()) {
    for (const auto& member : want.get_object()) {
      const std::string here = where + "." + std::string(member.key());
      const Value* value = got.get_object().if_contains(member.key());
      if (value == nullptr) {
        if (member.value().is_null()) continue;
        why = here + " is absent";
        return false;
      }
      if (member.key() == hived::kBindInfo) {
        const auto a = json::parse_yaml_one(json::as_string(member.value()));
        const auto b = json::parse_yaml_one(json::as_string(*value));
        if (a && b && json::equal(*a, *b)) continue;
      }
      if (!matches(member.value(), *value, all_keys, why, here)) return false;
    }
    for (const auto& member : got.get_object()) {
      if (all_keys && !want.get_object().contains(member.key()) && !member.value().is_null()) {
        why = fmt::format("{}.{} is too much", where, std::string_view(member.key()));
        return false;
      }
    }
    return true;
  }
  if (want.is_array() && got.is_array())
    return matches_array(want.get_array(), got.get_array(), all_keys, why, where);
  if (want.is_string() && json::as_string(want) == "<RFC3339 time>")
    return parse_time(json::as_string(got)).has_value();
  if (json::equal(want, got)) return true;
  why = fmt::format("{} = {}, wanted {}", where, json::dump(got), json::dump(want));
  return false;
}

/// Texts of errors are recommended, not required: the kind and the code before the message are.
bool same_error(const Value& want, const Value& got) {
  const auto kind = [](const Value& value) {
    std::string text = value.is_object() ? json::text_at(value, "Error") : json::text(value);
    const auto code = text.find(", Message:");
    return std::pair{value.is_object() ? text.substr(0, code) : std::string(), text.empty()};
  };
  if (want.is_object() != got.is_object()) return false;
  return !kind(want).second && kind(want) == kind(got);
}

class Run {
 public:
  Run(const std::string& path, const Value& file)
      : folder_(std::filesystem::path(path).parent_path()), file_(file) {}

  HivedOutcome run() {
    const auto error = load();
    const bool want_error = !json::at(file_, "expectConfigError").is_null();
    if (error.has_value() != want_error)
      add("load",
          want_error ? json::dump(json::at(file_, "expectConfigError"))
                     : "the configuration is accepted",
          error.value_or("it was accepted"));
    if (error) return std::move(out_);
    const Array& steps = json::array_at(file_, "steps");
    for (std::size_t i = 0; i < steps.size() && out_.failures.size() <= 3; ++i) {
      step_ = fmt::format(
          "{} {} {}", i, json::text_at(steps[i], "op"), json::text_at(steps[i], "path"));
      step(steps[i]);
    }
    return std::move(out_);
  }

 private:
  void add(const std::string& step, std::string wanted, std::string got) {
    out_.failures.push_back({step, std::move(wanted), std::move(got)});
  }

  std::optional<std::string> load() {
    const Value& config = json::at(file_, "config");
    std::string text = config.is_object() ? json::dump(config) : json::text(config);
    if (config.is_string() && text.find('\n') == std::string::npos) {
      std::ifstream in(folder_ / text);
      if (!in) return fmt::format("cannot read \"{}\"", (folder_ / text).string());
      std::stringstream buffer;
      buffer << in.rdbuf();
      text = buffer.str();
    }
    const std::string extra = json::text_at(file_, "configExtra");
    if (!extra.empty()) text += (text.empty() || text.back() == '\n' ? "" : "\n") + extra;
    auto parsed = hived::parse_config(text);
    if (!parsed) return parsed.error().message;
    auto made = hived::Extender::create(*parsed);
    if (!made) return made.error().message;
    extender_.emplace(std::move(*made));
    if (json::string_at(file_, "initialNodes") == "allHealthy") {
      std::vector<std::string> names;
      for (const auto& node : extender_->allocator().cells().nodes) names.push_back(node.name);
      for (const std::string& name : names) extender_->node_added(name, true);
    }
    return std::nullopt;
  }

  /// An assertion that this runner does not know must not pass unseen.
  void check_known(const Value& expect) {
    for (const auto& member : json::as_object(expect)) {
      const std::string_view key = member.key();
      if (key == "anyOf") {
        for (const Value& one : json::as_array(member.value())) check_known(one);
      } else if (key != "status" && key != "contentType" && key != "body" && key != "k8sBindings" &&
                 key != "ok") {
        add(step_, "an assertion of the format", fmt::format("unknown \"{}\"", key));
      }
    }
  }

  void step(const Value& s) {
    check_known(json::at(s, "expect"));
    const std::string op = json::text_at(s, "op");
    const Value& node = json::at(s, "node");
    const std::string node_name = node.is_string() ? json::text(node) : json::text_at(node, "name");
    const Value& ready = json::at(node, "ready");
    if (!ready.is_null() && !ready.is_string())
      add(step_, "ready as text, such as \"True\"", json::dump(ready));
    const bool healthy =
        json::as_string(ready, "True") == "True" && !json::bool_at(node, "unschedulable");
    if (op == "nodeAdded" || op == "nodeUpdated")
      extender_->node_added(node_name, healthy);
    else if (op == "nodeDeleted")
      extender_->node_deleted(node_name);
    else if (op == "podAdded")
      extender_->pod_added(json::at(s, "pod"), kNow);
    else if (op == "podUpdated")
      extender_->pod_updated(json::at(s, "pod"), kNow);
    else if (op == "podDeleted")
      extender_->pod_deleted(json::at(s, "pod"));
    else if (op == "setBindStatus")
      bind_status_ = static_cast<int>(
          json::as_int(json::at(s, "status"), json::as_int(json::at(s, "code"), 201)));
    else if (op == "http")
      http(s);
    else
      add(step_, "an operation of the format", "unknown op " + op);
    check_bindings(json::at(s, "expect"));
    bindings_.clear();
  }

  void http(const Value& s) {
    const Value& expect = json::at(s, "expect");
    const Value& body = json::at(s, "body");
    const std::string text = !json::at(s, "rawBody").is_null() ? json::text_at(s, "rawBody")
                             : body.is_null()                  ? ""
                                                               : json::dump(body);
    auto answer = extender_->handle(
        json::as_string(json::at(s, "method"), "GET"), json::string_at(s, "path"), text, kNow);
    if (!answer.binding.is_null()) {
      bindings_.push_back(answer.binding);
      if (answer.waits_for_binding) answer = hived::Extender::bound(bindings_.back(), bind_status_);
    }
    const Value& any = json::at(expect, "anyOf");
    const Array options = any.is_array() ? any.get_array() : Array{expect};
    std::string first;
    for (const Value& option : options) {
      std::string why;
      bool exact = true;
      if (answer_matches(option, expect, answer, exact, why)) {
        ++(exact ? out_.exact : out_.equivalent);
        if (!exact && out_.first_equivalent.empty())
          out_.first_equivalent =
              fmt::format("{}: wanted {}, got {}", step_, json::dump(expect), answer.body);
        return;
      }
      if (first.empty()) first = why;
    }
    add(step_, json::dump(expect), fmt::format("{} {} ({})", answer.status, answer.body, first));
  }

  static bool answer_matches(const Value& option,
                             const Value& expect,
                             const hived::HttpAnswer& answer,
                             bool& exact,
                             std::string& why) {
    const auto field = [&](const char* key) -> const Value& {
      return json::at(option, key).is_null() ? json::at(expect, key) : json::at(option, key);
    };
    if (!field("status").is_null() && json::as_int(field("status")) != answer.status) {
      why = fmt::format("status {}", answer.status);
      return false;
    }
    if (!field("contentType").is_null() &&
        !answer.content_type.starts_with(split(json::as_string(field("contentType")), ';')[0])) {
      why = "content type " + answer.content_type;
      return false;
    }
    const bool has_body = option.is_object() && option.get_object().contains("body");
    if (!has_body) return true;
    const auto got = json::parse(answer.body);
    if (!got) {
      exact = json::text(field("body")) == answer.body;
      return answer.status >= 300 && answer.status < 400;
    }
    // Any one of several bodies.
    const Value& bodies = json::at(field("body"), "anyOf");
    for (const Value& body : bodies.is_array() ? bodies.get_array() : Array{field("body")}) {
      if (matches(body, *got, true, why, "body")) return true;
      if (same_error(body, *got)) {
        exact = false;
        return true;
      }
    }
    return false;
  }

  /// The recorded request with all names it may go by.
  static Value request_of(const Value& binding) {
    const Value& meta = json::at(binding, "metadata");
    const std::string ns = json::text_at(meta, "namespace");
    const std::string name = json::text_at(meta, "name");
    Object out = binding.get_object();
    for (const auto& member : meta.get_object()) out[member.key()] = member.value();
    out["node"] = json::at(binding, "target", "name");
    out["method"] = "POST";
    out["path"] = fmt::format("/api/v1/namespaces/{}/pods/{}/binding", ns, name);
    out["pod"] = name;
    out["podName"] = name;
    out["podNamespace"] = ns;
    out["podUID"] = json::at(meta, "uid");
    out["body"] = binding;
    return out;
  }

  void check_bindings(const Value& expect) {
    const Value& want = json::at(expect, "k8sBindings");
    if (!want.is_array()) return;
    if (want.get_array().size() != bindings_.size()) {
      add(step_,
          fmt::format("{} bindings at the API server", want.get_array().size()),
          std::to_string(bindings_.size()));
      return;
    }
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      std::string why;
      if (!matches(want.get_array()[i], request_of(bindings_[i]), false, why, "binding"))
        add(step_, json::dump(want.get_array()[i]), why + " in " + json::dump(bindings_[i]));
    }
  }

  std::filesystem::path folder_;
  const Value& file_;
  std::optional<hived::Extender> extender_;
  std::vector<Value> bindings_;
  int bind_status_ = 201;
  std::string step_;
  HivedOutcome out_;
};

}  // namespace

HivedOutcome run_hived_extender(const std::string& path, const json::Value& file) {
  return Run(path, file).run();
}

}  // namespace muster::vectors
