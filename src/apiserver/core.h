/// What the parts of the server share. Each part is a class in its own file that holds a reference
/// to this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apiserver/registry/image.h"
#include "apiserver/registry/resources.h"
#include "apiserver/rest/errors.h"
#include "apiserver/rest/fanout.h"
#include "apiserver/rest/negotiate.h"
#include "apiserver/rest/turns.h"
#include "apiserver/server.h"
#include "base/gate.h"
#include "base/pace.h"
#include "json/memory.h"
#include "kube/patch_type.h"
#include "kube/shared.h"

namespace muster::apiserver {

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  /// Users of the same number are the same in everything above; 0 says nothing. Given to those who
  /// are recognised by a token that was seen before.
  std::uint64_t identity = 0;
  [[nodiscard]] bool in_group(std::string_view group) const;
  [[nodiscard]] bool same_as(const User& other) const {
    if (identity != 0 && identity == other.identity) return true;
    return name == other.name && uid == other.uid && groups == other.groups && extra == other.extra;
  }
};

/// Which binding allows something, in Kubernetes' words; shared by all whom it allows the same.
/// Null: there is nothing to say.
using Reason = std::shared_ptr<const std::string>;

/// How a write is made.
struct WriteOptions {
  std::string manager;  // empty: managedFields are left alone
  /// One of "", "status", "scale", "resize", "ephemeralcontainers", "binding", "finalize".
  std::string subresource;
  bool dry_run = false;
  bool apply = false;  // server-side apply: the new object carries its managedFields already
  std::string uid;     // preconditions, when set
  std::string resource_version;
  /// Who asks, and where warnings for them go. Null: the server itself, which may do everything.
  const User* user = nullptr;
  std::vector<std::string>* warnings = nullptr;
  /// What the `audit` level of the namespace found, for the audit log.
  std::vector<std::string>* violations = nullptr;
  /// The next state is the live one but for its status (and was made by nobody but us).
  bool status_alone = false;
  /// The object is so large that whatever needs it alone is done on a worker; what computes the next
  /// state then must not look at anything else.
  bool beside = false;
};

struct DeleteRequest {
  std::optional<std::int64_t> grace_s;
  std::string propagation;  // "", Background, Foreground, Orphan
  std::string uid, resource_version;
  bool dry_run = false;
  /// Set by eviction: runs on the live object under its lock and may refuse.
  std::function<Result<void>(const json::Value& live)> check;
};

struct Deleted {
  StoredPtr object;   // its last state
  bool gone = false;  // false: it waits for its grace period or finalizers
};

struct ReadAhead;

/// One request on its way through the server. It comes from a socket, as an HTTP request with a path
/// to be routed, or from a client of this process (rest/in_process.h), which says the same in
/// values: then `request` is empty and of `target` only the options are there.
struct Call {
  net::Request request;
  Time received;  // zero: by a client of this process
  net::Target target;
  User user;
  std::string verb;  // get list watch create update patch delete deletecollection
  /// Of a patch; nothing for a media type that the server does not know.
  std::optional<kube::PatchType> patch;
  /// Of a patch: it leaves everything but the status of a built-in kind as it is.
  bool status_alone = false;
  ResourcePtr resource;
  std::string ns, name, subresource;
  std::vector<std::string> warnings;
  /// What the `audit` level of the namespace found, for the audit log.
  std::vector<std::string> violations;
  std::string manager;
  /// A client of this process asks: objects are passed as they are, both ways.
  bool in_process = false;
  /// Its body; may be null.
  kube::ObjectPtr object;
  /// A large body that a worker has read (rest/read_ahead.h).
  std::shared_ptr<ReadAhead> ahead;
  /// What is written lies here until it is stored: the body, and the next state of the object.
  mutable json::Memory memory;
};

namespace audit {
class Log;
}
class Writer;
class Admission;
class Quota;
class Services;
class Namespaces;
class GarbageCollector;
class Crds;
class Events;
class Authenticator;
class Authorizer;
class Discovery;
class Disruption;
class GroupProtection;
class Router;
class Shares;
class Standing;
class Webhooks;

struct Core {
  Core(Env& env_in, store::Store& store_in, ServerOptions options_in);
  ~Core();

  Env& env;
  store::Store& store;
  ServerOptions options;
  Image image;
  Fanout fanout;
  Turns turns;
  Slices slices;  // of long answers
  Resources resources;
  std::optional<NodeAgent> node_agent;
  bool ready = false;
  /// Requests and housekeeping under way; closed when the server stops.
  Gate gate;
  std::size_t watches = 0;
  std::map<std::string, std::uint64_t> request_counts;  // "GET 200" -> n, for /metrics

  std::unique_ptr<audit::Log> audit;  // null: none is kept
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<Authorizer> authorizer;
  std::unique_ptr<Quota> quota;
  std::unique_ptr<Services> services;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<Webhooks> webhooks;
  std::unique_ptr<Writer> writer;
  std::unique_ptr<Namespaces> namespaces;
  std::unique_ptr<GarbageCollector> gc;
  std::unique_ptr<Crds> crds;
  std::unique_ptr<Events> events;
  std::unique_ptr<Disruption> disruption;
  std::unique_ptr<GroupProtection> protection;
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<Shares> shares;
  std::unique_ptr<Standing> standing;
  std::unique_ptr<Router> router;

  [[nodiscard]] StoredPtr find(const Resource& resource,
                               std::string_view ns,
                               std::string_view name) {
    return image.collection(resource.storage).find(resource.key(ns, name));
  }
  [[nodiscard]] Collection& collection(const Resource& resource) {
    return image.collection(resource.storage);
  }
};

}  // namespace muster::apiserver
