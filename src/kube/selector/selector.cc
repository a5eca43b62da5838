#include "kube/selector/selector.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"

namespace muster::kube {
namespace {

using Operator = Requirement::Operator;

Result<LabelSelector> bad(std::string message) {
  return fail(Code::kBadRequest, std::move(message));
}

/// Tokens as Kubernetes' lexer sees them: '(' ')' ',' '!' '=' '==' '!=' '<' '>' and words.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  [[nodiscard]] std::string_view token() const { return token_; }
  [[nodiscard]] bool end() const { return token_.empty(); }
  [[nodiscard]] bool word() const { return !end() && !symbol(token_[0]); }

  void advance() {
    while (at_ < text_.size() && space(text_[at_])) ++at_;
    const std::size_t first = at_;
    if (at_ < text_.size() && symbol(text_[at_])) {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '=' && (text_[first] == '=' || text_[first] == '!'))
        ++at_;
    } else {
      while (at_ < text_.size() && !space(text_[at_]) && !symbol(text_[at_])) ++at_;
    }
    token_ = text_.substr(first, at_ - first);
  }

 private:
  static bool space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool symbol(char c) {
    return std::string_view("=!(),<>").find(c) != std::string_view::npos;
  }

  std::string_view text_;
  std::string_view token_;
  std::size_t at_ = 0;
};

std::string check_requirement(const Requirement& requirement) {
  const std::string key = check_label_key(requirement.key);
  if (!key.empty()) return fmt::format("key: Invalid value: {}: {}", quoted(requirement.key), key);
  if (requirement.op == Operator::kGreater || requirement.op == Operator::kLess) {
    for (std::size_t i = 0; i < requirement.values.size(); ++i) {
      if (!parse_int(requirement.values[i])) {
        return fmt::format(
            "values[{}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
            i,
            quoted(requirement.values[i]));
      }
    }
  }
  for (std::size_t i = 0; i < requirement.values.size(); ++i) {
    const std::string value = check_label_value(requirement.values[i]);
    if (!value.empty())
      return fmt::format("values[{}][{}]: Invalid value: {}: {}",
                         i,
                         requirement.key,
                         quoted(requirement.values[i]),
                         value);
  }
  return "";
}

/// "(a,b)": the lexer stands on what should be the opening parenthesis.
Result<std::vector<std::string>> parse_set(Lexer& lexer) {
  if (lexer.token() != "(")
    return fail(Code::kBadRequest, fmt::format("found '{}' expected: '('", lexer.token()));
  lexer.advance();
  std::set<std::string> values;
  bool want_value = true;
  while (true) {
    if (lexer.end()) return fail(Code::kBadRequest, "found '', expected: ',' or ')'");
    if (lexer.token() == ")") {
      if (want_value) values.insert("");
      lexer.advance();
      break;
    }
    if (lexer.token() == ",") {
      if (want_value) values.insert("");
      want_value = true;
    } else if (lexer.word() && want_value) {
      values.insert(std::string(lexer.token()));
      want_value = false;
    } else {
      return fail(Code::kBadRequest,
                  fmt::format("found '{}', expected: ',' or ')'", lexer.token()));
    }
    lexer.advance();
  }
  return std::vector<std::string>(values.begin(), values.end());
}

Result<Requirement> parse_requirement(Lexer& lexer) {
  Requirement requirement;
  const bool negated = lexer.token() == "!";
  if (negated) lexer.advance();
  if (!lexer.word()) {
    return fail(
        Code::kBadRequest,
        fmt::format(
            "found '{}', expected: identifier{}", lexer.token(), negated ? "" : " after ','"));
  }
  requirement.key = std::string(lexer.token());
  const std::string key_problem = check_label_key(requirement.key);
  if (!key_problem.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("key: Invalid value: {}: {}", quoted(requirement.key), key_problem));
  }
  lexer.advance();
  if (negated) {
    requirement.op = Operator::kDoesNotExist;
    return requirement;
  }
  if (lexer.end() || lexer.token() == ",") {
    requirement.op = Operator::kExists;
    return requirement;
  }
  const std::string op(lexer.token());
  if (op == "=" || op == "==")
    requirement.op = Operator::kEquals;
  else if (op == "!=")
    requirement.op = Operator::kNotEquals;
  else if (op == "in")
    requirement.op = Operator::kIn;
  else if (op == "notin")
    requirement.op = Operator::kNotIn;
  else if (op == ">" || op == "gt")
    requirement.op = Operator::kGreater;
  else if (op == "<" || op == "lt")
    requirement.op = Operator::kLess;
  else
    return fail(Code::kBadRequest,
                fmt::format("found '{}', expected: in, notin, =, ==, !=, gt, lt", op));
  lexer.advance();
  if (requirement.op == Operator::kIn || requirement.op == Operator::kNotIn) {
    auto values = parse_set(lexer);
    if (!values) return fail(values.error());
    requirement.values = std::move(*values);
  } else if (lexer.word()) {
    requirement.values.emplace_back(lexer.token());
    lexer.advance();
  } else if (lexer.end() || lexer.token() == ",") {
    requirement.values.emplace_back();
  } else {
    return fail(Code::kBadRequest, fmt::format("found '{}', expected: identifier", lexer.token()));
  }
  const std::string problem = check_requirement(requirement);
  if (!problem.empty()) return fail(Code::kBadRequest, problem);
  return requirement;
}

