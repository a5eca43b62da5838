#include "apiserver/registry/limit_ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

using Amounts = std::map<std::string, Quantity>;

Amounts amounts(const json::Value& list) {
  Amounts out;
  for (const auto& member : json::as_object(list)) {
    const auto value = parse_quantity(json::as_string(member.value()));
    if (value) out.emplace(std::string(member.key()), *value);
  }
  return out;
}

void add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    const auto [at, fresh] = sum.emplace(name, amount);
    if (!fresh) at->second = at->second + amount;
  }
}

void raise(Amounts& most, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    const auto [at, fresh] = most.emplace(name, amount);
    if (!fresh && at->second < amount) at->second = amount;
  }
}

/// What the pod needs at its fullest: its containers together, or one init container with the
/// sidecars before it; what is set for the pod as a whole stands above both.
Amounts of_pod(const json::Value& pod, std::string_view which) {
  Amounts sum, sidecars, starting;
  for (const json::Value& container : json::array_at(pod, "spec", "containers"))
    add(sum, amounts(json::at(container, "resources", which)));
  for (const json::Value& container : json::array_at(pod, "spec", "initContainers")) {
    Amounts own = amounts(json::at(container, "resources", which));
    if (json::string_at(container, "restartPolicy") == "Always") {
      add(sum, own);
      add(sidecars, own);
      own = sidecars;
    } else {
      add(own, sidecars);
    }
    raise(starting, own);
  }
  raise(sum, starting);
  for (const auto& [name, amount] : amounts(json::at(pod, "spec", "resources", which))) {
    if (name == "cpu" || name == "memory") sum[name] = amount;
  }
  return sum;
}

/// Holds requests and limits against one entry of a LimitRange, and collects what is wrong.
class Bounds {
 public:
  explicit Bounds(const json::Value& entry) : entry_(entry), type_(json::text_at(entry, "type")) {}

  void check(const Amounts& requests,
             const Amounts& limits,
             std::vector<std::string>& wrong) const {
    for (const auto& [name, bound] : amounts(json::at(entry_, "min")))
      minimum(name, bound, requests, limits, wrong);
    for (const auto& [name, bound] : amounts(json::at(entry_, "max"))) {
      const std::string begin = text("maximum", name, bound);
      const auto limit = limits.find(name);
      const auto request = requests.find(name);
      if (limit == limits.end())
        wrong.push_back(begin + ".  No limit is specified");
      else if (limit->second > bound)
        wrong.push_back(fmt::format("{}, but limit is {}", begin, limit->second.text()));
      else if (request != requests.end() && request->second > bound)
        wrong.push_back(fmt::format("{}, but request is {}", begin, request->second.text()));
    }
    for (const auto& [name, bound] : amounts(json::at(entry_, "maxLimitRequestRatio")))
      ratio(name, bound, requests, limits, wrong);
  }

  /// A claim has requests alone.
  void check_claim(const Amounts& requests, std::vector<std::string>& wrong) const {
    for (const auto& [name, bound] : amounts(json::at(entry_, "min")))
      minimum(name, bound, requests, {}, wrong);
    for (const auto& [name, bound] : amounts(json::at(entry_, "max"))) {
      const std::string begin = text("maximum", name, bound);
      const auto request = requests.find(name);
      if (request == requests.end())
        wrong.push_back(begin + ".  No request is specified");
      else if (request->second > bound)
        wrong.push_back(fmt::format("{}, but request is {}", begin, request->second.text()));
    }
  }

 private:
  std::string text(std::string_view which, const std::string& name, const Quantity& bound) const {
    return fmt::format("{} {} usage per {} is {}", which, name, type_, bound.text());
  }
  void minimum(const std::string& name,
               const Quantity& bound,
               const Amounts& requests,
               const Amounts& limits,
               std::vector<std::string>& wrong) const {
    const std::string begin = text("minimum", name, bound);
    const auto request = requests.find(name);
    const auto limit = limits.find(name);
    if (request == requests.end())
      wrong.push_back(begin + ".  No request is specified");
    else if (request->second < bound)
      wrong.push_back(fmt::format("{}, but request is {}", begin, request->second.text()));
    else if (limit != limits.end() && limit->second < bound)
      wrong.push_back(fmt::format("{}, but limit is {}", begin, limit->second.text()));
  }
  void ratio(const std::string& name,
             const Quantity& bound,
             const Amounts& requests,
             const Amounts& limits,
             std::vector<std::string>& wrong) const {
    const std::string begin =
        fmt::format("{} max limit to request ratio per {} is {}", name, type_, bound.text());
    const auto request = requests.find(name);
    const auto limit = limits.find(name);
    if (request == requests.end() || request->second.is_zero()) {
      wrong.push_back(begin + ", but no request is specified or request is 0");
    } else if (limit == limits.end() || limit->second.is_zero()) {
      wrong.push_back(begin + ", but no limit is specified or limit is 0");
    } else {
      // An answer for people; what is decided is the same as Kubernetes decides, in doubles.
      const double provided =
          static_cast<double>(limit->second.milli()) / static_cast<double>(request->second.milli());
      if (provided * 1000 > static_cast<double>(bound.milli()))
        wrong.push_back(fmt::format("{}, but provided ratio is {:f}", begin, provided));
    }
  }

