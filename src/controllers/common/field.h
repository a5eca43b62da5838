/// Field errors as Kubernetes' validators make them: `spec.x[Master].replicas: Forbidden: must be
/// 1`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::controllers {

/// What admission has to say about an object: causes (empty: accepted) and warnings.
struct Verdict {
  std::vector<Cause> errors;
  std::vector<std::string> warnings;

  void required(std::string field, std::string_view detail);
  void invalid(std::string field, const json::Value& value, std::string_view detail);
  void forbidden(std::string field, std::string_view detail);
  void unsupported(std::string field,
                   const json::Value& value,
                   const std::vector<std::string_view>& supported);
  /// "[a, b]" as upstream joins them; one stands alone; empty when accepted.
  [[nodiscard]] std::string text() const;
};

/// Empty when fine, else Kubernetes' text.
std::string check_dns1035_label(std::string_view name);

/// The rules that the training-operator's webhooks share.
struct WebhookRules {
  std::string specs_field;
  std::string container;
  std::vector<std::string> types;  // allowed replica types; empty: any
  bool check_managed_by = true;
};
void check_training_job(Verdict& verdict,
                        const WebhookRules& rules,
                        const json::Value& job,
                        const json::Value* old_job);

}  // namespace muster::controllers
