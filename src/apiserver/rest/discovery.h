/// What the server says about itself: API groups and resources, OpenAPI, version, health.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class Discovery {
 public:
  explicit Discovery(Core& core) : core_(core) {}
  /// Answers paths that are not resources; nullopt: not one of them.
  std::optional<net::Response> answer(const net::Request& request, const net::Target& target);

 private:
  struct Document {
    std::string body, etag;
  };
  void refresh();
  net::Response groups(const net::Request& request, bool core_group);
  net::Response group(const std::string& name) const;
  net::Response resources(const GroupVersion& group_version) const;
  const Document& aggregated(bool core_group);
  net::Response openapi_index(const net::Request& request);
  net::Response openapi_v2(const net::Request& request);
  std::optional<net::Response> openapi_document(const net::Request& request,
                                                const net::Target& target);
  std::string hash_of(const GroupVersion& group_version) const;
  net::Response metrics() const;

  Core& core_;
  std::uint64_t generation_ = 0;
  /// Made on first use, forgotten when discovery changes.
  std::map<std::string, Document> documents_;
};

}  // namespace muster::apiserver
