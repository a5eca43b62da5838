/// Content negotiation: which form an answer takes, and what a body holds.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/registry/resources.h"
#include "base/result.h"
#include "json/json.h"
#include "kube/shared.h"
#include "net/http/http.h"

namespace muster::apiserver {

struct Call;

enum class Form { kObject, kTable, kPartialObject, kPartialObjectList, kDiscovery };

struct Accepted {
  Form form = Form::kObject;
  bool yaml = false;
  bool pretty = false;
  std::string table_version = "v1";
};

/// Takes the clauses of Accept in order; NotAcceptable when none can be served. `discovery` allows
/// the aggregated form.
Result<Accepted> negotiate(const net::Request& request, bool discovery, bool collection = false);

/// The media type of a body without its parameters; empty when absent.
std::string media_type(const net::Request& request);

struct Body {
  json::Value value;
  std::vector<std::string> duplicate_fields;
};
/// JSON, YAML or protobuf. `kind` is what the URL wants, for the message. Missing content type is
/// JSON. The value alone, for one who only reads it: an object of this process is not copied.
Result<kube::ObjectPtr> read_body(const Call& call, std::string_view kind);
Result<Body> decode_body(const Call& call, std::string_view kind, bool want_duplicates);

/// An answer in the negotiated serialisation.
net::Response encode(const Accepted& accepted, int status, const json::Value& value);

}  // namespace muster::apiserver
