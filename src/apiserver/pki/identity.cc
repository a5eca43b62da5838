#include "apiserver/pki/identity.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

/// The file's text, or what `make` gives, written there.
template <typename Make>
Result<std::string> keep(const std::string& path, Make make) {
  if (std::filesystem::exists(path)) return read_file(path);
  Result<std::string> made = make();
  if (!made) return made;
  const auto written = write_private(path, *made);
  if (!written) return fail(written.error());
  return made;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

bool is_wildcard(const std::string& address) { return address == "0.0.0.0" || address == "::"; }

void add(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

/// The names under which others reach a server that listens on every address: the machine's own
/// name and the addresses of its interfaces. IPv6 addresses of one link only are left out: nobody
/// else can use them.
void add_names_of_machine(net::CertificateRequest& server) {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) == 0) {
    std::string name = host;
    const bool is_dns = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '.';
    });
    if (is_dns) add(server.dns_names, std::move(name));
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (one->ifa_addr->sa_family == AF_INET) {
      ::inet_ntop(AF_INET,
                  &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                  text,
                  sizeof text);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) ::inet_ntop(AF_INET6, &address, text, sizeof text);
    }
    if (text[0] != 0) add(server.addresses, text);
  }
  ::freeifaddrs(all);
}

}  // namespace

void add_names_of(net::CertificateRequest& request, const std::string& address) {
  if (is_wildcard(address))
    add_names_of_machine(request);
  else
    add(request.addresses, address);
}

Result<Identity> load_identity(const std::string& directory, const std::string& address, Time now) {
  const std::string pki = directory + "/pki";
  std::error_code failure;
  std::filesystem::create_directories(pki, failure);
  if (failure)
    return fail(Code::kInternal, fmt::format("cannot make \"{}\": {}", pki, failure.message()));
  std::filesystem::permissions(pki, std::filesystem::perms::owner_all, failure);

  Identity identity;
  if (!std::filesystem::exists(pki + "/ca.key")) {
    const auto ca = net::make_ca("muster", now);
    if (!ca) return fail(ca.error());
    const auto certificate = write_private(pki + "/ca.crt", ca->certificate_pem);
    if (!certificate) return fail(certificate.error());
    const auto key = write_private(pki + "/ca.key", ca->key_pem);
    if (!key) return fail(key.error());
  }
  auto certificate = read_file(pki + "/ca.crt");
  auto key = read_file(pki + "/ca.key");
  if (!certificate || !key) return fail(certificate ? key.error() : certificate.error());
  identity.ca = {std::move(*certificate), std::move(*key)};

  net::CertificateRequest server;
  server.common_name = "kube-apiserver";
  server.server = true;
  server.dns_names = {"localhost",
                      "kubernetes",
                      "kubernetes.default",
                      "kubernetes.default.svc",
                      "kubernetes.default.svc.cluster.local"};
  server.addresses = {"127.0.0.1", "::1", "10.96.0.1"};
  add_names_of(server, address);
  auto made_server = net::make_certificate(identity.ca, server, now);
  if (!made_server) return fail(made_server.error());
  identity.server = std::move(*made_server);

  net::CertificateRequest admin;
  admin.common_name = "kubernetes-admin";
  admin.organizations = {"system:masters"};
  auto made_admin = net::make_certificate(identity.ca, admin, now);
  if (!made_admin) return fail(made_admin.error());
  identity.admin = std::move(*made_admin);

  auto token =
      keep(pki + "/admin.token", [] { return Result<std::string>(hex(net::random_bytes(24))); });
  if (!token) return fail(token.error());
  identity.admin_token = std::string(trim(*token));
  auto signing = keep(pki + "/sa.key", [] { return net::make_signing_key(); });
  if (!signing) return fail(signing.error());
  identity.token_key = std::move(*signing);
  return identity;
}

Result<void> write_kubeconfig(const Identity& identity, const KubeconfigRequest& request) {
  const std::string host = is_wildcard(request.address) ? "127.0.0.1" : request.address;
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  // Named as an extension, which kubectl and the client libraries keep and pass over.
  const std::string beside =
      request.socket.empty()
          ? std::string()
          : fmt::format("    extensions:\n    - name: {}\n      extension:\n        path: {}\n",
                        kube::names::kSocket,
                        muster::quoted(request.socket));
  const std::string text = fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: muster\n"
      "clusters:\n- name: muster\n  cluster:\n    server: https://{}:{}\n    certificate-authority-data: {}\n{}"
      "contexts:\n- name: muster\n  context:\n    cluster: muster\n    user: muster-admin\n    namespace: default\n"
      "users:\n- name: muster-admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n    token: {}\n",
      shown,
      request.port,
      base64_encode(identity.ca.certificate_pem),
      beside,
      base64_encode(identity.admin.certificate_pem),
      base64_encode(identity.admin.key_pem),
      identity.admin_token);
  return write_private(request.path, text);
}

}  // namespace muster::apiserver