bool holds(const Requirement& requirement, const json::Value* value) {
  const std::string_view text = value == nullptr ? std::string_view() : json::as_string(*value);
  const bool present = value != nullptr;
  const auto& values = requirement.values;
  const bool listed = present && std::find(values.begin(), values.end(), text) != values.end();
  switch (requirement.op) {
    case Operator::kEquals:
    case Operator::kIn:
      return listed;
    case Operator::kNotEquals:
    case Operator::kNotIn:
      return !listed;
    case Operator::kExists:
      return present;
    case Operator::kDoesNotExist:
      return !present;
    case Operator::kGreater:
    case Operator::kLess: {
      const auto have = present ? parse_int(text) : std::nullopt;
      const auto bound = values.empty() ? std::nullopt : parse_int(values[0]);
      if (!have || !bound) return false;
      return requirement.op == Operator::kGreater ? *have > *bound : *have < *bound;
    }
  }
  return false;
}

std::string field_text(const json::Value& object, std::string_view field) {
  if (field == "source") return json::text_at(object, "source", "component");
  if (field == "status.successful") field = "status.succeeded";
  if (field == "status.podIPs") field = "status.podIP";
  const json::Value* here = &object;
  std::string_view rest = field;
  while (!rest.empty()) {
    const std::size_t dot = rest.find('.');
    here = &json::at(*here, rest.substr(0, dot));
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  if (here->is_null() && (field == "spec.unschedulable" || field == "spec.hostNetwork"))
    return "false";
  if (here->is_null() && (field == "status.replicas" || field == "status.succeeded")) return "0";
  if (here->is_string()) return json::text(*here);
  return here->is_null() ? std::string() : json::dump(*here);
}

/// Undoes the escapes of field selector values: \\ \, \=.
Result<std::string> unescape(std::string_view value, std::string_view whole) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\') {
      if (i + 1 == value.size() ||
          std::string_view("\\,=").find(value[i + 1]) == std::string_view::npos) {
        return fail(
            Code::kBadRequest,
            fmt::format("invalid field selector: invalid escape sequence in {}", quoted(whole)));
      }
      ++i;
    }
    out += value[i];
  }
  return out;
}

std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms;
  std::string term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      term += text[i];
      term += text[++i];
    } else if (text[i] == ',') {
      terms.push_back(std::move(term));
      term.clear();
    } else {
      term += text[i];
    }
  }
  terms.push_back(std::move(term));
  return terms;
}

}  // namespace

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector selector;
  Lexer lexer(text);
  while (!lexer.end()) {
    auto requirement = parse_requirement(lexer);
    if (!requirement) return bad("unable to parse requirement: " + requirement.error().message);
    selector.requirements_.push_back(std::move(*requirement));
    if (lexer.end()) break;
    if (lexer.token() != ",")
      return bad(fmt::format("found '{}', expected: ',' or 'end of string'", lexer.token()));
    lexer.advance();
    if (lexer.end())
      return bad("unable to parse requirement: found '', expected: identifier after ','");
  }
  std::stable_sort(selector.requirements_.begin(),
                   selector.requirements_.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
  return selector;
}

