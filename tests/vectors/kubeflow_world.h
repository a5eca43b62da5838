/// A small API server in memory for the scenarios of kubeflow/: objects by kind and name, one
/// namespace, a virtual clock, no garbage collector, and one controller that is run until it is
/// quiet.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controllers/common/plan.h"

namespace muster::vectors {

class World final : public controllers::View {
 public:
  using PlanFunction = std::function<controllers::Plan(
      const json::Value&, const controllers::View&, const controllers::Settings&, Time)>;

  World(PlanFunction plan, controllers::Settings settings)
      : plan_(std::move(plan)), settings_(std::move(settings)) {}

  /// A plain "PodGroup" is the gang scheduler's.
  [[nodiscard]] std::string full_kind(const std::string& kind) const;

  // What the actions do.
  void create_job(json::Value job);
  void delete_job() { job_ = nullptr; }
  void patch_job(const json::Value& patch);
  bool create(const std::string& kind, json::Value object);
  bool patch(const std::string& kind, const std::string& name, const json::Value& patch);
  void remove(const std::string& kind, const std::string& name, bool at_once);
  void terminate_pod(const std::string& name);
  /// Runs the controller until it changes nothing. False when it never came to rest.
  bool settle();
  /// Lets time pass, waking the controller at the times it asked for.
  bool elapse(Duration span);

  // What is compared.
  [[nodiscard]] const json::Value& job() const { return job_; }
  [[nodiscard]] const std::map<std::string, std::map<std::string, json::Value>>& objects() const {
    return objects_;
  }
  [[nodiscard]] const std::vector<controllers::Event>& events() const { return events_; }
  [[nodiscard]] Time now() const { return now_; }

  // controllers::View
  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const override;
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view kind) const override;
  [[nodiscard]] const json::Value* find(std::string_view kind,
                                        std::string_view name) const override;
  [[nodiscard]] std::optional<std::int64_t> priority_of(
      std::string_view priority_class) const override;

 private:
  bool pass(bool& changed);
  bool apply(const controllers::Action& action, bool& changed);
  std::string new_uid();

  PlanFunction plan_;
  controllers::Settings settings_;
  json::Value job_;  // null: there is none
  std::map<std::string, std::map<std::string, json::Value>> objects_;
  std::vector<controllers::Event> events_;
  Time now_ = Time::from_seconds(1'700'000'000);
  std::optional<Time> wake_at_;
  int uids_ = 0;
};

}  // namespace muster::vectors
