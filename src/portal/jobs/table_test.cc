#include "portal/jobs/table.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "base/strings.h"

namespace muster::portal {
namespace {

struct Made {
  Keys keys;
  Texts texts;
};

Made make(Table& table, Random& random, int number) {
  Made made;
  // Some differ only far beyond their beginning.
  made.texts.name = fmt::format(
      "{}job-{:03}", random.chance(50) ? "a-beginning-of-many-letters-" : "", number * 7 % 1000);
  made.texts.id = "ns/job/" + made.texts.name + fmt::format("-{}", number);
  if (random.chance(30)) made.texts.tags = {"paper"};
  made.keys.state = static_cast<State>(random.below(kStates));
  made.keys.kind = static_cast<JobKind>(random.below(kJobKinds));
  made.keys.gpus = static_cast<std::int32_t>(random.below(9));
  made.keys.submitted = static_cast<Millis>(1000 + random.below(50));
  if (made.keys.state != State::kWaiting && random.chance(80))
    made.keys.started = static_cast<Millis>(1050 + random.below(50));
  made.keys.user = table.words().number(fmt::format("user{}", random.below(5)));
  made.keys.queue = table.words().number(fmt::format("queue{}", random.below(3)));
  made.keys.ns = table.words().number(random.chance(50) ? "a" : "b");
  made.keys.prio = static_cast<std::int32_t>(random.below(4));
  return made;
}

using Foretold = std::map<Slot, Ahead>;

/// Started by when, then expected by when, then by place, then by how long it waits, then the rest.
std::pair<std::int64_t, std::string> start_by_hand(const Keys& keys, const Ahead& ahead) {
  const auto at = [](std::int64_t rank, std::int64_t number) {
    return std::pair(rank, fmt::format("{:020}", number));
  };
  if (keys.started != 0) return at(1, keys.started);
  if (keys.state != State::kWaiting) return at(5, 0);
  if (ahead.start != 0) return at(2, ahead.start);
  return ahead.place != 0 ? at(3, ahead.place) : at(4, keys.submitted);
}

/// What a list by hand says: every row that matches, sorted.
std::vector<std::string> by_hand(const Table& table,
                                 const JobQuery& query,
                                 const Visible& visible,
                                 const Foretold& foretold) {
  const View judge(table, query, visible);
  std::vector<Slot> found;
  for (Slot slot = 0; slot < table.slots(); ++slot) {
    if (!judge.matches(slot)) continue;
    if (query.states != 0 && (query.states >> static_cast<int>(table.keys(slot).state) & 1U) == 0)
      continue;
    found.push_back(slot);
  }
  std::sort(found.begin(), found.end(), [&](Slot a, Slot b) {
    const auto key = [&](Slot slot) -> std::pair<std::int64_t, std::string> {
      const Keys& keys = table.keys(slot);
      switch (query.sort) {
        case SortField::kGpus:
          return {keys.gpus, ""};
        case SortField::kName:
          return {0, table.texts(slot).name};
        case SortField::kUser:
          return {0, table.words().text(keys.user)};
        case SortField::kState:
          return {static_cast<std::int64_t>(keys.state), ""};
        case SortField::kStart:
          return start_by_hand(keys, foretold.contains(slot) ? foretold.at(slot) : Ahead{});
        default:
          return {keys.submitted, ""};
      }
    };
    const auto left = key(a), right = key(b);
    return left != right ? left < right : table.texts(a).id < table.texts(b).id;
  });
  if (query.descending) std::reverse(found.begin(), found.end());
  std::vector<std::string> ids;
  for (const Slot slot : found) ids.push_back(table.texts(slot).id);
  return ids;
}

std::vector<std::string> shown(const Table& table, const View& view, const JobQuery& query) {
  std::vector<std::string> ids;
  for (const Slot slot : table.page(view, query, {0, 100'000}).rows)
    ids.push_back(table.texts(slot).id);
  return ids;
}

TEST(Table, ViewsThatFollowChangesEqualAListMadeByHand) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Table table;
    std::vector<JobQuery> queries(8);
    queries[1].users = {"user1", "user2"};
    queries[1].sort = SortField::kGpus;
    queries[2].states = 1U << static_cast<int>(State::kRunning);
    queries[2].sort = SortField::kName;
    queries[2].descending = false;
    queries[3].tags = {"paper"};
    queries[3].sort = SortField::kUser;
    queries[4].text = "job-01";
    queries[4].sort = SortField::kState;
    queries[5].queues = {"queue1"};
    queries[5].from = 1010;
    queries[5].to = 1040;
    queries[6].sort = SortField::kStart;
    queries[6].descending = false;
    queries[7].sort = SortField::kStart;
    queries[7].users = {"user1", "user3"};
    const Visible all{.all = true};
    const Visible some{.namespaces = {"a"}};
    std::vector<ViewPtr> views, narrow;
    std::vector<Slot> slots;
    Foretold foretold;
    for (int step = 0; step < 400; ++step) {
      if (step == 50) {
        for (const JobQuery& query : queries) views.push_back(table.view(query, all));
        for (const JobQuery& query : queries) narrow.push_back(table.view(query, some));
      }
      if (random.chance(5)) {
        std::vector<Ahead> ahead(table.slots());
        foretold.clear();
        for (const Slot slot : slots) {
          if (random.chance(50)) ahead[slot].place = static_cast<std::int32_t>(random.below(9));
          if (random.chance(50)) ahead[slot].start = static_cast<Millis>(900 + random.below(300));
          if (table.keys(slot).state == State::kWaiting) foretold[slot] = ahead[slot];
        }
        table.expect(ahead, table.version());
      } else if (slots.empty() || random.chance(40)) {
        Made made = make(table, random, step);
        slots.push_back(table.add(made.keys, made.texts));
      } else if (random.chance(70)) {
        const Slot slot = slots[random.below(slots.size())];
        Made made = make(table, random, step);
        made.texts.id = table.texts(slot).id;
        table.set(slot, made.keys, made.texts);
        if (made.keys.state != State::kWaiting) foretold.erase(slot);
      } else {
        const std::size_t at = random.below(slots.size());
        table.remove(slots[at]);
        foretold.erase(slots[at]);
        slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      EXPECT_EQ(shown(table, *views[i], queries[i]), by_hand(table, queries[i], all, foretold))
          << "seed " << seed << " query " << i;
      EXPECT_EQ(shown(table, *narrow[i], queries[i]), by_hand(table, queries[i], some, foretold))
          << "seed " << seed << " query " << i;
      std::int32_t sum = 0;
      for (const std::int32_t count : views[i]->counts()) sum += count;
      EXPECT_EQ(static_cast<std::size_t>(sum), views[i]->order().size());
    }
  }
}

TEST(Table, PagesJoinWithoutGapOrDouble) {
  Random random(7);
  Table table;
  for (int i = 0; i < 100; ++i) {
    Made made = make(table, random, i);
    table.add(made.keys, made.texts);
  }
  JobQuery query;
  query.states = 0b11;
  const ViewPtr view = table.view(query, {.all = true});
  std::vector<Slot> joined;
  for (std::size_t first = 0; first < 100; first += 7) {
    const Page page = table.page(*view, query, {first, first + 7});
    joined.insert(joined.end(), page.rows.begin(), page.rows.end());
  }
  EXPECT_EQ(joined, table.page(*view, query, {0, 100}).rows);
  EXPECT_EQ(joined.size(), table.page(*view, query, {0, 1}).total);
}

TEST(Table, WhatIsForetoldLateDoesNotTouchRowsThatHaveChangedMeanwhile) {
  Random random(5);
  Table table;
  JobQuery query;
  query.sort = SortField::kStart;
  query.descending = false;
  std::vector<Slot> slots;
  for (int i = 0; i < 3; ++i) {
    Made made = make(table, random, i);
    made.keys.state = State::kWaiting;
    made.keys.started = 0;
    slots.push_back(table.add(made.keys, made.texts));
  }
  const ViewPtr view = table.view(query, {.all = true});
  table.expect({{.start = 30}, {.start = 10}, {.start = 20}}, table.version());
  EXPECT_EQ(view->order(), (std::vector<Slot>{slots[1], slots[2], slots[0]}));
  const std::uint64_t since = table.version();
  // Another job has come to the place of the first one.
  Made made = make(table, random, 9);
  made.keys.state = State::kWaiting;
  made.keys.started = 0;
  table.remove(slots[0]);
  ASSERT_EQ(table.add(made.keys, made.texts), slots[0]);
  table.expect({{.start = 5}, {.start = 40}, {.start = 20}}, since);
  EXPECT_EQ(view->order(), (std::vector<Slot>{slots[2], slots[1], slots[0]}));
}

TEST(Table, ARowThatDoesNotChangeKeepsItsVersion) {
  Random random(1);
  Table table;
  const Made made = make(table, random, 1);
  const Slot slot = table.add(made.keys, made.texts);
  const std::uint64_t version = table.version(slot);
  EXPECT_FALSE(table.set(slot, made.keys, made.texts));
  EXPECT_EQ(table.version(slot), version);
}

TEST(Table, ATextIsFoundWhereverItStandsInAName) {
  Random random(11);
  Table table;
  std::vector<std::string> ids;
  for (int i = 0; i < 300; ++i) {
    Made made;
    for (int length = 3 + static_cast<int>(random.below(40)); length > 0; --length)
      made.texts.name += static_cast<char>('a' + random.below(4));
    made.texts.id = fmt::format("ns/job/{}-{}", made.texts.name, i);
    ids.push_back(made.texts.id);
    table.add(made.keys, made.texts);
  }
  for (int i = 0; i < 200; ++i) {
    const std::string& from = ids[random.below(ids.size())];
    const std::size_t first = random.below(from.size());
    JobQuery query;
    query.text = from.substr(first, 1 + random.below(8));
    const ViewPtr view = table.view(query, {.all = true});
    const auto wanted = std::count_if(ids.begin(), ids.end(), [&](const std::string& id) {
      return id.find(query.text) != std::string::npos;
    });
    EXPECT_EQ(view->order().size(), static_cast<std::size_t>(wanted)) << query.text;
  }
}

TEST(Table, GroupsCountWhatAListHas) {
  Random random(3);
  Table table;
  for (int i = 0; i < 200; ++i) {
    Made made = make(table, random, i);
    if (random.chance(50)) made.keys.prio_class = table.words().number("high");
    table.add(made.keys, made.texts);
  }
  for (const GroupField field : {GroupField::kUser,
                                 GroupField::kQueue,
                                 GroupField::kState,
                                 GroupField::kPrio,
                                 GroupField::kKind,
                                 GroupField::kTag}) {
    JobQuery query;
    query.group = field;
    query.states = 0b101;
    const ViewPtr view = table.view(query, {.all = true});
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> wanted;  // jobs, GPUs
    for (const Slot slot : table.page(*view, query, {0, 1000}).rows) {
      const Keys& keys = table.keys(slot);
      std::vector<std::string> values;
      if (field == GroupField::kUser) values = {table.words().text(keys.user)};
      if (field == GroupField::kQueue) values = {table.words().text(keys.queue)};
      if (field == GroupField::kState) values = {std::string(state_name(keys.state))};
      if (field == GroupField::kKind) values = {std::string(kind_name(keys.kind))};
      if (field == GroupField::kTag) values = table.texts(slot).tags;
      if (field == GroupField::kPrio)
        values = {keys.prio_class != 0 ? "high" : std::to_string(keys.prio)};
      for (const std::string& value : values) {
        ++wanted[value].first;
        wanted[value].second += keys.gpus;
      }
    }
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> found;
    for (const GroupRow& row : table.groups(*view, query)) {
      found[row.value] = {row.jobs, row.gpus};
      std::int64_t states = 0;
      for (const std::int64_t count : row.states) states += count;
      EXPECT_EQ(states, row.jobs);
    }
    EXPECT_EQ(found, wanted) << static_cast<int>(field);
    EXPECT_FALSE(found.empty());
  }
}

TEST(JobQuery, WhatIsWrongIsSaid) {
  for (const char* wrong : {R"({"colour":["red"]})",
                            R"({"state":["Running"]})",
                            R"({"sort":"size"})",
                            R"({"user":7})",
                            R"({"from":"soon"})",
                            R"([])"}) {
    const auto query = parse_job_query(*json::parse(wrong), "alice");
    EXPECT_FALSE(query) << wrong;
    if (!query) EXPECT_FALSE(query.error().message.empty());
  }
  const auto mine = parse_job_query(*json::parse(R"({"user":["me"],"sort":"-gpus"})"), "alice");
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->users, std::vector<std::string>{"alice"});
  EXPECT_TRUE(mine->descending);
}

TEST(JobQuery, AWindowHasAtMostFiveHundredRows) {
  EXPECT_TRUE(parse_window(*json::parse("[0,500]")));
  for (const char* wrong : {"[0,501]", "[5,4]", "[-1,4]", "[1]", "{}", "[0,1.5]"})
    EXPECT_FALSE(parse_window(*json::parse(wrong))) << wrong;
}

}  // namespace
}  // namespace muster::portal
