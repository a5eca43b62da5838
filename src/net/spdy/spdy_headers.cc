#include "net/spdy/spdy_headers.h"

#include <fmt/core.h>

#include <vector>

#include "base/strings.h"

namespace muster::net {
namespace {

constexpr std::size_t kBlockBytesMax = 256 * 1024;

void put_32(std::string& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}

/// Every word stands behind its length in four bytes; then plain text that often occurs in values.
// A table: the words that the protocol gives compressors to begin with.
std::string make_dictionary() {
  std::string out;
  for (const std::string_view word : {"options",
                                      "head",
                                      "post",
                                      "put",
                                      "delete",
                                      "trace",
                                      "accept",
                                      "accept-charset",
                                      "accept-encoding",
                                      "accept-language",
                                      "accept-ranges",
                                      "age",
                                      "allow",
                                      "authorization",
                                      "cache-control",
                                      "connection",
                                      "content-base",
                                      "content-encoding",
                                      "content-language",
                                      "content-length",
                                      "content-location",
                                      "content-md5",
                                      "content-range",
                                      "content-type",
                                      "date",
                                      "etag",
                                      "expect",
                                      "expires",
                                      "from",
                                      "host",
                                      "if-match",
                                      "if-modified-since",
                                      "if-none-match",
                                      "if-range",
                                      "if-unmodified-since",
                                      "last-modified",
                                      "location",
                                      "max-forwards",
                                      "pragma",
                                      "proxy-authenticate",
                                      "proxy-authorization",
                                      "range",
                                      "referer",
                                      "retry-after",
                                      "server",
                                      "te",
                                      "trailer",
                                      "transfer-encoding",
                                      "upgrade",
                                      "user-agent",
                                      "vary",
                                      "via",
                                      "warning",
                                      "www-authenticate",
                                      "method",
                                      "get",
                                      "status",
                                      "200 OK",
                                      "version",
                                      "HTTP/1.1",
                                      "url",
                                      "public",
                                      "set-cookie",
                                      "keep-alive",
                                      "origin"}) {
    put_32(out, word.size());
    out += word;
  }
  out +=
      "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
      "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found"
      "500 Internal Server Error501 Not Implemented503 Service Unavailable"
      "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
      "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
      "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
  return out;
}

const Bytef* as_bytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

/// Reads lengths and texts off an unpacked block.
class BlockReader {
 public:
  explicit BlockReader(std::string_view text) : text_(text) {}
  bool number(std::size_t& out) {
    if (text_.size() < 4) return false;
    out = 0;
    for (int i = 0; i < 4; ++i)
      out = out << 8 | static_cast<unsigned char>(text_[static_cast<std::size_t>(i)]);
    text_.remove_prefix(4);
    return true;
  }
  bool word(std::string_view& out) {
    std::size_t length = 0;
    if (!number(length) || length > text_.size()) return false;
    out = text_.substr(0, length);
    text_.remove_prefix(length);
    return true;
  }

 private:
  std::string_view text_;
};

tl::unexpected<Error> bad_block(std::string_view why) {
  return fail(Code::kBadRequest, fmt::format("SPDY header block: {}", why));
}

}  // namespace

std::string_view spdy_dictionary() {
  static const std::string dictionary = make_dictionary();
  return dictionary;
}

SpdyDeflater::SpdyDeflater() {
  MUSTER_CHECK(deflateInit(&z_, Z_BEST_SPEED) == Z_OK, "zlib has no memory");
  deflateSetDictionary(
      &z_, as_bytes(spdy_dictionary()), static_cast<uInt>(spdy_dictionary().size()));
}
SpdyDeflater::~SpdyDeflater() { deflateEnd(&z_); }

std::string SpdyDeflater::pack(const Headers& headers) {
  // A name stands once; its values are joined by NUL.
  std::vector<std::pair<std::string, std::string>> merged;
  for (const auto& [name, value] : headers.fields()) {
    const auto lower = to_lower(name);
    bool known = false;
    for (auto& [have, values] : merged) {
      if (have != lower) continue;
      values.append(1, '\0').append(value);
      known = true;
    }
    if (!known) merged.emplace_back(lower, value);
  }
  std::string block;
  put_32(block, merged.size());
  for (const auto& [name, value] : merged) {
    put_32(block, name.size());
    block += name;
    put_32(block, value.size());
    block += value;
  }
  std::string out(deflateBound(&z_, block.size()) + 64, '\0');
  z_.next_in = const_cast<Bytef*>(as_bytes(block));
  z_.avail_in = static_cast<uInt>(block.size());
  z_.next_out = reinterpret_cast<Bytef*>(out.data());
  z_.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&z_, Z_SYNC_FLUSH);
  MUSTER_CHECK(code == Z_OK && z_.avail_in == 0, "deflate of a header block failed");
  out.resize(out.size() - z_.avail_out);
  return out;
}

SpdyInflater::SpdyInflater() { MUSTER_CHECK(inflateInit(&z_) == Z_OK, "zlib has no memory"); }
SpdyInflater::~SpdyInflater() { inflateEnd(&z_); }

Result<Headers> SpdyInflater::unpack(std::string_view block) {
  std::string text;
  char buffer[8192];
  z_.next_in = const_cast<Bytef*>(as_bytes(block));
  z_.avail_in = static_cast<uInt>(block.size());
  while (true) {
    z_.next_out = reinterpret_cast<Bytef*>(buffer);
    z_.avail_out = sizeof buffer;
    const int code = inflate(&z_, Z_SYNC_FLUSH);
    if (code == Z_NEED_DICT) {
      if (inflateSetDictionary(&z_,
                               as_bytes(spdy_dictionary()),
                               static_cast<uInt>(spdy_dictionary().size())) != Z_OK) {
        return bad_block("packed with another dictionary");
      }
      continue;
    }
    if (code != Z_OK && code != Z_BUF_ERROR) return bad_block("does not unpack");
    text.append(buffer, sizeof buffer - z_.avail_out);
    if (text.size() > kBlockBytesMax)
      return bad_block(fmt::format("larger than {} bytes", kBlockBytesMax));
    if (z_.avail_in == 0 && z_.avail_out > 0) break;
    if (code == Z_BUF_ERROR) break;
  }
  BlockReader reader(text);
  std::size_t count = 0;
  if (!reader.number(count)) return bad_block("cut short");
  Headers headers;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view name, values;
    if (!reader.word(name) || !reader.word(values)) return bad_block("cut short");
    if (name.empty()) return bad_block("a name is empty");
    for (const auto& value : split(values, '\0')) headers.add(std::string(name), value);
  }
  return headers;
}

}  // namespace muster::net
