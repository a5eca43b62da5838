#include "json/packed.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::json {
namespace packing {
namespace {

/// Smaller parts are not worth a look-up: a part that is shared has a piece of its own.
constexpr std::size_t kShareBytesMin = 96;
/// How many of the parts met last are remembered: the second meeting makes them shared ones.
constexpr std::size_t kMetMax = 1U << 16;
/// What Boost.JSON keeps inside of a value, and the least it allocates for more.
constexpr std::size_t kShortText = 14, kLongTextMin = 30;
constexpr std::size_t kSmallObject = 18;

/// What does not fit a piece that was judged too small.
struct Spill {
  Spill* next;
};

}  // namespace

/// Memory of one tree or of one shared part: this head, the parts it points into, tables and texts.
/// No value in it is ever destroyed; the memory goes as a whole.
struct Piece {
  std::atomic<std::uint32_t> holders{1};
  std::uint32_t parts = 0;
  std::uint64_t hash = 0;  // of a shared part
  std::size_t bytes = 0;
  Spill* spill = nullptr;
  alignas(Value) std::byte value[sizeof(Value)];

  [[nodiscard]] const Value& get() const {
    return *std::launder(reinterpret_cast<const Value*>(value));
  }
  Piece** part() { return reinterpret_cast<Piece**>(this + 1); }
};

namespace {

/// Hands out one piece from both ends: tables from the front, names of members, which need no
/// alignment, from the back.
class Arena final : public boost::json::memory_resource {
 public:
  Arena(Piece& piece, std::byte* front, std::byte* back)
      : piece_(piece), front_(front), back_(back) {}

  /// The next name does not stay where it is written: it may be written here.
  void lend(void* place) { lent_ = place; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t align) override {
    if (align == 1) {
      if (lent_ != nullptr) return std::exchange(lent_, nullptr);
      if (bytes > room()) return spill(bytes);
      return back_ -= bytes;
    }
    align = std::min(align, alignof(Value));  // no value asks for more; who asks does not know
    const std::size_t skip = -reinterpret_cast<std::uintptr_t>(front_) & (align - 1);
    if (skip + bytes > room()) return spill(bytes);
    std::byte* place = front_ + skip;
    front_ = place + bytes;
    return place;
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  [[nodiscard]] std::size_t room() const { return static_cast<std::size_t>(back_ - front_); }
  void* spill(std::size_t bytes) {
    constexpr std::size_t kHead = std::max(sizeof(Spill), alignof(std::max_align_t));
    auto* place = static_cast<std::byte*>(::operator new(kHead + bytes));
    piece_.spill = ::new (place) Spill{piece_.spill};
    piece_.bytes += kHead + bytes;
    return place + kHead;
  }

  Piece& piece_;
  std::byte* front_;
  std::byte* back_;
  void* lent_ = nullptr;
};

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xbf58476d1ce4e5b9U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = text.size();
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    hash = mix(hash, word);
    text.remove_prefix(sizeof word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, text.data(), text.size());
  return mix(hash, rest);
}

/// The same tree, also to the order of members and the kind of numbers.
bool same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case boost::json::kind::null:
      return true;
    case boost::json::kind::bool_:
      return a.get_bool() == b.get_bool();
    case boost::json::kind::int64:
      return a.get_int64() == b.get_int64();
    case boost::json::kind::uint64:
      return a.get_uint64() == b.get_uint64();
    case boost::json::kind::double_:
      return std::bit_cast<std::uint64_t>(a.get_double()) ==
             std::bit_cast<std::uint64_t>(b.get_double());
    case boost::json::kind::string:
      return a.get_string() == b.get_string();
    case boost::json::kind::array: {
      const Array &left = a.get_array(), &right = b.get_array();
      return left.size() == right.size() &&
             std::equal(left.begin(), left.end(), right.begin(), same);
    }
    case boost::json::kind::object: {
      const Object &left = a.get_object(), &right = b.get_object();
      return left.size() == right.size() &&
             std::equal(left.begin(), left.end(), right.begin(), [](const auto& l, const auto& r) {
               return l.key() == r.key() && same(l.value(), r.value());
             });
    }
  }
  return false;
}

