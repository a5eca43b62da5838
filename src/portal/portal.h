/// The portal's server: a listener of its own, the pages, sessions, live data and the small API under
/// them. `muster up` and `muster run` start it the same way. On the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/client.h"
#include "client/informer.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "portal/options.h"

namespace muster::portal {

class Portal {
 public:
  /// `client` is the portal's own, and may act as others (impersonate).
  Portal(net::Loop& loop, client::Client& client, client::Informers& informers, Options options);
  ~Portal();

  /// Listens when it returns. Reads nothing of the cluster before somebody comes.
  Result<void> start();
  Task<void> stop();

  /// "http://127.0.0.1:8080/".
  [[nodiscard]] std::string address() const;
  /// Something about this user changed: password, groups, or that they are gone. `ends` sessions
  /// must be opened anew.
  void user_changed(const std::string& user, bool ends);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads the flags of `muster up` and `muster run`; absent: --portal none. Errors name the flag.
Result<std::optional<Listening>> read_listening(const std::string& portal,
                                                bool plain_http,
                                                const std::string& hosts,
                                                const std::string& prefix,
                                                const std::string& folder);

}  // namespace muster::portal
