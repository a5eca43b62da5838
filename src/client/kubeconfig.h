/// A kubeconfig file or the in-cluster account, resolved to what a client needs. No connection is
/// made.
#pragma once

#include <string>

#include "base/result.h"
#include "client/client.h"

namespace muster::client {

struct Connection {
  net::ClientOptions http;
  ClientOptions client;
  std::string context;  // its name; empty in a cluster
};

/// Reads files; see KubeconfigOptions for where it looks.
Result<Connection> resolve_connection(const KubeconfigOptions& options);
/// From the text of one kubeconfig; `folder` is what relative file names are relative to.
Result<Connection> connection_from_yaml(std::string_view text,
                                        const std::string& folder,
                                        const std::string& context);

}  // namespace muster::client
