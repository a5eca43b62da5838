/// A kubeconfig file or a pod's own account, resolved to what a client needs. No connection is made.
#pragma once

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "kube/names.h"

namespace muster::client {

struct Connection {
  net::ClientOptions http;
  ClientOptions client;
  std::string context;  // its name; empty in a cluster
  std::string files;    // where it was read, as $KUBECONFIG lists them; empty in a cluster
};

/// The first that there is: the file of the options, those of $KUBECONFIG, inside a pod its service
/// account, the file of `muster up`, ~/.kube/config. What was named for this very call counts most;
/// what lies in a home folder counts least, since pods may share it with the machine's user.
Result<Connection> resolve_connection(
    const KubeconfigOptions& options,
    const std::string& account_folder = std::string(kube::kServiceAccountFolder));
/// The kubeconfig of `muster up`: $MUSTER_HOME/kubeconfig, or ~/.muster/kubeconfig.
std::string own_kubeconfig();
/// From the text of one kubeconfig; `folder` is what relative file names are relative to.
Result<Connection> connection_from_yaml(std::string_view text,
                                        const std::string& folder,
                                        const std::string& context);

}  // namespace muster::client
