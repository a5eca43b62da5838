/// Questions to the group of answers, and the texts of what it says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/shell/session.h"
#include "json/json.h"

namespace muster::cli {

using Parameters = std::vector<std::pair<std::string, std::string>>;

/// GET of a path below the group, e.g. "records/UID/timeline". Empty parameters are left out. A
/// server without the group says so in words of its own.
Task<Result<json::Value>> ask(Session& session, std::string path, Parameters parameters);

/// POST of a question to a path below the group. One that takes longer is asked for until it is
/// answered; one that comes too soon after another is put again.
Task<Result<json::Value>> put_question(Session& session, std::string path, json::Value question);

/// A time of an answer as people read it; "-" when it is absent.
std::string answer_time(const json::Value& time);
/// "2.5", "8".
std::string amount_text(const json::Value& number);
/// A cell of a CSV table.
std::string csv_cell(std::string_view text);

/// Prints rows of objects as a table or as CSV; `columns` are heading and member.
std::string csv_table(const json::Array& rows, const std::vector<std::string>& columns);

}  // namespace muster::cli
