#include "apiserver/server.h"

#include "apiserver/audit/log.h"
#include "apiserver/auth/auth.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/core.h"
#include "apiserver/housekeeping/disruption.h"
#include "apiserver/housekeeping/events.h"
#include "apiserver/housekeeping/gc.h"
#include "apiserver/housekeeping/namespaces.h"
#include "apiserver/housekeeping/protection.h"
#include "apiserver/registry/admission.h"
#include "apiserver/registry/bootstrap.h"
#include "apiserver/registry/crds.h"
#include "apiserver/registry/guard.h"
#include "apiserver/registry/quota.h"
#include "apiserver/registry/services.h"
#include "apiserver/registry/webhooks.h"
#include "apiserver/registry/writer.h"
#include "apiserver/rest/discovery.h"
#include "apiserver/rest/in_process.h"
#include "apiserver/rest/router.h"
#include "apiserver/rest/shares.h"
#include "apiserver/rest/standing.h"
#include "base/log.h"

namespace muster::apiserver {
namespace {

constexpr Duration kStopNotice = std::chrono::seconds(2);

}  // namespace

Core::Core(Env& env_in, store::Store& store_in, ServerOptions options_in)
    : env(env_in),
      store(store_in),
      options(std::move(options_in)),
      image(env_in, store_in),
      fanout(env_in),
      turns(env_in),
      slices(env_in),
      gate(env_in) {
  authenticator = std::make_unique<Authenticator>(*this);
  authorizer = std::make_unique<Authorizer>(*this);
  quota = std::make_unique<Quota>(*this);
  services = std::make_unique<Services>(*this);
  admission = std::make_unique<Admission>(*this);
  webhooks = std::make_unique<Webhooks>(*this);
  writer = std::make_unique<Writer>(*this);
  namespaces = std::make_unique<Namespaces>(*this);
  gc = std::make_unique<GarbageCollector>(*this);
  crds = std::make_unique<Crds>(*this);
  events = std::make_unique<Events>(*this);
  disruption = std::make_unique<Disruption>(*this);
  protection = std::make_unique<GroupProtection>(*this);
  discovery = std::make_unique<Discovery>(*this);
  shares = std::make_unique<Shares>(env);
  standing = std::make_unique<Standing>(*this);
  router = std::make_unique<Router>(*this);
}

Core::~Core() = default;

Server::Server(Env& env, store::Store& store, ServerOptions options)
    : core_(std::make_unique<Core>(env, store, std::move(options))) {}
Server::~Server() = default;

Task<Result<void>> Server::start() {
  Core& core = *core_;
  if (core.options.audit) {
    auto opened = audit::Log::open(core.env, *core.options.audit);
    if (!opened) co_return fail(opened.error());
    core.audit = std::move(*opened);
  }
  const auto loaded = core.image.load();
  if (!loaded) co_return loaded;
  core.crds->start();
  core.services->start();
  core.gc->start();
  core.quota->start();
  core.disruption->start();
  core.image.observe([&core](Collection& collection, const Change& change) {
    core.crds->observe(collection, change);
    core.gc->observe(collection, change);
    core.quota->observe(collection, change);
    core.namespaces->observe(collection, change);
    core.disruption->observe(collection, change);
    core.protection->observe(collection, change);
    core.events->observe(collection, change);
    core.standing->observe(collection);
  });
  const auto made = co_await bootstrap(core);
  if (!made) co_return made;
  co_await core.namespaces->resume();
  core.protection->start();
  core.events->start();
  core.ready = true;
  co_return Result<void>();
}

Task<void> Server::set_endpoint(std::string address, std::uint16_t port) {
  core_->options.address = std::move(address);
  core_->options.port = port;
  co_await publish_endpoint(*core_);
}

Task<void> Server::stop() {
  Core& core = *core_;
  core.gate.close();
  // Streams to pods have their own ends, so this is bounded.
  const bool empty = co_await core.gate.wait_empty(kStopNotice);
  if (!empty) log::info("apiserver", "stops while {} requests are open", core.gate.inside());
  co_await core.image.drain();
  if (core.audit) co_await core.audit->stop();
}

net::Handler Server::handler() {
  return [router = core_->router.get()](net::Request request, net::ResponseWriter& writer) {
    return router->handle(std::move(request), writer);
  };
}

std::unique_ptr<client::Client> Server::make_client(std::string user) {
  return make_in_process_client(*core_, std::move(user));
}

void Server::set_node_agent(std::optional<NodeAgent> agent) {
  core_->node_agent = std::move(agent);
  if (core_->node_agent) report_unserved(*core_);
}

}  // namespace muster::apiserver
