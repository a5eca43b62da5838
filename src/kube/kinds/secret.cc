// Secret: its types and what each must hold.
#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_secret(Object& object) {
  put_text(object, "type", "Opaque");
  if (Value* plain = object.if_contains("stringData")) {
    if (plain->is_object()) {
      const Object entries = plain->get_object();
      Object& data = object_at(object, "data");
      for (const auto& entry : entries)
        data[entry.key()] = base64_encode(json::as_string(entry.value()));
    }
    object.stable_erase(object.find("stringData"));
  }
}

void validate_secret(const Value& secret, const Value* live, Causes& causes) {
  validate_data(secret, {"data"}, true, causes);
  const std::string_view type = json::string_at(secret, "type");
  const Value& data = json::at(secret, "data");
  const auto need = [&](std::string_view key) {
    if (json::at(data, key).is_null()) causes.required(fmt::format("data[{}]", key));
  };
  if (type == names::kubernetes::kTls) {
    need("tls.crt");
    need("tls.key");
  } else if (type == names::kubernetes::kSshAuth) {
    need("ssh-privatekey");
  } else if (type == names::kubernetes::kDockerConfigJson) {
    need(".dockerconfigjson");
    const auto config = base64_decode(json::string_at(data, ".dockerconfigjson"));
    if (config && !json::at(data, ".dockerconfigjson").is_null() && !json::parse(*config)) {
      const std::string found =
          config->empty() ? "unexpected end of JSON input"
                          : fmt::format("invalid character '{}' looking for beginning of value",
                                        config->front());
      causes.invalid("data[.dockerconfigjson]", "\"<secret contents redacted>\"", found);
    }
  } else if (type == names::kubernetes::kServiceAccountToken) {
    if (annotation(secret, names::kubernetes::kServiceAccountName).empty())
      causes.required(
          fmt::format("metadata.annotations[{}]", names::kubernetes::kServiceAccountName));
  } else if (type == names::kubernetes::kBasicAuth) {
    if (json::at(data, "username").is_null() && json::at(data, "password").is_null()) {
      causes.required("data[username]");
      causes.required("data[password]");
    }
  }
  if (live != nullptr) {
    immutable(json::at(secret, "type"), json::at(*live, "type"), "type", causes);
    immutable_data(secret, *live, {"data"}, causes);
  }
}

void usage(const Value&, Usage& used) { used["secrets"] = Quantity::from_units(1); }

}  // namespace

std::vector<KindRules> families::secret() {
  using namespace columns;
  return {{.group = "",
           .kind = "Secret",
           .defaults = default_secret,
           .validate = validate_secret,
           .usage = usage,
           .columns = {name_column(), text("Type"), text("Data"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              json::text_at(o, "type"),
                              static_cast<std::int64_t>(json::object_at(o, "data").size()),
                              age_of(creation_time(o), now)};
               },
           .fields = {"metadata.name", "metadata.namespace", "type"}}};
}

}  // namespace muster::kube
