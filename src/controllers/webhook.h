/// The admission webhook of a real cluster: what the embedded API server does with job kinds
/// itself, as AdmissionReview (admission.k8s.io/v1). POST /validate judges, POST /default fills in
/// what the controllers would assume.
#pragma once

#include <memory>
#include <string>

#include "net/http/server.h"

namespace muster::controllers {

struct WebhookOptions {
  std::string listen;  // ADDRESS:PORT
  /// PEM; the API server must trust it through the configuration's caBundle.
  std::string certificate_file;
  std::string key_file;
};

/// Bound and listening when it returns. The files are looked at every second, since the kubelet
/// replaces those of a Secret that changed: what is right in them is shown to new connections.
Result<std::unique_ptr<net::Server>> serve_webhook(net::Loop& loop, const WebhookOptions& options);

}  // namespace muster::controllers
