/// Addresses of Services: cluster IPs from 10.96.0.0/16 and node ports from 30000-32767.
#pragma once

#include <cstdint>
#include <set>

#include "apiserver/core.h"

namespace muster::apiserver {

class Services {
 public:
  explicit Services(Core& core) : core_(core) {}
  /// Learns what the loaded Services hold.
  void start();
  /// Fills in addresses of a Service about to be written; other kinds pass. `live` null on create.
  Result<void> allocate(const Resource& resource, json::Value& object, const json::Value& live);
  void release(const Resource& resource, const json::Value& object);

 private:
  Result<void> allocate_address(const Resource& resource,
                                json::Value& object,
                                const json::Value& live);
  Result<void> allocate_ports(const Resource& resource, json::Value& object);

  Core& core_;
  std::set<std::string> addresses_;
  std::set<std::int64_t> ports_;
  std::uint32_t next_ = 0;
};

}  // namespace muster::apiserver