std::size_t rounded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

/// What a value takes beside itself: the table of an array or object with the names of members, a
/// long text.
std::size_t own_bytes(const Value& value) {
  if (const auto* text = value.if_string())
    return text->size() <= kShortText
               ? 0
               : rounded(2 * sizeof(std::uint32_t) + 1 + std::max(text->size(), kLongTextMin));
  if (const auto* array = value.if_array())
    return array->empty() ? 0 : 2 * sizeof(std::uint32_t) + array->size() * sizeof(Value);
  const auto* object = value.if_object();
  if (object == nullptr || object->empty()) return 0;
  std::size_t bytes = 2 * sizeof(std::uint32_t) + sizeof(std::uintptr_t) +
                      object->size() * sizeof(boost::json::key_value_pair);
  if (object->size() > kSmallObject) bytes += rounded(object->size() * sizeof(std::uint32_t));
  return bytes;
}

/// Which of the hashes were met lately.
class Met {
 public:
  /// True if it was; from now on it was.
  bool again(std::uint64_t hash) {
    const auto upper = static_cast<std::uint32_t>(hash >> 32);
    return std::exchange(hashes_[hash % kMetMax], upper) == upper;
  }

 private:
  std::vector<std::uint32_t> hashes_ = std::vector<std::uint32_t>(kMetMax);
};

/// Names of members: few, and in every tree again. They stay for good.
class Names {
 public:
  /// Null: the name is not one of those that are shared. The second meeting makes it one.
  const char* find(std::string_view name, bool meet) {
    if (!can_point_ || name.size() > kNameMax) return nullptr;
    const std::uint64_t hash = hash_text(name);
    for (std::size_t at = hash % kNamesMax, tries = 0; tries < kTriesMax; ++tries) {
      Name& known = names_[(at + tries) % kNamesMax];
      if (known.text == nullptr) {
        if (!meet || !met_.again(hash)) return nullptr;
        known.hash = hash;
        known.text = std::make_unique<char[]>(name.size() + 1);
        std::copy(name.begin(), name.end(), known.text.get());
      }
      if (known.hash == hash && known.text.get() == name) return known.text.get();
    }
    return nullptr;
  }

  /// The member is named by the shared text, which says the same.
  static void point(boost::json::key_value_pair& member, const char* name) {
    std::memcpy(place_of_name(member), &name, sizeof name);
  }

  static constexpr std::size_t kNameMax = 63;

 private:
  static constexpr std::size_t kNamesMax = 8'192, kTriesMax = 8;
  struct Name {
    std::uint64_t hash = 0;
    std::unique_ptr<char[]> text;
  };

  static std::byte* place_of_name(boost::json::key_value_pair& member) {
    return reinterpret_cast<std::byte*>(&member) + sizeof(Value);
  }
  /// Boost.JSON does not say where it keeps a name: where it is elsewhere, none is shared.
  static bool is_where_it_is_thought() {
    Object probe{{"name", nullptr}};
    const char* found = nullptr;
    std::memcpy(&found, place_of_name(*probe.begin()), sizeof found);
    return found == probe.begin()->key_c_str();
  }

  const bool can_point_ = is_where_it_is_thought();
  std::vector<Name> names_ = std::vector<Name>(kNamesMax);
  Met met_;
};

}  // namespace

/// What all trees of one Packer know of each other.
class Table {
 public:
  Piece* pack(const Value& value) {
    const std::lock_guard guard(mutex_);
    marks_.clear();
    (void)survey(value);
    cursor_ = 0;
    ++trees_;
    return make(value, 0);
  }

  void release_tree(Piece* root) {
    --trees_;
    release(root);
  }

  Packer::Counts counts() {
    const std::lock_guard guard(mutex_);
    return {trees_.load(), pieces_.size(), bytes_.load(), misjudged_};
  }

 private:
  /// One value that has something beside itself, in the order of the tree.
  struct Mark {
    std::uint64_t hash = 0;
    std::size_t bytes = 0;  // of the whole part
    std::size_t end = 0;    // the mark after its last one
    Piece* shared = nullptr;
  };

