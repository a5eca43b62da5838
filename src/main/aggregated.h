/// The answers of `muster run`, behind an APIService of the cluster: the API server asks here in the
/// name of its users (front proxy), over TLS, with the certificate that the ConfigMap
/// kube-system/extension-apiserver-authentication vouches for.
///
/// Every replica listens; the one that leads answers, the others say 503. The Service has no
/// selector: whoever leads writes the EndpointSlice that leads here.
///
/// What visitors may do is asked of the cluster (SubjectAccessReview) and remembered for ten seconds.
/// On the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apiserver/server.h"
#include "base/gate.h"
#include "client/client.h"
#include "main/answers.h"
#include "net/http/server.h"

namespace muster {

struct AggregatedOptions {
  std::string listen;  // ADDRESS:PORT; empty: nobody listens
  std::string certificate_file, key_file;
  std::string service = "muster-answers";
  std::string ns;  // of the Service
  /// Where the API server reaches this process; empty: the address it listens at.
  std::string address;
};

std::vector<command::Flag> aggregated_flags();
AggregatedOptions aggregated_options(const command::Values& values);

/// Who asks, as the API server says.
struct FrontUser {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  [[nodiscard]] std::string key() const;
};

/// What the ConfigMap says of the API server's requests.
struct FrontProxy {
  std::string ca_pem;
  std::vector<std::string> names;  // empty: whomever the authority vouches for
  std::vector<std::string> user_headers, group_headers, uid_headers, extra_prefixes;

  bool operator==(const FrontProxy&) const = default;
};
Result<FrontProxy> parse_front_proxy(const json::Value& config_map);
/// Absent: this is not the API server, or it names nobody.
std::optional<FrontUser> front_user(const FrontProxy& proxy, const net::Request& request);

class Aggregated {
 public:
  /// `answers` gives null while this replica stands by.
  Aggregated(net::Loop& loop,
             client::Client& client,
             AggregatedOptions options,
             std::function<Answers*()> answers);

  /// Fails when the files or the address are wrong. Listening begins when the API server has said
  /// whom to trust.
  Result<void> start();
  /// From now on the Service leads here.
  void lead();
  Task<void> stop();

 private:
  struct Right {
    std::string verb, resource, ns;
    auto operator<=>(const Right&) const = default;
  };
  struct Known {
    bool allowed = false;
    Duration at{};
  };
  struct Pair {
    std::string certificate, key;
    bool operator==(const Pair&) const = default;
  };

  Task<void> keep();
  Task<Result<void>> look();
  Result<void> listen(FrontProxy proxy);
  [[nodiscard]] Result<Pair> read_pair() const;
  Task<Result<void>> write_endpoint();

  Task<void> handle(net::Request request, net::ResponseWriter& writer);
  Task<net::Response> answer(FrontUser user, net::Request request);
  /// What is remembered of it; absent: it has to be asked.
  [[nodiscard]] std::optional<bool> known(const std::string& user, const Right& right);
  Task<void> ask(FrontUser user, std::set<Right> rights);
  Task<bool> review(FrontUser user, Right right);

  net::Loop& loop_;
  client::Client& client_;
  AggregatedOptions options_;
  net::ServerOptions where_;
  std::function<Answers*()> answers_;
  std::unique_ptr<net::Server> server_;
  FrontProxy proxy_;
  Pair shown_;
  bool leads_ = false, endpoint_written_ = false;
  std::map<std::pair<std::string, Right>, Known> known_;
  std::unique_ptr<Signal> wake_;
  Gate gate_;
};

}  // namespace muster
