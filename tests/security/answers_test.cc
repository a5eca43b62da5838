/// Questions about the whole history by somebody without any rights: they see nothing of it and
/// delay nobody while they ask.
#include "answers/http.h"
#include "security/meter.h"

namespace muster::apiserver {
namespace {

constexpr int kPages = 40;

/// A page of a thousand jobs of `team` that ended lately, with what was foretold of them.
json::Value page(int number, Time now) {
  std::vector<answers::Record> records;
  for (int i = 0; i < 1000; ++i) {
    answers::Record record;
    record.job = fmt::format("bert-{}", i);
    record.uid = fmt::format("uid-{}-{}", number, i);
    record.ns = "team";
    record.kind = "pytorchjob";
    record.user = fmt::format("user-{}", i % 170);
    record.queue = "research";
    record.state = "SUCCEEDED";
    record.submitted = now - std::chrono::hours(20 + number);
    record.ended = record.submitted + std::chrono::seconds(7200 + i);
    answers::Foretold said;
    said.at = record.submitted;
    said.basis = "learned";
    said.p10 = said.p50 = said.p90 = record.submitted + std::chrono::seconds(600);
    record.said = {said};
    answers::Run run;
    run.start = record.submitted + std::chrono::seconds(600 + i % 60);
    run.end = record.ended;
    run.milli = 8000;
    run.how = "succeeded";
    run.parts = {{run.start, run.end, 8000}};
    record.runs = {run};
    records.push_back(std::move(record));
  }
  return answers::page_object(answers::pack_page(number, records));
}

/// The answers as the program puts them together, without anybody who decides.
struct Answers {
  std::unique_ptr<client::Client> client;
  std::unique_ptr<client::Informers> informers;
  std::unique_ptr<answers::Recorder> recorder;
  std::unique_ptr<answers::Service> service;

  void start(Env& env, std::unique_ptr<client::Client> own) {
    client = std::move(own);
    informers = std::make_unique<client::Informers>(env, *client);
    recorder =
        std::make_unique<answers::Recorder>(env, *client, *informers, answers::RecorderOptions{});
    service = std::make_unique<answers::Service>(env, recorder.get(), nullptr);
    recorder->start();
  }

  Task<net::Response> answer(AnswersCall call) {
    answers::Question question;
    question.visitor = {call.user, call.groups, call.may, nullptr};
    question.method = call.method;
    question.target = std::move(call.target);
    question.body = std::move(call.body);
    auto response = co_await answers::answer(*service, std::move(question));
    co_return response;
  }
};

class HistoryForAll : public Cluster {};

TEST_F(HistoryForAll, IsLookedThroughWithoutHoldingAnybodyUp) {
  Answers parts;
  const auto steps = [&](Cluster& cluster) -> Task<void> {
    const Time now = cluster.loop().now();
    for (int number = 1; number <= kPages; ++number) {
      const Answer made = co_await cluster.admin(
          "POST", "/apis/muster.dev/v1/historypages", json::dump(page(number, now)));
      EXPECT_EQ(made.status, 201) << made.text.substr(0, 500);
    }
    const std::string nobody = co_await cluster.account("vision", "lowly", "");
    const std::string member = co_await cluster.account("team", "member", "view");
    parts.start(cluster.loop(), cluster.make_client("system:muster-answers"));
    while (!parts.recorder->ready()) co_await cluster.loop().sleep(std::chrono::milliseconds(20));
    EXPECT_EQ(parts.recorder->archive().size(), 1000U * kPages);
    const std::string group = "/apis/answers.muster.dev/v1/";
    for (const auto& [token, sees] : {std::pair{nobody, false}, {member, true}}) {
      for (const std::string what : {"accuracy?from=90d",
                                     "waits?from=90d&by=user,namespace,queue,kind,model,priority",
                                     "usage?from=90d&by=user&step=day",
                                     "records?limit=10000",
                                     "records?name=nothing",
                                     "records/uid-1-0",
                                     "records/uid-1-0/timeline"}) {
        const int status = co_await attack(
            cluster, {.target = group + what, .token = token}, sees ? "a member" : "nobody");
        EXPECT_EQ(status, what.starts_with("records/") && !sees ? 404 : 200) << what;
      }
    }
    // What one may see is there.
    const Answer judged =
        co_await cluster.ask({.target = group + "accuracy?from=90d", .token = member});
    EXPECT_EQ(json::int_at(json::array_at(judged.body, "items").at(0), "judged"), 1000 * kPages)
        << judged.text;
    const Answer hidden =
        co_await cluster.ask({.target = group + "accuracy?from=90d", .token = nobody});
    EXPECT_TRUE(json::array_at(hidden.body, "items").empty()) << hidden.text;
    const Answer rows =
        co_await cluster.ask({.target = group + "records?limit=10000", .token = member});
    EXPECT_EQ(json::array_at(rows.body, "items").size(), 10'000U);
    // Newest first.
    EXPECT_EQ(json::text_at(json::array_at(rows.body, "items").at(0), "uid"),
              fmt::format("uid-{}-999", kPages));
    co_await parts.recorder->stop();
    co_await parts.service->stop();
    parts.informers.reset();
  };
  run(steps, [&](ServerOptions& options) {
    options.answers = [&](AnswersCall call) { return parts.answer(std::move(call)); };
  });
}

/// A manifest of a mebibyte: a document of YAML takes its time to read.
TEST_F(HistoryForAll, AnEditorsManifestIsReadBesideTheLoop) {
  Answers parts;
  const auto steps = [&](Cluster& cluster) -> Task<void> {
    const std::string editor = co_await cluster.account("vision", "editor", "edit");
    parts.start(cluster.loop(), cluster.make_client("system:muster-answers"));
    std::string body = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n";
    while (body.size() < 1'000'000) body += "- " + std::string(90, 'x') + "\n";
    (void)co_await attack(cluster,
                          {.method = "POST",
                           .target = "/apis/answers.muster.dev/v1/namespaces/vision/check",
                           .body = body,
                           .type = "application/yaml",
                           .token = editor},
                          "a mebibyte of YAML");
    co_await parts.recorder->stop();
    co_await parts.service->stop();
    parts.informers.reset();
  };
  run(steps, [&](ServerOptions& options) {
    options.answers = [&](AnswersCall call) { return parts.answer(std::move(call)); };
  });
}

}  // namespace
}  // namespace muster::apiserver
