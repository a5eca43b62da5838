/// What strangers send to OpenPAI's REST API before they have signed in: tokens, forms and JSON
/// bodies; and Secrets that somebody else wrote.
#include <cstddef>
#include <cstdint>
#include <string>

#include "json/json.h"
#include "pai/people/password.h"
#include "pai/people/records.h"
#include "pai/people/token.h"
#include "pai/rest/body.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto read = pai::read_token("0123456789abcdef", text);
  const auto unsigned_too = pai::read_unsigned(text);
  // A token that the key signed says of itself what an unsigned look at it says.
  if (read && (!unsigned_too || unsigned_too->user != read->user)) __builtin_trap();
  (void)pai::is_openpai_hash(text);
  for (const char* type : {"application/json", "application/x-www-form-urlencoded", "text/yaml"}) {
    net::Request request;
    request.headers.set("Content-Type", type);
    request.body = text;
    const auto body = pai::rest::read_body(request);
    if (!body) continue;
    pai::rest::Members members(*body);
    (void)members.text("username");
    (void)members.maybe_texts("virtualCluster");
    (void)members.done();
  }
  if (const auto secret = json::parse(text)) {
    if (const auto user = pai::read_user(*secret)) {
      json::Value again;
      pai::write_user(*user, again);
      if (!pai::read_user(again)) __builtin_trap();
    }
    (void)pai::read_group(*secret);
    (void)pai::read_tokens(*secret);
  }
  return 0;
}
