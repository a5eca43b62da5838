/// What a write goes through, for every kind: defaults, what it resets and keeps, validation. What
/// is special about a kind is in kinds/kind.h.
#pragma once

#include "kube/kinds/kind.h"

namespace muster::kube {

/// Static defaults on create and update (Kubernetes' zz_generated.defaults), quantities
/// canonicalised.
void set_defaults(const Kind& kind, json::Value& object);
/// The same where nothing but the status has changed since.
void set_status_defaults(const Kind& kind, json::Value& object);
/// What create resets: status of kinds with a status subresource, fields only the server writes.
void prepare_create(const Kind& kind, json::Value& object, Time now);
/// What update keeps: status, immutable server fields; bumps metadata.generation when the spec
/// changed.
void prepare_update(const Kind& kind, json::Value& updated, const json::Value& live);
/// Update of /status: only status (and metadata as Kubernetes allows) of `updated` survives.
void prepare_status_update(const Kind& kind, json::Value& updated, const json::Value& live);

/// Name rules, metadata, spec rules with Kubernetes' field paths and texts. Empty: valid.
std::vector<Cause> validate_create(const Kind& kind, bool namespaced, const json::Value& object);
std::vector<Cause> validate_update(const Kind& kind,
                                   bool namespaced,
                                   const json::Value& updated,
                                   const json::Value& live);
/// `name_rule`: "subdomain" (also for ""), "label", "label1035" or "path".
std::vector<Cause> validate_metadata(bool namespaced,
                                     const json::Value& object,
                                     std::string_view name_rule);

/// `Pod "x" is invalid: [a, b]` with causes, ready to be sent.
Error invalid(const Gvk& gvk, std::string_view name, std::vector<Cause> causes);

/// RFC 1123 and friends; empty when fine, else Kubernetes' message.
std::string check_dns_label(std::string_view text);
std::string check_dns_subdomain(std::string_view text);
std::string check_label_key(std::string_view text);
std::string check_label_value(std::string_view text);

}  // namespace muster::kube
