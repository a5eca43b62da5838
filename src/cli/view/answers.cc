#include "cli/view/answers.h"

#include <fmt/core.h>

#include <cmath>

#include "base/strings.h"
#include "cli/view/job.h"
#include "kube/names.h"

namespace muster::cli {

namespace {

constexpr Duration kAgain = std::chrono::seconds(1);
constexpr int kTriesMax = 10;

std::string target_of(std::string_view path) {
  return fmt::format("/apis/{}/v1/{}", kube::groups::kAnswers, path);
}

Error no_answers() {
  Error error;
  error.code = Code::kNotFound;
  error.message =
      fmt::format("this cluster gives no such answers ({}): it runs an older Muster, or none",
                  kube::groups::kAnswers);
  return error;
}

}  // namespace

Task<Result<json::Value>> put_question(Session& session, std::string path, json::Value question) {
  Result<json::Value> answer = json::Value();
  for (int tries = 0; tries < kTriesMax; ++tries) {
    answer = co_await session.cluster().raw("POST", target_of(path), question);
    if (answer || answer.error().code != Code::kTooManyRequests) break;
    co_await session.env.sleep(kAgain);
  }
  // An answer of which only the id is there is still being worked out.
  while (answer && answer->is_object() && answer->get_object().size() == 1 &&
         json::at(*answer, "id").is_string()) {
    co_await session.env.sleep(kAgain);
    const std::string id = json::text_at(*answer, "id");
    answer = co_await session.cluster().raw(
        "GET", target_of(fmt::format("{}/{}", path, id)), json::Value());
  }
  if (!answer && answer.error().code == Code::kNotFound &&
      answer.error().message.find("there is no such answer") != std::string::npos)
    co_return fail(no_answers());
  co_return answer;
}

Task<Result<json::Value>> ask(Session& session, std::string path, Parameters parameters) {
  std::string target = target_of(path);
  char mark = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    target += mark + name + "=" + percent_encode(value);
    mark = '&';
  }
  auto answer = co_await session.cluster().raw("GET", std::move(target), json::Value());
  // The group is missing, not what was asked for.
  if (!answer && answer.error().code == Code::kNotFound &&
      answer.error().message.find("there is no record") == std::string::npos &&
      answer.error().message.find("--history none") == std::string::npos)
    co_return fail(no_answers());
  co_return answer;
}

std::string answer_time(const json::Value& time) {
  const auto parsed = parse_time(json::as_string(time));
  return parsed && !json::as_string(time).empty() ? local_time(*parsed) : "-";
}

std::string amount_text(const json::Value& number) {
  if (number.is_int64()) return std::to_string(number.get_int64());
  if (number.is_uint64()) return std::to_string(number.get_uint64());
  if (!number.is_double()) return "-";
  const double value = number.get_double();
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return std::to_string(static_cast<std::int64_t>(value));
  return fmt::format("{:.2f}", value);
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

std::string csv_table(const json::Array& rows, const std::vector<std::string>& columns) {
  std::string out = join(columns, ",") + "\n";
  for (const json::Value& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const json::Value& value = json::at(row, column);
      // Every digit: sums of the table are sums of what was counted.
      cells.push_back(value.is_string()   ? csv_cell(json::as_string(value))
                      : value.is_double() ? fmt::format("{}", value.get_double())
                      : value.is_null()   ? ""
                                          : amount_text(value));
    }
    out += join(cells, ",") + "\n";
  }
  return out;
}

}  // namespace muster::cli