  /// Marks what could be shared and returns a hash of the value.
  std::uint64_t survey(const Value& value) {
    const auto kind = static_cast<std::uint64_t>(value.kind());
    if (value.is_string() && value.get_string().size() <= kShortText)
      return mix(kind, hash_text(value.get_string()));
    if (value.is_primitive() && !value.is_string()) return mix(kind, hash_number(value));
    const std::size_t at = marks_.size();
    marks_.emplace_back();
    std::uint64_t hash = kind;
    if (const auto* text = value.if_string()) hash = mix(hash, hash_text(*text));
    if (const auto* array = value.if_array()) {
      hash = mix(hash, array->size());
      for (const Value& each : *array) hash = mix(hash, survey(each));
    } else if (const auto* object = value.if_object()) {
      hash = mix(hash, object->size());
      for (const auto& member : *object)
        hash = mix(mix(hash, hash_text(member.key())), survey(member.value()));
    }
    Mark& mark = marks_[at];
    mark.hash = std::max<std::uint64_t>(hash, 1);
    mark.bytes += own_bytes(value);
    mark.end = marks_.size();
    for (std::size_t below = at + 1; below < mark.end; below = marks_[below].end)
      mark.bytes += marks_[below].bytes;
    return hash;
  }

  static std::uint64_t hash_number(const Value& value) {
    if (const auto* yes = value.if_bool()) return *yes ? 1 : 2;
    if (const auto* number = value.if_int64()) return static_cast<std::uint64_t>(*number);
    if (const auto* number = value.if_uint64()) return *number;
    if (const auto* number = value.if_double()) return std::bit_cast<std::uint64_t>(*number);
    return 0;
  }

  /// Calls `visit` with each value directly below.
  template <typename Visit>
  static void each_below(const Value& value, const Visit& visit) {
    if (const auto* array = value.if_array()) {
      for (const Value& each : *array) visit(each);
    } else if (const auto* object = value.if_object()) {
      for (const auto& member : *object) visit(member.value());
    }
  }

  [[nodiscard]] static bool is_marked(const Value& value) {
    return value.is_structured() || (value.is_string() && value.get_string().size() > kShortText);
  }

  /// One piece for the value whose mark comes next.
  Piece* make(const Value& value, std::uint64_t hash) {
    std::vector<Piece*> parts;
    const std::size_t begun = cursor_;
    std::size_t bytes = 0;
    if (is_marked(value)) bytes = judge_inside(value, parts);
    const std::size_t whole = sizeof(Piece) + parts.size() * sizeof(Piece*) + bytes;
    auto* memory = static_cast<std::byte*>(::operator new(whole));
    auto* piece = ::new (memory) Piece;
    piece->hash = hash;
    piece->bytes = whole;
    piece->parts = static_cast<std::uint32_t>(parts.size());
    std::copy(parts.begin(), parts.end(), piece->part());
    Arena arena(*piece, memory + whole - bytes, memory + whole);
    const std::size_t ended = std::exchange(cursor_, begun);
    build(value, piece->value, arena);
    cursor_ = ended;
    bytes_ += piece->bytes;
    misjudged_ += piece->spill == nullptr ? 0 : 1;
    return piece;
  }

  /// Decides what of the value at the cursor is shared; returns the bytes of what is not.
  std::size_t judge_inside(const Value& value, std::vector<Piece*>& parts) {
    ++cursor_;
    std::size_t bytes = own_bytes(value);
    if (const auto* object = value.if_object()) {
      for (const auto& member : *object)
        bytes += names_.find(member.key(), true) != nullptr ? 0 : member.key().size() + 1;
    }
    each_below(value, [&](const Value& below) {
      if (is_marked(below)) bytes += judge(below, parts);
    });
    return bytes;
  }

  std::size_t judge(const Value& value, std::vector<Piece*>& parts) {
    const std::size_t at = cursor_;
    if (marks_[at].bytes >= kShareBytesMin) {
      Piece* shared = find(value, marks_[at].hash);
      if (shared == nullptr && met_.again(marks_[at].hash)) {
        shared = make(value, marks_[at].hash);
        pieces_[marks_[at].hash] = shared;
      }
      if (shared != nullptr) {
        marks_[at].shared = shared;
        parts.push_back(shared);
        cursor_ = marks_[at].end;
        return 0;
      }
    }
    return judge_inside(value, parts);
  }

