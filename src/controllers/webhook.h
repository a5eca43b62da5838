/// The admission webhook of a real cluster: what the embedded API server does with job kinds
/// itself, as AdmissionReview (admission.k8s.io/v1). POST /validate judges, POST /default fills in
/// what the controllers would assume, POST /queues says who may use which queue and virtual cluster.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "net/http/server.h"

namespace muster::controllers {

struct WebhookOptions {
  std::string listen;  // ADDRESS:PORT
  /// PEM; the API server must trust it through the configuration's caBundle.
  std::string certificate_file;
  std::string key_file;
  bool queues_closed = false;  // see controllers/queue_access.h
};

/// Bound and listening when it returns. The files are looked at every second, since the kubelet
/// replaces those of a Secret that changed: what is right in them is shown to new connections. The
/// client outlives it.
Result<std::unique_ptr<net::Server>> serve_webhook(net::Loop& loop,
                                                   const WebhookOptions& options,
                                                   client::Client& client);

}  // namespace muster::controllers
