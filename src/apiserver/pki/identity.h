/// The keys of an embedded cluster, made on its first start and kept in its data folder: CA, server
/// and admin certificates, the admin token, the key that signs service-account tokens; and the
/// kubeconfig over them.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/tls/tls.h"

namespace muster::apiserver {

struct Identity {
  net::KeyPair ca, server, admin;
  std::string admin_token;
  std::string token_key;
};

/// Reads or makes DIR/pki. The server certificate is renewed at each start for the addresses it
/// serves.
Result<Identity> load_identity(const std::string& directory, const std::string& address, Time now);

/// Adds the names under which others reach a server that listens there: the address itself, or for
/// every address this machine's name and those of its interfaces.
void add_names_of(net::CertificateRequest& request, const std::string& address);

struct KubeconfigRequest {
  std::string path, address;
  std::uint16_t port = 0;
  /// The same API on a Unix socket, for programs of Muster that find it; empty: none.
  std::string socket;
};
Result<void> write_kubeconfig(const Identity& identity, const KubeconfigRequest& request);

}  // namespace muster::apiserver
