#include "kube/table/table.h"

#include <gtest/gtest.h>

#include "lib/recorded.h"

namespace muster::kube {
namespace {

const ResourceInfo& resource(std::string_view group, std::string_view plural) {
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    if (info.group == group && info.plural == plural) return info;
  }
  throw std::runtime_error("no such resource");
}

/// Ages are checked as the recorder's clock was within a few seconds of observed_at.
bool is_age(std::string_view text) {
  return !text.empty() && text.size() < 8 && text[0] >= '0' && text[0] <= '9' &&
         std::string_view("smhdy").find(text.back()) != std::string_view::npos;
}

TEST(Table, RecordedRowsArePrintedAlike) {
  const auto data = recorded::read_json("table-rows_v1.32.4.json");
  const auto now = parse_time(json::string_at(data, "observed_at"));
  ASSERT_TRUE(now);
  for (const std::string kind : {"pods", "nodes"}) {
    const ResourceInfo& info = resource("", kind);
    const json::Array& columns = json::array_at(data, kind, "columnDefinitions");
    ASSERT_EQ(columns.size(), info.columns.size());
    for (const json::Value& row : json::array_at(data, kind, "rows")) {
      const json::Value& object = json::at(row, "object");
      const json::Value ours = table_row(info, object, *now);
      const json::Array& want = json::array_at(row, "cells");
      const json::Array& have = json::array_at(ours, "cells");
      ASSERT_EQ(have.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        const std::string column = json::text_at(columns[i], "name");
        std::string wanted = want[i].is_string() ? json::text(want[i]) : json::dump(want[i]);
        const std::string got = have[i].is_string() ? json::text(have[i]) : json::dump(have[i]);
        if (column == "Age" && is_age(wanted) && is_age(got)) continue;
        if (column == "Kernel-Version" && wanted != "<unknown>")
          wanted += " (amd64)";  // since 1.36
        if (column == "Restarts") {
          EXPECT_EQ(got.substr(0, got.find(' ')), wanted.substr(0, wanted.find(' ')))
              << name_of(object);
          EXPECT_EQ(got.find(" ago)") != std::string::npos,
                    wanted.find(" ago)") != std::string::npos)
              << name_of(object);
          continue;
        }
        EXPECT_EQ(got, wanted) << kind << " " << name_of(object) << " column " << column;
      }
      EXPECT_TRUE(json::equal(json::at(ours, "conditions"), json::at(row, "conditions")))
          << name_of(object) << json::dump(ours) << json::dump(json::at(row, "conditions"));
    }
  }
}

TEST(Table, CellsOfOtherKinds) {
  const Time now = *parse_time("2026-11-15T05:00:00Z");
  struct {
    const char* name;
    const char* group;
    const char* plural;
    const char* object;
    const char* cells;
  } cases[] = {
      {"event with series",
       "",
       "events",
       R"({"metadata":{"name":"x.1"},"involvedObject":{"kind":"Pod","name":"x","fieldPath":"spec.containers{a}"},"reason":"R","message":" m \n","type":"Normal",
           "eventTime":"2026-11-15T04:00:00.000000Z","series":{"count":3,"lastObservedTime":"2026-11-15T04:59:00.000000Z"},"reportingComponent":"muster","reportingInstance":"muster-0"})",
       R"(["60s","Normal","R","pod/x","spec.containers{a}","muster, muster-0","m","60m",3,"x.1"])"},
      {"quota",
       "",
       "resourcequotas",
       R"({"metadata":{"name":"q","creationTimestamp":"2026-11-15T04:59:58Z"},"status":{"hard":{"pods":"100","limits.cpu":"4"},"used":{"pods":"7"}}})",
       R"(["q","pods: 7/100","limits.cpu: 0/4","2s"])"},
      {"pod group",
       "scheduling.k8s.io",
       "podgroups",
       R"({"metadata":{"name":"g","creationTimestamp":"2026-11-15T04:55:00Z"},"spec":{"schedulingPolicy":{"gang":{"minCount":2}}},
           "status":{"conditions":[{"type":"PodGroupInitiallyScheduled","status":"False","reason":"Unschedulable"}]}})",
       R"(["g","Gang","<none>","Unschedulable","5m"])"},
      {"job without completions",
       "batch",
       "jobs",
       R"({"metadata":{"name":"j","creationTimestamp":"2026-11-15T04:00:00Z"},"spec":{"parallelism":3,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"m","image":"i"}]}}},
           "status":{"startTime":"2026-11-15T04:00:00Z","completionTime":"2026-11-15T04:02:03Z","succeeded":3,"conditions":[{"type":"Complete","status":"True"}]}})",
       R"(["j","Complete","3/1 of 3","2m3s","60m","m","i","a=b"])"},
      {"service of type LoadBalancer",
       "",
       "services",
       R"({"metadata":{"name":"s","creationTimestamp":"2026-11-15T04:00:00Z"},"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30080,"protocol":"TCP"}],"selector":{"b":"2","a":"1"}}})",
       R"(["s","LoadBalancer","10.0.0.1","<pending>","80:30080/TCP","60m","a=1,b=2"])"},
  };
  for (const auto& one : cases) {
    const auto object = json::parse(one.object);
    ASSERT_TRUE(object) << one.name;
    EXPECT_EQ(
        json::dump(json::at(table_row(resource(one.group, one.plural), *object, now), "cells")),
        one.cells)
        << one.name;
  }
}

TEST(Table, EveryPrinterFillsItsColumns) {
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    const json::Value row =
        table_row(info, json::Object{{"metadata", json::Object{{"name", "x"}}}}, Time{1});
    EXPECT_EQ(json::array_at(row, "cells").size(), info.columns.size())
        << info.group << "/" << info.plural;
  }
}

TEST(Table, PodStatusSince135ShowsTheFailureBehindCompleted) {
  const auto pod = json::parse(
      R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running","containerStatuses":[
      {"name":"a","state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"name":"b","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}})");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod_status_text(*pod), "Error");
}

TEST(JsonPath, Subset) {
  const auto object =
      json::parse(R"({"a":{"b.c":1,"l":[{"t":"x","v":1},{"t":"y","v":2}]},"n":null})");
  ASSERT_TRUE(object);
  struct {
    const char* path;
    const char* want;
  } cases[] = {
      {".a.l[0].t", R"(["x"])"},
      {".a.l[-1:].t", R"(["y"])"},
      {".a.l[*].v", "[1,2]"},
      {".a['b.c']", "[1]"},
      {".a.b\\.c", "[1]"},
      {R"(.a.l[?(@.t=="y")].v)", "[2]"},
      {R"(.a.l[?(@.v>1)].t)", R"(["y"])"},
      {".missing.x", "[]"},
      {".a.l[9].t", "[]"},
      {"{.a.l[0].v}", "[1]"},
      {".a.l[0:1].v", "[1]"},
      {".a.l[", "[]"},
      {"", R"([{"a":{"b.c":1,"l":[{"t":"x","v":1},{"t":"y","v":2}]},"n":null}])"},
      {".n", "[null]"},
  };
  for (const auto& one : cases) {
    json::Array found;
    for (json::Value& value : json_path(*object, one.path)) found.push_back(std::move(value));
    EXPECT_EQ(json::dump(found), one.want) << one.path;
  }
}

}  // namespace
}  // namespace muster::kube
