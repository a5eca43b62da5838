#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"
#include "engine/model/ids.h"
#include "engine/model/shared.h"
#include "engine/state/id_table.h"

namespace muster::engine {
namespace {

TEST(IdTable, FindsWhatAMapFindsWhateverCameAndWent) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    IdTable<PodId> table;
    std::map<std::string, PodId> model;
    std::vector<std::string> names;  // by id
    const auto name_of = [&](PodId id) -> const std::string& { return names[id.index()]; };
    for (int step = 0; step < 4000; ++step) {
      const std::string name = fmt::format("ns/pod-{}", random.below(300));
      const std::uint32_t hash = table.hash(name);
      const auto known = model.find(name);
      ASSERT_EQ(table.find(name, hash, name_of), known == model.end() ? PodId{} : known->second);
      if (known == model.end()) {
        const auto id = PodId(static_cast<std::uint32_t>(names.size()));
        names.push_back(name);
        table.insert(hash, id);
        model.emplace(name, id);
      } else if (random.below(2) == 0) {
        table.erase(hash, known->second);
        model.erase(known);
      }
    }
    const IdTable<PodId> copy = table;
    for (const auto& [name, id] : model) ASSERT_EQ(copy.find(name, copy.hash(name), name_of), id);
  }
}

TEST(Shared, CopiesAreTheSameValueAndChangesAreTheirOwn) {
  Name a(std::string("a name that is too long to stand in the string itself"));
  Name b = a;
  EXPECT_EQ(&*a, &*b);
  b.become(*a);
  EXPECT_EQ(&*a, &*b) << "an equal value stays";
  b = std::string("another");
  EXPECT_EQ(*b, "another");
  EXPECT_NE(*a, *b);
  const Name empty;
  EXPECT_TRUE(empty->empty());
  EXPECT_EQ(&*empty, &*Name(std::string())) << "nothing takes no memory";
}

}  // namespace
}  // namespace muster::engine
