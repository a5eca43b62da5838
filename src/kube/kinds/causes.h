/// Collects the causes of an Invalid answer in the words of Kubernetes' field.Error.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::kube {

class Causes {
 public:
  void required(std::string field, std::string_view detail = "");
  /// `value` as Go would print it: quoted("x"), "5", "null".
  void invalid(std::string field, std::string_view value, std::string_view detail);
  void not_supported(std::string field,
                     std::string_view value,
                     const std::vector<std::string_view>& supported);
  void duplicate(std::string field, std::string_view value);
  void not_found(std::string field, std::string_view value);
  void forbidden(std::string field, std::string_view detail);
  void too_long(std::string field, std::size_t bytes_max);
  void too_many(std::string field, std::size_t have, std::size_t most);
  /// Invalid with `text` quoted, when `problem` is not empty.
  void check(std::string field, std::string_view text, std::string_view problem);

  [[nodiscard]] bool empty() const { return list_.empty(); }
  std::vector<Cause> take() { return std::move(list_); }
  void add(Cause cause) { list_.push_back(std::move(cause)); }
  void add(std::vector<Cause> causes);

 private:
  std::vector<Cause> list_;
};

/// A value as field.Error prints it: strings quoted, numbers plain, the rest as JSON.
std::string shown(const json::Value& value);

}  // namespace muster::kube