  const json::Value& entry_;
  std::string type_;
};

void fill_container(json::Value& container,
                    const json::Value& entry,
                    std::string_view kind,
                    std::vector<std::string>& said) {
  // Kubernetes tells of requests before limits.
  const std::pair<std::string_view, std::string_view> parts[] = {{"limits", "default"},
                                                                 {"requests", "defaultRequest"}};
  std::vector<std::string> lines;
  for (const auto& [into, from] : parts) {
    std::vector<std::string> set;
    for (const auto& member : json::object_at(entry, from)) {
      json::Object& given = json::make_object(container, {"resources", into});
      if (given.contains(member.key())) continue;
      given[member.key()] = member.value();
      set.emplace_back(member.key());
    }
    if (set.empty()) continue;
    std::sort(set.begin(), set.end());
    lines.insert(lines.begin(),
                 fmt::format("{} {} for {} {}",
                             join(set, ", "),
                             into == "limits" ? "limit" : "request",
                             kind,
                             json::string_at(container, "name")));
  }
  said.insert(said.end(), lines.begin(), lines.end());
}

std::vector<std::string> problems(const json::Value& range, const json::Value& object, bool pod) {
  std::vector<std::string> wrong;
  for (const json::Value& entry : json::array_at(range, "spec", "limits")) {
    const std::string_view type = json::string_at(entry, "type");
    const Bounds bounds(entry);
    if (!pod) {
      if (type == "PersistentVolumeClaim")
        bounds.check_claim(amounts(json::at(object, "spec", "resources", "requests")), wrong);
      continue;
    }
    if (type == "Pod") bounds.check(of_pod(object, "requests"), of_pod(object, "limits"), wrong);
    if (type != "Container") continue;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const json::Value& container : json::array_at(object, "spec", list))
        bounds.check(amounts(json::at(container, "resources", "requests")),
                     amounts(json::at(container, "resources", "limits")),
                     wrong);
    }
  }
  return wrong;
}

}  // namespace

bool set_limit_defaults(Core& core, const std::string& ns, json::Value& pod) {
  bool any = false;
  core.image.collection("limitranges").each_in(ns, [&](const StoredPtr& range) {
    any = true;
    std::vector<std::string> said;
    for (const auto& [list, kind] :
         {std::pair{"containers", "container"}, std::pair{"initContainers", "init container"}}) {
      if (!json::at(pod, "spec", list).is_array()) continue;
      for (json::Value& container : json::make(pod, {"spec", list}).get_array()) {
        for (const json::Value& entry : json::array_at(range->object, "spec", "limits")) {
          if (json::string_at(entry, "type") == "Container")
            fill_container(container, entry, kind, said);
        }
      }
    }
    if (!said.empty())
      json::make(pod, {"metadata", "annotations", kube::names::kubernetes::kLimitRanger}) =
          "LimitRanger plugin set: " + join(said, "; ");
  });
  return any;
}

Result<void> check_limits(Core& core,
                          const Resource& resource,
                          const std::string& ns,
                          const json::Value& object) {
  Result<void> outcome;
  core.image.collection("limitranges").each_in(ns, [&](const StoredPtr& range) {
    if (!outcome) return;
    std::vector<std::string> said;
    for (std::string& each : problems(range->object, object, resource.storage == "pods")) {
      if (std::find(said.begin(), said.end(), each) == said.end()) said.push_back(std::move(each));
    }
    if (said.empty()) return;
    outcome = fail(forbidden(resource,
                             kube::name_of(object),
                             said.size() == 1 ? said[0] : "[" + join(said, ", ") + "]"));
  });
  return outcome;
}

}  // namespace muster::apiserver
