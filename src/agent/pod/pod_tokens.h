/// The tokens a pod's volumes ask for: of its service account, for an audience, bound to the pod
/// (the server refuses them once it is gone), renewed while it runs.
#pragma once

#include <map>
#include <string>

#include "agent/context.h"

namespace muster::agent {

class PodTokens {
 public:
  /// Asks for those that are missing or due. One that cannot be had is asked for again soon.
  Task<void> fetch(Context& context, client::ObjectPtr pod);
  /// By audience; "" for the server's own.
  [[nodiscard]] std::map<std::string, std::string> by_audience() const;
  /// When fetch() has something to do again; zero: never.
  [[nodiscard]] Time renew_at() const;

 private:
  struct Token {
    std::string text;
    Time renew_at;
  };
  std::map<std::string, Token> tokens_;
};

}  // namespace muster::agent