Result<LabelSelector> LabelSelector::from_object(const json::Value& object) {
  LabelSelector selector;
  if (object.is_null()) {
    selector.nothing_ = true;
    return selector;
  }
  for (const auto& member : json::object_at(object, "matchLabels")) {
    selector.requirements_.push_back(
        {Operator::kEquals, std::string(member.key()), {json::text(member.value())}});
  }
  for (const json::Value& expression : json::array_at(object, "matchExpressions")) {
    Requirement requirement;
    requirement.key = json::text_at(expression, "key");
    const std::string_view op = json::string_at(expression, "operator");
    if (op == "In")
      requirement.op = Operator::kIn;
    else if (op == "NotIn")
      requirement.op = Operator::kNotIn;
    else if (op == "Exists")
      requirement.op = Operator::kExists;
    else if (op == "DoesNotExist")
      requirement.op = Operator::kDoesNotExist;
    else
      return bad(fmt::format("{} is not a valid label selector operator", quoted(op)));
    for (const json::Value& value : json::array_at(expression, "values"))
      requirement.values.push_back(json::text(value));
    const bool wants_values = requirement.op == Operator::kIn || requirement.op == Operator::kNotIn;
    if (wants_values == requirement.values.empty()) {
      return bad(
          wants_values
              ? "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
              : "values: Invalid value: values set must be empty for exists and does not exist");
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  for (const Requirement& requirement : selector.requirements_) {
    const std::string problem = check_requirement(requirement);
    if (!problem.empty()) return bad(problem);
  }
  std::stable_sort(selector.requirements_.begin(),
                   selector.requirements_.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
  return selector;
}

bool LabelSelector::matches(const json::Object& labels) const {
  if (nothing_) return false;
  return std::all_of(
      requirements_.begin(), requirements_.end(), [&](const Requirement& requirement) {
        return holds(requirement, labels.if_contains(requirement.key));
      });
}

bool LabelSelector::matches_object(const json::Value& object) const {
  if (nothing_) return false;
  if (requirements_.empty()) return true;
  return matches(json::object_at(object, "metadata", "labels"));
}

std::string LabelSelector::text() const {
  std::vector<std::string> parts;
  for (const Requirement& requirement : requirements_) {
    const std::string& key = requirement.key;
    const auto first = [&] {
      return requirement.values.empty() ? std::string() : requirement.values[0];
    };
    auto values = requirement.values;
    std::sort(values.begin(), values.end());
    switch (requirement.op) {
      case Operator::kEquals:
        parts.push_back(key + "=" + first());
        break;
      case Operator::kNotEquals:
        parts.push_back(key + "!=" + first());
        break;
      case Operator::kIn:
        parts.push_back(fmt::format("{} in ({})", key, join(values, ",")));
        break;
      case Operator::kNotIn:
        parts.push_back(fmt::format("{} notin ({})", key, join(values, ",")));
        break;
      case Operator::kExists:
        parts.push_back(key);
        break;
      case Operator::kDoesNotExist:
        parts.push_back("!" + key);
        break;
      case Operator::kGreater:
        parts.push_back(key + ">" + first());
        break;
      case Operator::kLess:
        parts.push_back(key + "<" + first());
        break;
    }
  }
  return join(parts, ",");
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector selector;
  if (text.empty()) return selector;
  for (const std::string& part : split_terms(text)) {
    if (part.empty()) continue;
    std::size_t at = 0;
    std::string_view op;
    for (; at < part.size() && op.empty(); ++at) {
      if (part[at] == '\\') {
        ++at;
      } else if (part.compare(at, 2, "!=") == 0 || part.compare(at, 2, "==") == 0) {
        op = std::string_view(part).substr(at, 2);
        break;
      } else if (part[at] == '=') {
        op = std::string_view(part).substr(at, 1);
        break;
      }
    }
    if (op.empty())
      return fail(Code::kBadRequest,
                  fmt::format("invalid selector: '{}'; can't understand '{}'", text, part));
    auto value = unescape(std::string_view(part).substr(at + op.size()), part);
    if (!value) return fail(value.error());
    selector.terms_.push_back({part.substr(0, at), std::move(*value), op != "!="});
  }
  return selector;
}

std::string_view FieldSelector::required_name() const {
  for (const Term& term : terms_) {
    if (term.field == "metadata.name" && term.equal) return term.value;
  }
  return {};
}

Result<void> FieldSelector::check(std::string_view group, std::string_view kind) const {
  const KindRules* rules = find_rules(group, kind);
  for (const Term& term : terms_) {
    if (rules != nullptr && !rules->fields.empty()) {
      const auto& known = rules->fields;
      if (std::find(known.begin(), known.end(), term.field) != known.end()) continue;
      return fail(Code::kBadRequest, "field label not supported: " + term.field);
    }
    if (term.field == "metadata.name" || term.field == "metadata.namespace") continue;
    return fail(
        Code::kBadRequest,
        fmt::format(
            "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            quoted(term.field)));
  }
  return {};
}

bool FieldSelector::matches(const json::Value& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (field_text(object, term.field) == term.value) == term.equal;
  });
}

}  // namespace muster::kube
