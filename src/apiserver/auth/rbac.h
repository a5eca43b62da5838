/// Role-based access control as Kubernetes evaluates it, over the stored roles and bindings.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

/// What is to be done to what.
struct Attributes {
  std::string verb;
  std::string group, resource, subresource, name, ns;
  std::string path;  // non-resource requests: set, and the above (but verb) empty
};

class Authorizer {
 public:
  explicit Authorizer(Core& core) : core_(core) {}
  /// `reason`, unless null, receives which binding allows it, in Kubernetes' words.
  [[nodiscard]] bool allowed(const User& user,
                             const Attributes& attributes,
                             std::string* reason = nullptr) const;
  /// Forbidden with Kubernetes' text.
  Result<void> check(const User& user,
                     const Attributes& attributes,
                     std::string* reason = nullptr) const;
  /// Each rule that applies to the user in the namespace (and cluster-wide); `visit` returns false
  /// to stop.
  void each_rule(const User& user,
                 std::string_view ns,
                 const std::function<bool(const json::Value& rule)>& visit) const;
  /// Each rule of the role that a binding in `ns` refers to; false if `visit` stopped.
  bool each_rule_of(const json::Value& role_ref,
                    std::string_view ns,
                    const std::function<bool(const json::Value& rule)>& visit) const;

 private:
  /// Each binding that applies to the user, with the subject that makes it apply; `visit` returns
  /// false to stop.
  using VisitBinding = std::function<bool(const StoredPtr& binding, const json::Value& subject)>;
  void each_binding(const User& user, std::string_view ns, const VisitBinding& visit) const;
  /// As Kubernetes writes it into the audit log. The same few bindings allow nearly everything, so
  /// what was said last is kept; an entry holds its binding, so that no other has its address.
  const std::string& describe(const StoredPtr& binding, const json::Value& subject) const;
  struct Described {
    StoredPtr binding;
    const json::Value* subject = nullptr;
    std::string text;
  };

  Core& core_;
  mutable std::array<Described, 64> described_;
};

/// ClusterRoles and bindings every cluster has.
std::vector<json::Value> default_roles();

}  // namespace muster::apiserver
