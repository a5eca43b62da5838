#include "pai/service.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http/listen_address.h"
#include "net/tls/tls.h"
#include "pai/deploy/services.h"
#include "pai/people/password.h"

namespace muster::pai {
namespace {

RestOptions versioned(RestOptions options) {
  if (options.version.empty()) options.version = std::string("v") + MUSTER_VERSION;
  return options;
}

}  // namespace

Service::Service(net::Loop& loop,
                 client::Client& client,
                 client::Informers& informers,
                 ServiceOptions options)
    : loop_(loop),
      options_(std::move(options)),
      informers_(informers),
      cells_(loop, informers),
      people_(loop, client, informers, {.virtual_clusters = [this] { return cells_.vcs(); }}),
      attempts_(loop, client),
      leftovers_(loop, client, index_),
      rest_({loop, client, people_, cells_, index_, attempts_}, versioned(options_.rest)),
      gate_(loop) {}

Task<void> Service::prepare() {
  const Gate::Pass pass(gate_);
  co_await people_.prepare_nobody();
}

Task<Result<void>> Service::start() {
  cells_.follow();
  index_.follow(informers_, rest::kJobsNamespace);
  attempts_.follow(index_);
  leftovers_.follow(index_);
  follow_services();
  cells_.on_change([this] { vcs_changed(); });
  people_.directory().on_group_change([this] { vcs_changed(); });
  informers_.start_all();
  co_await informers_.wait_synced();
  const auto known = co_await people_.start();
  if (!known) co_return known;
  started_ = true;
  loop_.spawn(prepare());
  const auto admin = co_await make_admin();
  if (!admin) co_return admin;
  const auto swept = co_await leftovers_.sweep();
  if (!swept) log::warn("pai", "what jobs left behind stays: {}", swept.error().message);
  if (options_.listen.empty()) co_return Result<void>();
  auto where = net::parse_listen("--pai-rest", options_.listen);
  if (!where) co_return fail(where.error());
  auto listening = net::listen(loop_, std::move(*where), rest_.handler());
  if (!listening) {
    Error error = listening.error();
    error.message = fmt::format("cannot listen on {}: {}; choose another address with --pai-rest",
                                options_.listen,
                                error.message);
    co_return fail(std::move(error));
  }
  server_ = std::move(*listening);
  co_return Result<void>();
}

std::shared_ptr<const Use> Service::recent_use() {
  if (started_ && cells_.behind() && !gate_.closed()) {
    loop_.spawn([](Service& self) -> Task<void> {
      const Gate::Pass pass(self.gate_);
      const auto counted = co_await self.cells_.use();
      (void)counted;
    }(*this));
  }
  return cells_.last_use();
}

void Service::follow_services() {
  client::ListOptions one;
  one.ns = kServicesNamespace;
  one.field_selector = fmt::format("metadata.name={}", kServicesName);
  client::InformerHandlers handlers;
  handlers.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& map) {
    const Services services = map ? read_services(*map) : Services();
    rest_.set_stopped(services.stopped.contains(kRestServer));
    if (const auto limits = rate_limits_of(services.rest_server)) rest_.set_limits(*limits);
  };
  informers_.get(client::resources::kConfigMaps, one).add_handlers(std::move(handlers));
}

Task<void> Service::stop() {
  gate_.close();
  if (server_) co_await server_->stop();
  co_await attempts_.stop();
  co_await leftovers_.stop();
  co_await gate_.wait_empty(std::chrono::seconds(5));
}

/// The file is written before the user: a crash in between makes the next start use what it says.
Task<Result<void>> Service::make_admin() {
  if (!people_.needs_admin()) co_return Result<void>();
  std::string password;
  bool made_up = false;
  if (!options_.admin_password_file.empty()) {
    const auto text = read_file(options_.admin_password_file);
    if (!text) co_return fail(text.error());
    password = trim(*text);
    if (password.size() < kPasswordMin || password.size() > kPasswordMax)
      co_return fail(Code::kInvalid,
                     fmt::format("--admin-password-file {}: wanted a password of {} to {} "
                                 "characters, found {}",
                                 options_.admin_password_file,
                                 kPasswordMin,
                                 kPasswordMax,
                                 password.size()));
  } else if (options_.keep_password_in.empty()) {
    log::warn(
        "pai",
        "there is no administrator yet: start once with --admin-password-file FILE, and the user \"admin\" is created with the password in it");
    co_return Result<void>();
  } else if (std::filesystem::exists(options_.keep_password_in)) {
    const auto text = read_file(options_.keep_password_in);
    if (!text) co_return fail(text.error());
    password = trim(*text);
    made_up = true;
  } else {
    password = readable_password(net::random_bytes(20));
    const auto kept = write_private(options_.keep_password_in, password + "\n");
    if (!kept) co_return fail(kept.error());
    made_up = true;
  }
  const auto made = co_await people_.make_first_admin(password);
  if (!made) co_return fail(made.error());
  if (made_up) first_password_ = password;
  co_return Result<void>();
}

void Service::vcs_changed() {
  if (started_ && !gate_.closed()) loop_.spawn(match_groups());
}

Task<void> Service::match_groups() {
  const Gate::Pass pass(gate_);
  const auto matched = co_await people_.match_groups_to_vcs();
  if (!matched)
    log::warn("pai",
              "the groups do not match the virtual clusters of the cells: {}",
              matched.error().message);
}

}  // namespace muster::pai
