#include "apiserver/registry/tree.h"

#include "base/log.h"
#include "kube/apply/managed.h"

namespace muster::apiserver {

void Tree::set(json::Packed tree, Text text) {
  made_ = new json::Packed(std::move(tree));
  set_text(std::move(text), nullptr);
}

void Tree::set_text(Text text, std::shared_ptr<json::Packer> packer, Keep keep) {
  text_size_ = static_cast<std::uint32_t>(text->size());
  text_ = std::move(text);
  packer_ = std::move(packer);
  keep_ = keep;
}

Tree::Text Tree::text() const {
  if (auto kept = find_text()) return kept;
  return std::make_shared<const std::string>(kube::object_text(value()));
}

void Tree::drop_text() const {
  if (has_tree()) text_.store(nullptr);
}

const json::Value& Tree::make() const {
  const Text text = find_text();
  const json::Packed* known = made_.load();
  // Nothing was set; or the tree was made, and the text given up, since the caller looked.
  if (!text) return known != nullptr ? known->value() : json::null_value();
  auto parsed = json::parse(*text);
  if (parsed)
    kube::pack_managers(*parsed);
  else
    log::error(
        "apiserver",
        "a stored object cannot be read, restore the data folder from a copy: {} text=\"{}\"",
        parsed.error().message,
        text->substr(0, 200));
  auto made = std::make_unique<const json::Packed>(packer_->pack(parsed ? *parsed : json::Value()));
  known = nullptr;
  // Another thread may have looked at the same time: what one of them was told stays.
  if (made_.compare_exchange_strong(known, made.get())) known = made.release();
  if (keep_ == Keep::kOne) drop_text();
  return known->value();
}

}  // namespace muster::apiserver
