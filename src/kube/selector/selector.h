/// Label selectors (text and object form) and field selectors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::kube {

struct Requirement {
  enum class Operator {
    kEquals,
    kNotEquals,
    kIn,
    kNotIn,
    kExists,
    kDoesNotExist,
    kGreater,
    kLess
  } op = Operator::kExists;
  std::string key;
  std::vector<std::string> values;
};

class LabelSelector {
 public:
  LabelSelector() = default;  // matches everything
  /// "a=b,!c,d in (x,y)". Errors carry Kubernetes' text.
  static Result<LabelSelector> parse(std::string_view text);
  /// {matchLabels, matchExpressions}. Null matches nothing, {} everything (as Kubernetes has it).
  static Result<LabelSelector> from_object(const json::Value& selector);

  [[nodiscard]] bool matches(const json::Object& labels) const;
  [[nodiscard]] bool matches_object(const json::Value& object) const;  // its metadata.labels
  [[nodiscard]] bool everything() const { return !nothing_ && requirements_.empty(); }
  [[nodiscard]] std::string text() const;  // canonical

 private:
  bool nothing_ = false;
  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  struct Term {
    std::string field, value;
    bool equal = true;
  };
  FieldSelector() = default;
  static Result<FieldSelector> parse(std::string_view text);
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] bool empty() const { return terms_.empty(); }
  /// The value of metadata.name= when the selector pins it, else empty.
  [[nodiscard]] std::string_view required_name() const;
  /// Fails with BadRequest "field label not supported: x" when the kind does not have the field.
  Result<void> check(std::string_view group, std::string_view kind) const;
  [[nodiscard]] bool matches(const json::Value& object) const;

 private:
  std::vector<Term> terms_;
};

}  // namespace muster::kube
