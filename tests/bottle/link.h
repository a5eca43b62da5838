/// The way from one process to the API server of another: a client whose requests take time, are
/// refused, arrive twice, or are done without an answer; whose watches are cut; and which learns of
/// a server's death as one does over a network, by a connection that is lost.
///
/// A Place is where the server is found, whichever process is it now. Requests run in the server's
/// process through its in-process client; a caller that dies meanwhile leaves the request running.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "apiserver/server.h"
#include "client/client.h"
#include "sim_env.h"

namespace muster::bottle {

/// In per mille of requests, or of a watch's events.
struct LinkFaults {
  std::uint64_t refused = 0, lost_answer = 0, doubled = 0, late = 0, cut = 0;
};

struct LinkCounts {
  std::uint64_t requests = 0, refused = 0, lost_answers = 0, doubled = 0, late = 0, cut = 0;
  std::uint64_t broken = 0;  // by a server's death
};

class Place {
 public:
  struct Server {
    SimEnv* env = nullptr;
    apiserver::Server* server = nullptr;
    std::map<std::string, std::unique_ptr<client::Client>> clients;  // by user
  };
  /// Somebody who waits for the server.
  struct Waiting {
    std::function<void()> break_off;
  };

  /// It serves from now on.
  void set(SimEnv& env, apiserver::Server& server);
  /// Nobody serves; those who wait are told in a moment.
  void reset();
  [[nodiscard]] const std::shared_ptr<Server>& server() const { return server_; }
  void add(const std::shared_ptr<Waiting>& waiting);

  LinkFaults faults;
  LinkCounts counts;

 private:
  std::shared_ptr<Server> server_;
  std::list<std::weak_ptr<Waiting>> waiting_;
};

/// A client of one process; `user` is who it is to the server.
std::unique_ptr<client::Client> make_link(SimEnv& env, Place& place, std::string user);

}  // namespace muster::bottle
