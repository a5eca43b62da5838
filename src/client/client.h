/// Any kube-apiserver, embedded or real: the verbs of its API. Controllers, scheduler, agent and
/// CLI see the cluster only through this. Everything runs on the loop.
///
/// There are two of them: one over HTTP (make_client, connect), and the embedded server's own
/// (apiserver::Server::make_client), which takes and gives objects of this process as they are.
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
#include "kube/patch_type.h"
#include "kube/resources.h"
#include "kube/shared.h"
#include "net/http/client.h"

namespace muster::client {

using kube::ObjectPtr;
using kube::PatchType;
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
  /// Set by the watch that waits.
  std::function<void()> on_stop;

 private:
  bool stopped_ = false;
};

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

struct WatchOptions {
  ListOptions list;
  bool initial_events = false;  // begin with all there is, then a bookmark (is_initial_end)
  bool managed_fields = true;   // false: metadata.managedFields may be left out
};

struct WatchEvent {
  std::string type;  // ADDED MODIFIED DELETED BOOKMARK
  ObjectPtr object;
};

struct DeleteOptions {
  int grace_s = -1;  // -1: the object's own
  std::string propagation = "Background";
  std::string uid;  // precondition, when set
};

/// Whether the caller of a write looks at what became of the object; what nobody reads need not be
/// decoded.
enum class Answer { kObject, kNone };

/// A POST for those who send thousands, such as bindings and events. To the collection when `name`
/// is empty, else to a subresource of the object.
struct Post {
  const Resource& resource;
  std::string ns;
  std::string name;
  std::string subresource;
  json::Value body;
  /// Instead of `body`, for a client that sends text: composed directly it costs a fifth of a tree
  /// that is made, written and freed.
  std::string text;
};

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
  /// A create or post_subresource of which only the end is of interest; where the connection allows
  /// it, no coroutine waits for the answer. `done` is called on the loop, after submit() has
  /// returned. A busy server that names a time is asked again then.
  virtual void submit(Post post, std::function<void(Result<void>)> done) = 0;
  /// Watches from options.list.resource_version until the stream ends (ok) or fails; `each` returns
  /// false to stop.
  virtual Task<Result<void>> watch(Resource resource,
                                   WatchOptions options,
                                   std::function<bool(WatchEvent)> each) = 0;
  /// Any path, for discovery and raw requests. `body` null: none.
  virtual Task<Result<json::Value>> raw(std::string method,
                                        std::string target,
                                        json::Value body) = 0;

  /// For logs, exec and the like.
  virtual net::Client& http() = 0;
  /// True where bodies leave this process (Post::text); inside of it trees are passed as they are.
  [[nodiscard]] virtual bool sends_text() const = 0;
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

/// From the first that there is: the file at `path`, the files of $KUBECONFIG, inside a pod its
/// service account, the file of `muster up`, ~/.kube/config (resolve_connection, kubeconfig.h).
struct KubeconfigOptions {
  std::string path;
  std::string context;
  std::string user_agent = "muster";
};
Result<std::unique_ptr<Client>> connect(net::Loop& loop, KubeconfigOptions options);

}  // namespace muster::client
