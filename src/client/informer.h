/// A local copy of one kind that follows the server: a watch that begins with what there is
/// (WatchList), or list and watch; then again from the last version. A 410 or a broken stream costs
/// another look at everything, never a lost change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/client.h"

namespace muster::client {

/// "ns/name", or "name" for cluster-scoped objects.
std::string key_of(const json::Value& object);

struct InformerHandlers {
  /// `old_object` null: added. `new_object` null: deleted (old is the last state known).
  std::function<void(const ObjectPtr& old_object, const ObjectPtr& new_object)> on_change;
  /// The first list is complete.
  std::function<void()> on_synced;
};

class Informer {
 public:
  virtual ~Informer() = default;
  virtual void start() = 0;
  virtual Task<void> stop() = 0;
  [[nodiscard]] virtual bool synced() const = 0;
  /// Ordered by key, so that iteration is deterministic.
  [[nodiscard]] virtual const std::map<std::string, ObjectPtr>& objects() const = 0;
  [[nodiscard]] virtual ObjectPtr find(const std::string& key) const = 0;
  /// Several users may share one informer. A handler added late is told of everything that exists.
  virtual void add_handlers(InformerHandlers handlers) = 0;
};

/// A resource the server does not know (404) counts as an empty, synced kind that is asked for
/// again every 30 s.
std::unique_ptr<Informer> make_informer(Env& env,
                                        Client& client,
                                        const Resource& resource,
                                        ListOptions options);

/// One informer per resource and selector, shared by all who ask.
class Informers {
 public:
  Informers(Env& env, Client& client) : env_(env), client_(client) {}
  Informer& get(const Resource& resource, ListOptions options = {});
  void start_all();
  Task<void> wait_synced();
  Task<void> stop_all();

 private:
  Env& env_;
  Client& client_;
  std::map<std::string, std::unique_ptr<Informer>> by_key_;
};

}  // namespace muster::client
