/// The condition list of Kubeflow jobs. Its order carries meaning (kubectl prints the last
/// element), so the rules of how entries replace each other are kept exactly: see set().
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "json/json.h"

namespace muster::controllers {

class Conditions {
 public:
  /// Works on status.conditions. `failed_is_final`: once Failed=True nothing changes any more
  /// (training-operator); without it a later Succeeded turns Failed to False (mpi-operator).
  Conditions(json::Value& status, bool failed_is_final, Time now)
      : status_(status), failed_is_final_(failed_is_final), now_(now) {}

  [[nodiscard]] bool is_true(std::string_view type) const;
  [[nodiscard]] bool has(std::string_view type) const;
  [[nodiscard]] std::string reason(std::string_view type) const;
  [[nodiscard]] std::string message(std::string_view type) const;
  [[nodiscard]] bool finished() const { return is_true("Succeeded") || is_true("Failed"); }

  /// Replaces the entry of this type by a new one at the end of the list. Nothing happens when
  /// status and reason are already so. Restarting drops Running and the other way round; Failed and
  /// Succeeded turn Running to False where it stands. True when the list changed.
  bool set(std::string_view type, bool value, std::string_view reason, std::string_view message);
  /// `time` stands in both times of an entry made after the fact.
  bool set_at(std::string_view type,
              bool value,
              std::string_view reason,
              std::string_view message,
              const json::Value& time);

 private:
  [[nodiscard]] const json::Value* find(std::string_view type) const;

  json::Value& status_;
  bool failed_is_final_;
  Time now_;
};

}  // namespace muster::controllers
