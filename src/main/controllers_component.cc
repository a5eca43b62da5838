#include "main/controllers_component.h"

#include "controllers/controllers.h"

namespace muster {
namespace {

class ControllersComponent final : public Component {
 public:
  explicit ControllersComponent(ComponentContext& context) : context_(context) {}

  [[nodiscard]] std::string name() const override { return "controllers"; }

  Task<Result<void>> start() override {
    controllers::Options options;
    // Pods of a gang wait until its PodGroup is admitted, and only a scheduler admits it.
    controllers::set_gang_scheduler(options.settings,
                                    context_.without.contains("scheduler") ? "none" : "volcano");
    options.settings.pytorch_init_lookup = "getent hosts";
    options.settings.exec_over_websocket = true;
    options.settings.force_delete_after = std::chrono::minutes(1);
    options.node_grace = context_.node_grace;
    client_ = context_.make_client("system:muster-controllers");
    controllers_ = std::make_unique<controllers::Controllers>(
        context_.loop, *client_, context_.informers, std::move(options));
    co_await controllers_->start();
    co_return Result<void>();
  }

  Task<void> stop() override {
    if (controllers_) co_await controllers_->stop();
  }

  [[nodiscard]] bool idle() const override { return !controllers_ || controllers_->idle(); }

 private:
  ComponentContext& context_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<controllers::Controllers> controllers_;
};

}  // namespace

std::unique_ptr<Component> make_controllers_component(ComponentContext& context) {
  return std::make_unique<ControllersComponent>(context);
}

}  // namespace muster
