#include "cli/view/reads.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::cli {
namespace {

using Answers = std::vector<Result<json::Value>>;

Error error_of(const json::Value& status, int code) {
  Error error;
  error.code = code_of(json::string_at(status, "reason"), code);
  error.message = json::text_at(status, "message");
  if (error.message.empty()) error.message = fmt::format("the server answered {}", code);
  error.subject.name = json::text_at(status, "details", "name");
  return error;
}

/// The server has no such path, or not for us: it is another one than Muster's.
bool lacks_reads(int status) { return status == 404 || status == 405 || status == 403; }

/// Without a value: the server cannot do it.
Task<Result<std::optional<Answers>>> read_together(Session& session,
                                                   json::Block& block,
                                                   const std::vector<Read>& reads) {
  json::Array targets;
  for (const Read& read : reads) targets.emplace_back(read.target);
  net::Request request = session.request("POST", "/muster/v1/reads");
  request.headers.set("Content-Type", "application/json");
  request.body = json::dump(json::Value(std::move(targets)));
  const auto answer = co_await session.cluster().http().request(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (lacks_reads(answer->status)) co_return std::optional<Answers>();
  auto all = block.parse(answer->body);
  if (!all) co_return fail(all.error());
  if (answer->status != 200) co_return fail(error_of(*all, answer->status));
  Answers answers;
  if (json::Array* parts = all->if_array()) {
    for (json::Value& part : *parts) {
      const int status = static_cast<int>(json::int_at(part, "status"));
      if (status == 200) {
        answers.emplace_back(std::move(part.as_object()["body"]));
      } else {
        answers.emplace_back(fail(error_of(json::at(part, "body"), status)));
      }
    }
  }
  if (answers.size() != reads.size())
    co_return fail(Code::kInternal,
                   fmt::format("the server answered {} of {} reads", answers.size(), reads.size()));
  co_return std::optional<Answers>(std::move(answers));
}

Task<void> read_alone(Session& session,
                      json::Block& block,
                      const Read& read,
                      Result<json::Value>& into) {
  net::Request request = session.request("GET", read.target);
  request.headers.set("Accept", "application/json");
  const auto answer = co_await session.cluster().http().request(std::move(request));
  if (!answer) {
    into = fail(answer.error());
    co_return;
  }
  if (answer->status != 200) {
    const auto status = json::parse(answer->body);
    into = fail(error_of(status ? *status : json::null_value(), answer->status));
    co_return;
  }
  const bool whole =
      read.members == nullptr || answer->headers.get("Preference-Applied") == "fields";
  into = whole ? block.parse(answer->body)
               : block.parse(json::pick_from_text(answer->body, {{"items", *read.members}}));
}

}  // namespace

Read read_list(const client::Resource& resource,
               const client::ListOptions& options,
               const json::Picks& members) {
  Read read{
      fmt::format(
          "{}?fields={}", resource.path(options.ns), percent_encode(json::picks_text(members))),
      &members};
  if (!options.label_selector.empty())
    read.target += "&labelSelector=" + percent_encode(options.label_selector);
  if (!options.field_selector.empty())
    read.target += "&fieldSelector=" + percent_encode(options.field_selector);
  return read;
}

Read read_object(const client::Resource& resource, const std::string& ns, const std::string& name) {
  return {fmt::format("{}/{}", resource.path(ns), percent_encode(name)), nullptr};
}

Task<Result<Answers>> read_all(Session& session, json::Block& block, std::vector<Read> reads) {
  if (session.reads_together) {
    auto together = co_await read_together(session, block, reads);
    if (!together) co_return fail(together.error());
    if (*together) co_return std::move(**together);
    session.reads_together = false;
  }
  Answers answers(reads.size(), json::Value());
  std::vector<Task<void>> tasks;
  for (std::size_t i = 0; i < reads.size(); ++i)
    tasks.push_back(read_alone(session, block, reads[i], answers[i]));
  co_await run_all(session.env, std::move(tasks));
  co_return answers;
}

std::vector<json::Value> take_items(json::Value& list) {
  std::vector<json::Value> items;
  if (json::Object* object = list.if_object()) {
    if (json::Value* found = object->if_contains("items"); found != nullptr && found->is_array()) {
      items.reserve(found->get_array().size());
      for (json::Value& item : found->get_array()) items.push_back(std::move(item));
    }
  }
  return items;
}

}  // namespace muster::cli
