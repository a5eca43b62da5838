#include "apiserver/encryption/sealed_store.h"

#include "base/log.h"
#include "store/rewrite.h"

namespace muster::apiserver::encryption {
namespace {

using store::Bytes;
using store::Revision;

const std::string kPrefix = "/secrets/";

class SealedStore final : public store::Store {
 public:
  SealedStore(std::unique_ptr<store::Store> inner, Keys keys)
      : inner_(std::move(inner)), keys_(std::make_shared<const Keys>(std::move(keys))) {}

  [[nodiscard]] std::string trouble() const override { return inner_->trouble(); }
  [[nodiscard]] const Error* failure() const override { return inner_->failure(); }
  [[nodiscard]] Revision revision() const override { return inner_->revision(); }
  [[nodiscard]] Revision compacted() const override { return inner_->compacted(); }
  [[nodiscard]] Revision next_revision() const override { return inner_->next_revision(); }

  Revision write(std::string key,
                 MakeValue make,
                 store::Kind kind,
                 std::function<void(Result<void>)> done) override {
    if (!keys_->empty() && key.starts_with(kPrefix)) {
      make = [make = std::move(make), keys = keys_, key] {
        auto sealed = encrypt(*keys, key, *make());
        // There is no answer to a cipher that fails but not to write the Secret in plain.
        MUSTER_CHECK(sealed.has_value(), sealed.error().message);
        return std::make_shared<const std::string>(std::move(*sealed));
      };
    }
    return inner_->write(std::move(key), std::move(make), kind, std::move(done));
  }

  Result<void> load(const std::function<void(store::Record)>& each) override {
    Result<void> failed;
    const auto loaded = inner_->load([&](store::Record record) {
      const auto opened = open_value(record.key, record.value);
      if (!opened && failed) failed = opened;
      if (opened) each(std::move(record));
    });
    return failed ? loaded : failed;
  }

  Result<std::vector<store::Change>> changes_after(Revision revision, std::size_t limit) override {
    auto changes = inner_->changes_after(revision, limit);
    if (!changes) return changes;
    for (store::Change& change : *changes) {
      const auto opened = open_value(change.key, change.value);
      if (!opened) return fail(opened.error());
    }
    return changes;
  }

  void compact(Revision revision) override { inner_->compact(revision); }
  Task<void> close() override { return inner_->close(); }

 private:
  Result<void> open_value(const std::string& key, Bytes& value) const {
    if (!key.starts_with(kPrefix)) return {};
    auto plain = decrypt(*keys_, key, *value);
    if (!plain) return fail(plain.error());
    value = std::make_shared<const std::string>(std::move(*plain));
    return {};
  }

  std::unique_ptr<store::Store> inner_;
  const std::shared_ptr<const Keys> keys_;
};

}  // namespace

Result<std::unique_ptr<store::Store>> open(Env& env, const std::string& path, Keys keys) {
  const auto changed = store::rewrite(
      path,
      kPrefix,
      [&](std::string_view key, std::string_view value) -> Result<std::optional<std::string>> {
        if (keys.empty() || is_current(keys, value)) return std::optional<std::string>();
        const auto plain = decrypt(keys, key, value);
        if (!plain) return fail(plain.error());
        auto sealed = encrypt(keys, key, *plain);
        if (!sealed) return fail(sealed.error());
        return std::optional(std::move(*sealed));
      });
  if (!changed) return fail(changed.error());
  if (*changed > 0)
    log::info("apiserver",
              "{} states of Secrets are encrypted with key {} now",
              *changed,
              keys.front().id);
  auto inner = store::open(env, path);
  if (!inner) return inner;
  return std::unique_ptr<store::Store>(
      std::make_unique<SealedStore>(std::move(*inner), std::move(keys)));
}

}  // namespace muster::apiserver::encryption
