/// Streams that are open: watches, logs, shells, forwarded ports. Kubernetes asks once, when they
/// begin; here they end when whoever opened them may no longer: their token was revoked or has
/// expired, their account is gone, the right was taken from them.
///
/// They are looked at a second after roles, bindings, accounts or Secrets have changed, and every
/// minute for what time does; a few at a time. Runs on the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "apiserver/auth/rbac.h"
#include "net/http/ending_writer.h"

namespace muster::apiserver {

class Standing {
 public:
  explicit Standing(Core& core);
  void observe(const Collection& collection);

  /// One stream, while it is open.
  class Open {
   public:
    /// All of `needed` are asked for again.
    Open(Standing& standing,
         const net::Request& request,
         std::vector<Attributes> needed,
         net::EndingWriter& writer);
    Open(const Open&) = delete;
    ~Open();

   private:
    friend class Standing;
    Standing& standing_;
    std::uint64_t id_;
    net::Request credential_;  // who it is, and whom they act as; nothing else of the request
    std::vector<Attributes> needed_;
    net::EndingWriter& writer_;
  };

 private:
  [[nodiscard]] bool holds(const Open& open) const;
  void look_in(Duration delay);
  void look(std::uint64_t from);

  Core& core_;
  std::map<std::uint64_t, Open*> open_;
  std::uint64_t next_id_ = 0;
  std::vector<const Collection*> decisive_;  // what rights depend on
  std::unique_ptr<Timer> timer_;
  Duration due_{};  // when the timer looks
};

}  // namespace muster::apiserver
