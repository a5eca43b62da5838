#include "main/scheduler_component.h"

#include <fmt/core.h>

#include "base/files.h"
#include "base/log.h"
#include "hived/config.h"
#include "main/hived_live.h"
#include "main/scheduler_config.h"
#include "main/scheduler_config_live.h"

namespace muster {
namespace {

class SchedulerComponent final : public Component {
 public:
  explicit SchedulerComponent(ComponentContext& context) : context_(context) {}

  [[nodiscard]] std::string name() const override { return "scheduler"; }

  Task<Result<void>> start() override {
    scheduler::Options options;
    options.name = "default-scheduler";
    const auto read =
        read_scheduler_files({context_.scheduler_config, context_.hived_config}, options);
    if (!read) co_return read;
    client_ = context_.make_client("system:muster-scheduler");
    const auto cells = co_await remembered_cells(options);
    if (!cells) co_return fail(cells.error());
    auto made =
        scheduler::make_scheduler(context_.loop, *client_, context_.informers, std::move(options));
    if (!made) co_return fail(made.error());
    scheduler_ = std::move(*made);
    if (!context_.hived_config.empty()) {
      const auto written = co_await write_hived_config_map(*client_, *cells);
      if (!written) co_return written;
    }
    scheduler_->start();
    live_ = std::make_unique<HivedLive>(
        context_.loop, *client_, context_.informers, *scheduler_, *cells, "default-scheduler");
    live_->start();
    if (!context_.scheduler_config.empty()) {
      config_live_ = std::make_unique<SchedulerConfigLive>(
          context_.loop, context_.scheduler_config, *scheduler_);
      config_live_->start();
    }
    co_return Result<void>();
  }

  Task<void> stop() override {
    if (config_live_) config_live_->stop();
    if (live_) co_await live_->stop();
    if (scheduler_) co_await scheduler_->stop();
  }

  [[nodiscard]] bool idle() const override { return !scheduler_ || scheduler_->idle(); }

 private:
  /// The text of the configuration: the file's when one was named, else what the cluster remembers.
  Task<Result<std::string>> remembered_cells(scheduler::Options& options) {
    if (!context_.hived_config.empty()) co_return read_file(context_.hived_config);
    co_return co_await cells_of_cluster(*client_, options);
  }

  ComponentContext& context_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<HivedLive> live_;
  std::unique_ptr<SchedulerConfigLive> config_live_;
};

}  // namespace

Result<void> read_scheduler_files(const SchedulerFiles& files, scheduler::Options& options) {
  const auto in_file = [](const std::string& path, Error error) {
    error.message = fmt::format("{}: {}", path, error.message);
    return fail(std::move(error));
  };
  if (!files.scheduler_config.empty()) {
    const auto text = read_file(files.scheduler_config);
    if (!text) return fail(text.error());
    auto config = parse_scheduler_config(*text);
    if (!config) return in_file(files.scheduler_config, config.error());
    for (const std::string& idle : config->without_effect) {
      log::warn("scheduler", "{}: {} is accepted and has no effect", files.scheduler_config, idle);
    }
    options.engine = std::move(config->engine);
    options.backfill = config->backfill;
  }
  if (!files.hived_config.empty()) {
    const auto text = read_file(files.hived_config);
    if (!text) return fail(text.error());
    auto config = hived::parse_config(*text);
    if (!config) return in_file(files.hived_config, config.error());
    for (const std::string& warning : config->warnings)
      log::warn("hived", "{}: {}", files.hived_config, warning);
    options.cells = std::move(config->cells);
  }
  return {};
}

std::unique_ptr<Component> make_scheduler_component(ComponentContext& context) {
  return std::make_unique<SchedulerComponent>(context);
}

}  // namespace muster
