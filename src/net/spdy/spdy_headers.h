/// SPDY/3's compressed header blocks: one zlib stream per direction, primed with a dictionary both
/// sides know.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http.h"

namespace muster::net {

class SpdyDeflater {
 public:
  SpdyDeflater();
  ~SpdyDeflater();
  SpdyDeflater(const SpdyDeflater&) = delete;
  SpdyDeflater& operator=(const SpdyDeflater&) = delete;
  std::string pack(const Headers& headers);

 private:
  z_stream z_{};
};

class SpdyInflater {
 public:
  SpdyInflater();
  ~SpdyInflater();
  SpdyInflater(const SpdyInflater&) = delete;
  SpdyInflater& operator=(const SpdyInflater&) = delete;
  /// A block that is broken or larger than any sane one ends the session: the state is lost.
  Result<Headers> unpack(std::string_view block);

 private:
  z_stream z_{};
};

/// The dictionary of SPDY/3 (draft-mbelshe-httpbis-spdy-00, section 2.6.10.1).
std::string_view spdy_dictionary();

}  // namespace muster::net
