// Endpoints and EndpointSlice: where the pods of a service are.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr std::string_view kAddressText =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

void default_endpoints(Object& object) {
  each(object, "subsets", [](Object& subset) {
    each(subset, "ports", [](Object& port) { put_text(port, "protocol", "TCP"); });
  });
}

void default_endpoint_slice(Object& object) {
  each(object, "ports", [](Object& port) {
    put(port, "name", "");
    put_text(port, "protocol", "TCP");
  });
}

void validate_endpoints(const Value& object, const Value*, Causes& causes) {
  const json::Array& subsets = json::array_at(object, "subsets");
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
      const json::Array& addresses = json::array_at(subsets[i], list);
      for (std::size_t a = 0; a < addresses.size(); ++a) {
        const std::string field = fmt::format("subsets[{}].{}[{}].ip", i, list, a);
        const std::string_view address = json::string_at(addresses[a], "ip");
        if (!is_address(address)) causes.invalid(field, quoted(address), kAddressText);
        // Loopback, which Kubernetes refuses, is where pods live that share a lone machine's
        // network.
        else if (address == "0.0.0.0" || address == "::")
          causes.invalid(
              field, quoted(address), fmt::format("may not be unspecified ({})", address));
        else if (address.starts_with("169.254."))
          causes.invalid(field,
                         quoted(address),
                         "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
      }
    }
  }
}

void validate_endpoint_slice(const Value& object, const Value*, Causes& causes) {
  validate_enum(json::at(object, "addressType"), "addressType", {"FQDN", "IPv4", "IPv6"}, causes);
}

Array endpoints_cells(const Value& object, Time now) {
  std::vector<std::string> found;
  for (const Value& subset : json::array_at(object, "subsets")) {
    for (const Value& port : json::array_at(subset, "ports")) {
      for (const Value& one : json::array_at(subset, "addresses")) {
        found.push_back(
            fmt::format("{}:{}", json::string_at(one, "ip"), json::int_at(port, "port")));
      }
    }
  }
  std::string text = "<none>";
  if (!found.empty()) {
    const std::size_t shown = std::min<std::size_t>(found.size(), 3);
    text = join(
        std::vector<std::string>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown)),
        ",");
    if (found.size() > shown) text += fmt::format(" + {} more...", found.size() - shown);
  }
  return {name_of(object), text, age_of(creation_time(object), now)};
}

std::string few(const std::vector<std::string>& all) {
  if (all.empty()) return "<unset>";
  const std::size_t shown = std::min<std::size_t>(all.size(), 3);
  std::string text = join(
      std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown)), ",");
  if (all.size() > shown) text += fmt::format(" + {} more...", all.size() - shown);
  return text;
}

Array endpoint_slice_cells(const Value& object, Time now) {
  std::vector<std::string> ports, addresses;
  for (const Value& port : json::array_at(object, "ports"))
    ports.push_back(json::at(port, "port").is_null() ? "*" : json::dump(json::at(port, "port")));
  for (const Value& endpoint : json::array_at(object, "endpoints")) {
    for (const Value& address : json::array_at(endpoint, "addresses"))
      addresses.push_back(json::text(address));
  }
  return {name_of(object),
          json::text_at(object, "addressType"),
          few(ports),
          few(addresses),
          age_of(creation_time(object), now)};
}

}  // namespace

std::vector<KindRules> families::endpoints() {
  using namespace columns;
  return {{.group = "",
           .kind = "Endpoints",
           .defaults = default_endpoints,
           .validate = validate_endpoints,
           .columns = {name_column(), text("Endpoints"), text("Age")},
           .cells = endpoints_cells,
           .creates_on_update = true},
          {.group = groups::kDiscovery,
           .kind = "EndpointSlice",
           .defaults = default_endpoint_slice,
           .validate = validate_endpoint_slice,
           .columns =
               {name_column(), text("AddressType"), text("Ports"), text("Endpoints"), text("Age")},
           .cells = endpoint_slice_cells,
           .generation = true}};
}

}  // namespace muster::kube
