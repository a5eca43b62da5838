/// Role-based access control as Kubernetes evaluates it, over the stored roles and bindings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
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
                             Reason* reason = nullptr) const;
  /// Forbidden with Kubernetes' text.
  Result<void> check(const User& user,
                     const Attributes& attributes,
                     Reason* reason = nullptr) const;
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
  struct Decision {
    bool allowed = false;
    Reason reason;
    bool by_name = false;  // a rule that names objects was asked: it holds for one object only
  };
  [[nodiscard]] Decision decide(const User& user, const Attributes& attributes) const;
  /// Decides, or remembers: the same few questions are asked again and again, and roles seldom change.
  /// Of one object where rules name objects, otherwise of all that the question fits.
  /// Valid until the next call.
  const Decision& decision(const User& user, const Attributes& attributes) const;

  Core& core_;
  /// Those of roles and bindings, looked up once.
  mutable std::vector<const Collection*> collections_;
  /// By question, as of the change of a role or binding that this number counts.
  mutable std::unordered_map<std::string, Decision> decided_;
  mutable std::uint64_t decided_at_ = 0;
  mutable std::string question_;  // kept for its room
  mutable Decision latest_;
};

/// ClusterRoles and bindings every cluster has.
std::vector<json::Value> default_roles();

}  // namespace muster::apiserver
