/// Any kube-apiserver, embedded or real: requests, lists, watches. Controllers, scheduler, agent
/// and CLI see the cluster only through this. Everything runs on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "client/exec_credential.h"
#include "json/json.h"
#include "kube/resources.h"
#include "kube/shared.h"
#include "net/http/client.h"

namespace muster::client {

using kube::Resource;
namespace resources = kube::resources;

/// Ends a watch from outside: stop() makes it return soon. Used on the loop.
class StopSource {
 public:
  void stop() {
    stopped_ = true;
    if (on_stop) on_stop();
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  std::function<void()> on_stop;  // set by whoever waits

 private:
  bool stopped_ = false;
};

enum class PatchType { kJson, kMerge, kStrategic, kApply };

struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  int limit = 0;                     // page size; all pages are fetched
  std::shared_ptr<StopSource> stop;  // watches only; may be null
};

struct List {
  std::vector<json::Value> items;
  std::string resource_version;
};

struct DeleteOptions {
  int grace_s = -1;  // -1: the object's own
  std::string propagation = "Background";
  std::string uid;  // precondition, when set
};

using ObjectPtr = kube::ObjectPtr;

struct WatchEvent {
  std::string type;  // ADDED MODIFIED DELETED BOOKMARK
  ObjectPtr object;
};

/// Whether the caller of a write looks at what became of the object; what nobody reads need not be
/// decoded.
enum class Answer { kObject, kNone };

class Client {
 public:
  virtual ~Client() = default;

  virtual Task<Result<json::Value>> get(const Resource& resource,
                                        std::string ns,
                                        std::string name) = 0;
  virtual Task<Result<List>> list(const Resource& resource, ListOptions options) = 0;
  virtual Task<Result<json::Value>> create(const Resource& resource,
                                           std::string ns,
                                           json::Value object,
                                           Answer answer = Answer::kObject) = 0;
  virtual Task<Result<json::Value>> update(const Resource& resource, json::Value object) = 0;
  virtual Task<Result<json::Value>> update_status(const Resource& resource, json::Value object) = 0;
  /// `subresource` empty for the object itself, else "status", "scale", …
  virtual Task<Result<json::Value>> patch(const Resource& resource,
                                          std::string ns,
                                          std::string name,
                                          std::string subresource,
                                          PatchType type,
                                          json::Value patch,
                                          Answer answer = Answer::kObject) = 0;
  virtual Task<Result<void>> remove(const Resource& resource,
                                    std::string ns,
                                    std::string name,
                                    DeleteOptions options) = 0;
  /// POST to a subresource, e.g. "binding" or "eviction".
  virtual Task<Result<json::Value>> post_subresource(const Resource& resource,
                                                     std::string ns,
                                                     std::string name,
                                                     std::string subresource,
                                                     json::Value body,
                                                     Answer answer = Answer::kObject) = 0;
  /// Any path, for discovery and raw requests. `body` null: none.
  virtual Task<Result<json::Value>> raw(std::string method,
                                        std::string target,
                                        json::Value body) = 0;
  /// Watches from options.resource_version until the stream ends (ok) or fails; `each` returns
  /// false to stop.
  virtual Task<Result<void>> watch(const Resource& resource,
                                   ListOptions options,
                                   std::function<bool(WatchEvent)> each) = 0;

  /// For logs, exec and the like.
  virtual net::Client& http() = 0;
  [[nodiscard]] virtual std::string default_namespace() const = 0;
};

/// Over any HTTP client; adds `token` as bearer when not empty. `user_agent` names the field
/// manager.
struct ClientOptions {
  std::string token;
  std::string user_agent = "muster";
  std::string default_namespace = "default";
  std::string token_file;     // read again every minute, for tokens that rotate
  ExecCommand token_command;  // run again when the token expires or is refused
  Time token_expires;         // of `token`; zero: unknown
};
std::unique_ptr<Client> make_client(Env& env,
                                    std::unique_ptr<net::Client> http,
                                    ClientOptions options);

/// From a kubeconfig file ($KUBECONFIG, $MUSTER_HOME/kubeconfig, ~/.kube/config when path is
/// empty), or the in-cluster account when there is none.
struct KubeconfigOptions {
  std::string path;
  std::string context;
  std::string user_agent = "muster";
};
Result<std::unique_ptr<Client>> connect(net::Loop& loop, KubeconfigOptions options);

}  // namespace muster::client
