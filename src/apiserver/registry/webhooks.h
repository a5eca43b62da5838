/// Admission webhooks: what ValidatingWebhookConfigurations and MutatingWebhookConfigurations ask
/// for is asked over HTTPS before an object is written (AdmissionReview of admission.k8s.io/v1).
///
/// Mutating ones come first, one after the other in the order of their names, and change the object
/// by JSON patches; it is then judged as if it had been sent so, and the validating ones see the
/// result. A webhook that cannot be asked refuses the write, or lets it pass if its failurePolicy
/// is Ignore. The configurations themselves are never shown to webhooks, so that a broken one can
/// be mended. Everything runs on the loop; nothing waits longer than a webhook's timeoutSeconds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/core.h"
#include "net/http/client.h"

namespace muster::apiserver {

/// A write, as webhooks see it.
struct Reviewed {
  const Resource& resource;
  const std::string& ns;
  std::string name;
  std::string_view operation;  // CREATE UPDATE DELETE
  std::string_view subresource;
  const json::Value* old_object = nullptr;  // null on create
  const User& user;
  bool dry_run = false;
  std::vector<std::string>* warnings = nullptr;
};

class Webhooks {
 public:
  explicit Webhooks(Core& core) : core_(core) {}
  /// False when nobody has to be asked about any write: nearly always.
  [[nodiscard]] bool mutating() const;
  [[nodiscard]] bool validating() const;
  Task<Result<void>> mutate(Reviewed review, json::Value& object);
  /// `object` is null for a deletion.
  Task<Result<void>> validate(Reviewed review, const json::Value& object);

 private:
  struct Hook;
  [[nodiscard]] std::vector<Hook> hooks_for(std::string_view collection,
                                            const Reviewed& review,
                                            const json::Value& object) const;
  Task<Result<json::Value>> ask(const Hook& hook, const Reviewed& review, json::Value object);
  [[nodiscard]] Result<std::shared_ptr<net::Client>> client_for(const Hook& hook);

  Core& core_;
  /// By address, authority and time-out; bounded.
  std::map<std::string, std::shared_ptr<net::Client>> clients_;
};

/// What a configuration asks for and is not done here, as a sentence; empty: nothing.
[[nodiscard]] std::string unserved_webhook(const json::Value& configuration);

}  // namespace muster::apiserver
