/// OpenPAI's side of a cluster as a whole: its virtual clusters, people, jobs and REST API. `muster
/// up` and `muster run` start it the same way; the portal uses its parts. On the loop.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/gate.h"
#include "client/client.h"
#include "client/informer.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "pai/cells/cells.h"
#include "pai/leftovers.h"
#include "pai/people/people.h"
#include "pai/rest/rest.h"

namespace muster::pai {

struct ServiceOptions {
  RestOptions rest;
  /// Where REST has a port of its own, "ADDRESS:PORT"; empty: it has none.
  std::string listen;
  /// The first administrator's password stands in this file; empty: one is made up.
  std::string admin_password_file;
  /// Where a made-up password is kept for its owner, mode 0600; empty: none is made up, and without
  /// a file there is no first administrator.
  std::string keep_password_in;
};

class Service {
 public:
  Service(net::Loop& loop,
          client::Client& client,
          client::Informers& informers,
          ServiceOptions options);
  /// Returns once it answers.
  Task<Result<void>> start();
  Task<void> stop();

  [[nodiscard]] People& people() { return people_; }
  [[nodiscard]] Cells& cells() { return cells_; }
  [[nodiscard]] JobIndex& jobs() { return index_; }
  /// The virtual clusters as counted last, without waiting; what has changed since is counted soon.
  std::shared_ptr<const Use> recent_use();
  /// For paths below /api/ and /rest-server/api/.
  [[nodiscard]] net::Handler handler() { return rest_.handler(); }
  /// Of the port of its own; 0: it has none.
  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : 0; }
  /// The password of the administrator that this start made up; empty if it made none.
  [[nodiscard]] const std::string& first_password() const { return first_password_; }

 private:
  Task<void> prepare();
  Task<Result<void>> make_admin();
  void vcs_changed();
  void follow_services();
  Task<void> match_groups();

  net::Loop& loop_;
  ServiceOptions options_;
  client::Informers& informers_;
  Cells cells_;
  People people_;
  JobIndex index_;
  rest::Attempts attempts_;
  Leftovers leftovers_;
  Rest rest_;
  std::unique_ptr<net::Server> server_;
  std::string first_password_;
  bool started_ = false;
  Gate gate_;
};

}  // namespace muster::pai
