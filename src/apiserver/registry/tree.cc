#include "apiserver/registry/tree.h"

#include "base/log.h"
#include "kube/apply/managed.h"

namespace muster::apiserver {

void Tree::set_text(std::shared_ptr<const std::string> text, std::shared_ptr<json::Packer> packer) {
  text_ = std::move(text);
  packer_ = std::move(packer);
}

const json::Value& Tree::make() const {
  if (!text_) return json::null_value();
  auto parsed = json::parse(*text_);
  if (parsed)
    kube::pack_managers(*parsed);
  else
    log::error(
        "apiserver",
        "a stored object cannot be read, restore the data folder from a copy: {} text=\"{}\"",
        parsed.error().message,
        text_->substr(0, 200));
  auto made = std::make_unique<const json::Packed>(packer_->pack(parsed ? *parsed : json::Value()));
  const json::Packed* known = nullptr;
  // Another thread may have looked at the same time: what one of them was told stays.
  if (made_.compare_exchange_strong(known, made.get())) known = made.release();
  return known->value();
}

}  // namespace muster::apiserver
