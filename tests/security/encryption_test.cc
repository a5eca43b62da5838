/// Reading the database file, or a copy of it, does not reveal the Secrets.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "apiserver/encryption/sealed_store.h"
#include "base/strings.h"
#include "net/tls/seal.h"
#include "security/cluster.h"
#include "security/folder.h"

namespace muster::apiserver {
namespace {

using encryption::Keys;

Keys keys(std::string_view letters) {
  std::string text = "# of the test\n\n";
  for (const char letter : letters) text += base64_encode(std::string(32, letter)) + "  # a key\n";
  return *encryption::parse_keys(text);
}

/// A database in a folder of its own, opened again and again.
class Encryption : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.path() + "/muster.db"; }

  /// Everything that lies in the folder, the write-ahead log included.
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::ifstream in(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }

  void write(const Keys& with, const std::vector<std::pair<std::string, std::string>>& records) {
    net::Loop loop;
    auto opened = encryption::open(loop, path(), with);
    ASSERT_TRUE(opened) << opened.error().message;
    loop.run_until_done(write_all(**opened, loop, records));
  }

  /// "key=value" of all records and, behind them, of all changes; or the error.
  std::vector<std::string> read(const Keys& with) {
    net::Loop loop;
    auto opened = encryption::open(loop, path(), with);
    if (!opened) return {opened.error().message};
    std::vector<std::string> out;
    const auto loaded = (*opened)->load(
        [&](const store::Record& record) { out.push_back(record.key + "=" + *record.value); });
    if (!loaded) out = {loaded.error().message};
    const auto changes = (*opened)->changes_after(0, 100);
    if (changes) {
      for (const auto& change : *changes) out.push_back(change.key + "=" + *change.value);
    }
    loop.run_until_done((*opened)->close());
    return out;
  }

 private:
  static Task<void> write_all(store::Store& store,
                              net::Loop& loop,
                              const std::vector<std::pair<std::string, std::string>>& records) {
    auto done = loop.make_signal();
    std::size_t left = records.size();
    for (const auto& [key, value] : records) {
      (void)store.write(
          key, std::make_shared<const std::string>(value), false, [&](Result<void> result) {
            EXPECT_TRUE(result) << result.error().message;
            if (--left == 0) done->notify();
          });
    }
    co_await done->wait(Duration::zero());
    co_await store.close();
  }

  TemporaryFolder folder_;
};

const std::vector<std::pair<std::string, std::string>> kRecords = {
    {"/secrets/vision/s", R"({"pw":"hunter2"})"},
    {"/secrets/vision/s", R"({"pw":"hunter3"})"},
    {"/configmaps/vision/c", R"({"k":"plain"})"}};
const std::vector<std::string> kRead = {"/configmaps/vision/c={\"k\":\"plain\"}",
                                        "/secrets/vision/s={\"pw\":\"hunter3\"}",
                                        "/secrets/vision/s={\"pw\":\"hunter2\"}",
                                        "/secrets/vision/s={\"pw\":\"hunter3\"}",
                                        "/configmaps/vision/c={\"k\":\"plain\"}"};

TEST_F(Encryption, TheFileHoldsNoSecretAndNoHistoryOfOne) {
  write(keys("a"), kRecords);
  EXPECT_EQ(bytes().find("hunter"), std::string::npos);
  EXPECT_NE(bytes().find("plain"), std::string::npos);
  EXPECT_EQ(read(keys("a")), kRead);
}

TEST_F(Encryption, WhatWasInPlainIsEncryptedAtTheNextStart) {
  write({}, kRecords);
  EXPECT_NE(bytes().find("hunter2"), std::string::npos);
  EXPECT_EQ(read(keys("a")), kRead);
  EXPECT_EQ(bytes().find("hunter"), std::string::npos);
}

TEST_F(Encryption, ANewKeyIsPutFirstAndTheOldOneGoesAfterOneStart) {
  write(keys("a"), kRecords);
  EXPECT_EQ(read(keys("ba")), kRead);
  EXPECT_EQ(read(keys("b")), kRead);
}

TEST_F(Encryption, AMissingOrWrongKeyIsSaid) {
  write(keys("a"), kRecords);
  const std::string id = keys("a").front().id;
  EXPECT_EQ(
      read({}).front(),
      fmt::format("the stored object \"/secrets/vision/s\" is encrypted with key {}, which is "
                  "not known: start with --encryption-key-file",
                  id));
  EXPECT_EQ(
      read(keys("b")).front(),
      fmt::format("the stored object \"/secrets/vision/s\" is encrypted with key {}, which is "
                  "not in the file of --encryption-key-file: add it after the others",
                  id));
  // Nothing was changed by trying.
  EXPECT_EQ(read(keys("a")), kRead);
}

TEST(Sealing, AValueCannotBeMovedOrChanged) {
  const Keys with = keys("a");
  const std::string sealed = *encryption::encrypt(with, "/secrets/a/s", "value");
  EXPECT_EQ(*encryption::decrypt(with, "/secrets/a/s", sealed), "value");
  EXPECT_FALSE(encryption::decrypt(with, "/secrets/b/s", sealed));
  for (std::size_t i = sealed.size() - 40; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(encryption::decrypt(with, "/secrets/a/s", changed)) << i;
  }
  // The same value twice does not look the same.
  EXPECT_NE(sealed, *encryption::encrypt(with, "/secrets/a/s", "value"));
}

TEST(KeyFile, MistakesAreNamed) {
  EXPECT_EQ(encryption::parse_keys("").error().message,
            "wanted at least one key, 32 bytes in base64 (openssl rand -base64 32), found none");
  EXPECT_EQ(encryption::parse_keys("#\nAAAA\n").error().message,
            "line 2: wanted 32 bytes in base64 (openssl rand -base64 32), found 3 bytes");
  EXPECT_EQ(encryption::parse_keys("!!").error().message,
            "line 1: wanted 32 bytes in base64 (openssl rand -base64 32), found no base64");
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/keys";
  std::ofstream(path) << base64_encode(std::string(32, 'a'));
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_EQ(encryption::read_keys(path).error().message,
            fmt::format("others may read \"{0}\": chmod 600 {0}", path));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  EXPECT_TRUE(encryption::read_keys(path));
}

}  // namespace
}  // namespace muster::apiserver
