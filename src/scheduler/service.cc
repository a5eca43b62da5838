#include "scheduler/service.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "hived/config.h"

namespace muster::scheduler {
namespace {

tl::unexpected<Error> in_file(const std::string& path, Error error) {
  error.message = fmt::format("{}: {}", path, error.message);
  return fail(std::move(error));
}

}  // namespace

Result<void> read_files(ServiceOptions& options) {
  const bool absent = options.config_optional && !std::filesystem::exists(options.config_file);
  if (!options.config_file.empty() && !absent) {
    const auto text = read_file(options.config_file);
    if (!text) return fail(text.error());
    auto config = options.parse_config(*text);
    if (!config) return in_file(options.config_file, config.error());
    for (const std::string& idle : config->without_effect) {
      log::warn("scheduler", "{}: {} is accepted and has no effect", options.config_file, idle);
    }
    options.scheduling.engine = std::move(config->engine);
    options.scheduling.backfill = config->backfill;
  }
  if (!options.cells_file.empty()) {
    const auto text = read_file(options.cells_file);
    if (!text) return fail(text.error());
    auto config = hived::parse_config(*text);
    if (!config) return in_file(options.cells_file, config.error());
    for (const std::string& warning : config->warnings)
      log::warn("hived", "{}: {}", options.cells_file, warning);
    options.scheduling.cells = std::move(config->cells);
  }
  return {};
}

Service::Service(Env& env,
                 client::Client& client,
                 client::Informers& informers,
                 ServiceOptions options)
    : env_(env), client_(client), informers_(informers), options_(std::move(options)) {}

Task<Result<void>> Service::start() {
  const bool from_cluster = options_.cells_file.empty();
  Result<std::string> cells = std::string();
  if (from_cluster)
    cells = co_await read_cells(client_, options_.scheduling);
  else if (options_.keep_cells)
    cells = read_file(options_.cells_file);
  if (!cells) co_return fail(cells.error());
  auto made = make_scheduler(env_, client_, informers_, options_.scheduling);
  if (!made) co_return fail(made.error());
  scheduler_ = std::move(*made);
  if (!from_cluster && options_.keep_cells) {
    const auto written = co_await write_cells(client_, *cells);
    if (!written) co_return written;
  }
  scheduler_->start();
  if (from_cluster || options_.keep_cells) {
    live_cells_ = std::make_unique<LiveCells>(
        env_, client_, informers_, *scheduler_, std::move(*cells), options_.scheduling.name);
    live_cells_->start();
  }
  if (!options_.config_file.empty()) {
    ConfigFile file(options_.config_file, options_.parse_config, options_.config_optional);
    live_config_ = std::make_unique<LiveConfig>(env_, std::move(file), *scheduler_);
    live_config_->start();
  }
  co_return Result<void>();
}

Task<void> Service::finish(Duration most) {
  if (scheduler_) co_await scheduler_->finish(most);
}

Task<void> Service::stop() {
  if (live_config_) live_config_->stop();
  if (live_cells_) co_await live_cells_->stop();
  if (scheduler_) co_await scheduler_->stop();
}

std::vector<std::string> Service::unknown() const {
  return scheduler_ ? scheduler_->unknown() : std::vector<std::string>();
}

}  // namespace muster::scheduler
