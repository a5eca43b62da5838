/// OpenPAI's REST API, versions 1 and 2, as a handler of requests: below `/api/` on OpenPAI's own
/// port, below `/rest-server/api/` of the portal. Tokens only; cookies are not looked at. On the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "net/http/http.h"
#include "pai/cells/cells.h"
#include "pai/deploy/services.h"
#include "pai/people/people.h"
#include "pai/rest/api.h"
#include "pai/rest/jobs.h"
#include "pai/rest/limits.h"

namespace muster::pai {

struct RestOptions {
  std::string version;  // of Muster, as GET /info tells it
  // Of the jobs' pods (Facts); empty: as Facts has them.
  std::string scheduler, runtime_image;
  /// See Jobs; empty: logs go with their pods.
  rest::FormerLog former_log;
  // OpenPAI 1.8's defaults.
  std::size_t calls_per_minute = 600;  // per address
  std::size_t lists_per_minute = 120;  // per user
  std::size_t submits_per_hour = 3600;
};

struct RestParts {
  Env& env;
  client::Client& client;
  People& people;
  Cells& cells;
  JobIndex& index;
  rest::Attempts& attempts;
};

class Rest {
 public:
  Rest(RestParts parts, RestOptions options);
  /// Takes the calls of a listener. Outlived by this.
  [[nodiscard]] net::Handler handler();
  void add(std::vector<rest::Route> routes);
  /// While it is stopped (paictl service stop), every call is answered with 503.
  void set_stopped(bool stopped) { stopped_ = stopped; }
  /// What the service configuration says; the options' where it says nothing.
  void set_limits(const RateLimits& limits);

 private:
  struct Found {
    const rest::Route* route = nullptr;
    std::vector<std::string> values;
  };
  Task<void> serve(net::Request request, net::ResponseWriter& writer);
  Task<Answer<rest::Reply>> answer(rest::Call& call);
  [[nodiscard]] Found find(const std::string& method, const std::vector<std::string>& path) const;

  Env& env_;
  People& people_;
  RestOptions options_;
  bool stopped_ = false;
  rest::RateLimit calls_;
  rest::Jobs jobs_;
  std::vector<rest::Route> routes_;
};

}  // namespace muster::pai