  /// Writes the value into a place that holds none.
  void build(const Value& value, void* place, Arena& arena) {
    if (!is_marked(value)) {
      ::new (place) Value(value, boost::json::storage_ptr());
      return;
    }
    const Mark& mark = marks_[cursor_];
    if (mark.shared != nullptr) {
      // The same table or text once more: neither value is ever changed or destroyed.
      std::memcpy(place, mark.shared->value, sizeof(Value));
      cursor_ = mark.end;
      return;
    }
    ++cursor_;
    Value* made = nullptr;
    if (const auto* array = value.if_array()) {
      made = ::new (place) Value(boost::json::array_kind, &arena);
      Array& target = made->get_array();
      target.reserve(array->size());
      for (const Value& each : *array) build(each, &target.emplace_back(nullptr), arena);
    } else if (const auto* object = value.if_object()) {
      made = ::new (place) Value(boost::json::object_kind, &arena);
      Object& target = made->get_object();
      target.reserve(object->size());
      for (const auto& member : *object)
        build(member.value(), &name(target, member.key(), arena).value(), arena);
    } else {
      made = ::new (place) Value(value.get_string(), &arena);
    }
    // Copies take over what a value allocates with, and outlive the arena.
    const_cast<boost::json::storage_ptr&>(made->storage()) = boost::json::storage_ptr();
  }

  /// A new member of this name.
  boost::json::key_value_pair& name(Object& target, std::string_view text, Arena& arena) {
    const char* shared = names_.find(text, false);
    std::array<char, Names::kNameMax + 1> lent;
    if (shared != nullptr) arena.lend(lent.data());
    auto& member = *target.emplace(text, nullptr).first;
    if (shared != nullptr) Names::point(member, shared);
    return member;
  }

  /// The shared part that is the same, held once more. Who lets go of the last hold takes the part
  /// out of the table before the memory goes, so what is found here can be looked at.
  Piece* find(const Value& value, std::uint64_t hash) {
    const auto found = pieces_.find(hash);
    if (found == pieces_.end() || !same(found->second->get(), value)) return nullptr;
    std::uint32_t holders = found->second->holders.load();
    do {
      if (holders == 0) return nullptr;
    } while (!found->second->holders.compare_exchange_weak(holders, holders + 1));
    return found->second;
  }

  void release(Piece* piece) {
    if (piece->holders.fetch_sub(1) != 1) return;
    if (piece->hash != 0) {
      const std::lock_guard guard(mutex_);
      const auto found = pieces_.find(piece->hash);
      if (found != pieces_.end() && found->second == piece) pieces_.erase(found);
    }
    for (std::uint32_t at = 0; at < piece->parts; ++at) release(piece->part()[at]);
    bytes_ -= piece->bytes;
    while (piece->spill != nullptr) {
      Spill* spill = std::exchange(piece->spill, piece->spill->next);
      ::operator delete(spill);
    }
    piece->~Piece();
    ::operator delete(piece);
  }

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Piece*> pieces_;  // the shared ones, by hash
  Met met_;
  Names names_;
  std::vector<Mark> marks_;  // of the tree being packed
  std::size_t cursor_ = 0;   // the next of them
  std::size_t misjudged_ = 0;
  std::atomic<std::size_t> trees_ = 0, bytes_ = 0;
};

}  // namespace packing

Packed::~Packed() {
  if (root_ != nullptr) table_->release_tree(root_);
}

const Value& Packed::value() const { return root_ == nullptr ? null_value() : root_->get(); }

Packer::Packer() : table_(std::make_shared<packing::Table>()) {}

Packed Packer::pack(const Value& value) {
  Packed packed;
  packed.root_ = table_->pack(value);
  packed.table_ = table_;
  return packed;
}

Packer::Counts Packer::counts() const { return table_->counts(); }

}  // namespace muster::json
