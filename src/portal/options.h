/// What main/ tells the portal: where to listen, and how to ask parts of the process that the portal
/// does not know itself. Each function may be empty: then its part of the portal says that it is not
/// there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "answers/live/live.h"
#include "base/result.h"
#include "base/task.h"
#include "json/json.h"
#include "net/http/http.h"
#include "pai/cells/cells.h"
#include "portal/session/user.h"

namespace muster::portal {

/// Where and how, as the flags say.
struct Listening {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  bool any_port = true;  // the next free one, when it is taken
  bool plain_http = false;
  std::vector<std::string> hosts;
  std::string prefix;
  std::string folder;  // of files, instead of those in the program
};

/// A queue as the scheduler counts it. GPUs in devices, cpu in milli, memory in bytes.
struct Amounts {
  double gpus = 0;
  std::int64_t cpu_milli = 0, memory = 0;
};
struct QueueFacts {
  std::string name, parent;
  Amounts allocated, requested, deserved;
  std::optional<Amounts> capability;
  int waiting = 0, running = 0;
};

/// The scheduler's own answer to "why does it wait", for a group or pod "ns/name".
struct WaitFacts {
  std::string reason, text, queue, subject, preemption;
  int place = 0;  // from 1
  int nodes_total = 0;
  struct Cause {
    std::string cause;
    int nodes = 0;
  };
  std::vector<Cause> causes;
  struct Shortage {
    std::string resource;
    std::int64_t wanted = 0, available = 0, limit = 0;
  };
  std::vector<Shortage> shortages;
  std::vector<std::string> ahead;
  int ahead_count = 0;
  std::int64_t start_ms = 0, until_ms = 0;
};

/// Room on nodes and a time that the scheduler has promised to a gang or pod "ns/name".
struct ReservationFacts {
  std::string holder;
  std::int64_t start_ms = 0;  // 0: not known
  std::vector<std::string> nodes;
  std::vector<std::int32_t> members;  // how many tasks each of the nodes is to take
};
struct ReservationBook {
  std::uint64_t version = 0;  // another one: something has moved
  std::vector<ReservationFacts> all;
};

/// What a policy of the scheduler is.
struct PolicyFacts {
  bool volcano = false;                     // Volcano's actions and plugins, not Muster's own keys
  std::vector<std::string> without_effect;  // accepted, and nothing here does it
};

/// Of this build.
std::string program_version();

struct Options {
  Listening listening;
  std::string certificate_pem, key_pem;        // for addresses beyond this machine
  std::vector<std::string> certificate_names;  // that the certificate holds for
  std::string version = program_version(), cluster;
  /// Adds the portal's credential to a request for the API; empty: the transport has it.
  std::function<void(net::Request&)> sign;
  std::function<std::optional<WaitFacts>(const std::string& key)> why;
  /// The nodes that a cause of such a wait means.
  std::function<std::vector<std::string>(const std::string& key, const std::string& cause)>
      nodes_of_cause;
  std::function<ReservationBook()> reservations;
  /// When what waits starts, as it was foretold last; made anew when that is too old.
  std::function<Task<Result<answers::OutlookPtr>>()> outlook;
  std::function<std::vector<QueueFacts>()> queues;
  /// Virtual clusters as they were counted last; null: there are no cells, or not yet.
  std::function<std::shared_ptr<const pai::Use>()> cells;
  /// The file with the scheduler's policy, which it reads again when it changes; empty: it cannot be
  /// seen here. `policy_optional`: it may be absent, and the defaults hold.
  std::string policy_file;
  bool policy_optional = false;
  /// Errors name the key, what was wanted and what was found.
  std::function<Result<PolicyFacts>(const std::string& text)> read_policy;
  /// The cluster's audit log, one line of JSON for each request; empty: not to be read here.
  std::string audit_file;
  /// Where is written down what people do through the portal; empty: in memory alone.
  std::string trail_file;
  /// Where samples of use are kept; empty: in memory alone.
  std::string samples_file;
  /// This program, which simulates in a process of its own, and where traces and results are kept.
  /// Empty: nothing is simulated.
  std::string simulator, simulations_folder;
  /// The first visitor has come.
  std::function<void()> visited;
  /// Somebody with a password; Unauthorized, or TooManyRequests with a time.
  std::function<Task<Result<User>>(std::string user, std::string password, std::string from)>
      sign_in;
  /// Whether somebody still has the password that is printed in documents.
  std::function<Task<bool>(std::string user)> known_password;
  /// Who one of OpenPAI's users is now; NotFound: removed.
  std::function<Task<Result<User>>(std::string user)> look_up;
  /// OpenPAI's REST API, below /rest-server.
  net::Handler rest;
  /// The same in the name of who is signed in, for /api/portal/v1/pai/….
  std::function<Task<void>(User user, net::Request request, net::ResponseWriter& writer)> rest_as;
  std::function<Task<Result<net::Response>>(User user,
                                            std::string method,
                                            std::string target,
                                            std::string body,
                                            std::string content_type)>
      rest_call;
};

}  // namespace muster::portal
