/// Reading what a client sent: members of a body by name and type, with OpenPAI's error when they are
/// not as they should be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "net/http/http.h"
#include "pai/refusal.h"

namespace muster::pai::rest {

/// The body of a JSON or form request; 400 for text that is neither.
Answer<json::Value> read_body(const net::Request& request);

/// Takes members out of an object. The first that is wrong is remembered and reported by done().
class Members {
 public:
  explicit Members(const json::Value& object);

  std::string text(std::string_view name);  // required
  std::optional<std::string> maybe_text(std::string_view name);
  std::optional<bool> maybe_bool(std::string_view name);
  std::optional<std::vector<std::string>> maybe_texts(std::string_view name);
  std::optional<json::Object> maybe_object(std::string_view name);
  void complain(std::string what);
  [[nodiscard]] Answer<void> done() const;

 private:
  const json::Value* find(std::string_view name) const;
  const json::Value& object_;
  std::string wrong_;
};

}  // namespace muster::pai::rest
