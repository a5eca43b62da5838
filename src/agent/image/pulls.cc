#include "agent/image/pulls.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "agent/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent::image {
namespace {

using std::chrono::seconds;
constexpr Duration kBackOffFirst = seconds(10), kBackOffMax = seconds(300);
constexpr Duration kBackOffForgotten = seconds(600);
/// How long a failure is shown before the wait for the next try is.
constexpr Duration kFailureShown = seconds(2);
constexpr Duration kProgressEvery = seconds(30);

std::string joined(const std::vector<std::string>& errors) {
  if (errors.size() == 1) return errors.front();
  return fmt::format("[{}]", fmt::join(errors, ", "));
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

}  // namespace

/// One download that everybody waits for who wants the same with the same logins.
struct Pulls::Pull {
  std::string name;
  std::vector<Login> logins;  // of the pods
  bool done = false;
  std::string error;  // empty: it is there
  Duration took{};
  std::optional<StoredImage> image;
  std::vector<Signal*> waiting;
  std::vector<Tell*> tells;
};

std::string go_duration(Duration span) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  if (ms <= 0) return "0s";
  if (ms < 1000) return fmt::format("{}ms", ms);
  auto text = fmt::format("{}.{:03}", ms / 1000 % 60, ms % 1000);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  const auto minutes = ms / 60'000;
  if (minutes == 0) return text + "s";
  if (minutes < 60) return fmt::format("{}m{}s", minutes, text);
  return fmt::format("{}h{}m{}s", minutes / 60, minutes % 60, text);
}

std::pair<std::string, std::string> pull_failure(const std::string& image,
                                                 const std::string& error) {
  const auto at = error.find(" desc = ");
  const std::string_view said =
      std::string_view(error).substr(at == std::string::npos ? 0 : at + 8);
  if (said.starts_with("RegistryUnavailable"))
    return {"RegistryUnavailable",
            fmt::format(
                "image pull failed for {} because the registry is unavailable: {}", image, said)};
  if (said.starts_with("SignatureValidationFailed"))
    return {
        "SignatureValidationFailed",
        fmt::format(
            "image pull failed for {} because the signature validation failed: {}", image, said)};
  return {"ErrImagePull", error};
}

Pulls::Pulls(Env& loop, PulledImages& store, PullOptions options)
    : loop_(loop),
      store_(store),
      options_(std::move(options)),
      free_(std::max(1, options_.parallel_max)) {
  for (const auto& registry : options_.registries)
    of_machine_.add(registry.name, {registry.username, registry.password, ""});
  const auto saved = json::parse(read_file(options_.directory + "/pulled.json"));
  if (!saved || !saved->is_object()) return;
  for (const auto& [id, logins] : saved->get_object()) {
    for (const auto& login : json::as_array(logins))
      pulled_with_[std::string(id)].insert(json::text(login));
  }
}

Pulls::~Pulls() { *alive_ = false; }

Task<std::optional<Image>> Pulls::find(const ImageWish& wish) {
  const auto ref = parse_reference(wish.image);
  if (!ref || wish.policy == "Always") co_return std::nullopt;
  auto stored = co_await store_.find(ref->name());
  if (!stored || !*stored) co_return std::nullopt;
  if (!may_use((*stored)->id, wish.credentials.matching(*ref))) co_return std::nullopt;
  const auto loaded = co_await store_.load(std::move(**stored));
  if (!loaded) co_return std::nullopt;
  co_return make_image(*ref, *loaded);
}

Task<Fetched> Pulls::ensure(ImageWish wish, Tell tell) {
  Fetched out;
  const auto ref = parse_reference(wish.image);
  if (!ref) {
    out.reason = "InvalidImageName";
    out.message = fmt::format(
        "Failed to apply default image tag \"{}\": {}", wish.image, ref.error().message);
    out.retry = kBackOffMax;
    tell({true, "InspectFailed", out.message});
    co_return out;
  }
  auto present = co_await store_.find(ref->name());
  if (!present) {
    out.reason = "ImageInspectError";
    out.message =
        fmt::format("Failed to inspect image \"{}\": {}", wish.image, present.error().message);
    out.retry = seconds(2);
    tell({true, "InspectFailed", out.message});
    co_return out;
  }
  const bool usable = *present && may_use((*present)->id, wish.credentials.matching(*ref));
  if (wish.policy == "Never" && !usable) {
    out.reason = "ErrImageNeverPull";
    out.message =
        *present ? fmt::format(
                       "Container image \"{}\" was pulled with credentials that the pod "
                       "does not have, with pull policy of Never",
                       wish.image)
                 : fmt::format("Container image \"{}\" is not present with pull policy of Never",
                               wish.image);
    out.retry = kBackOffFirst;
    tell({true, "ErrImageNeverPull", out.message});
    co_return out;
  }
  if (usable && wish.policy != "Always") {
    out = co_await use(wish, *ref, std::move(**present));
    if (out.image)
      tell({false,
            "Pulled",
            fmt::format("Container image \"{}\" already present on machine and can be accessed by "
                        "the pod",
                        wish.image)});
    co_return out;
  }
  out = co_await fetch(wish, *ref, std::move(tell));
  co_return out;
}

/// An image that is there, made ready for a container.
Task<Fetched> Pulls::use(const ImageWish& wish, Reference ref, StoredImage stored) {
  Fetched out;
  const auto loaded = co_await store_.load(std::move(stored));
  if (loaded) {
    out.image = make_image(ref, *loaded);
    co_return out;
  }
  out.reason = "ImageInspectError";
  out.message =
      fmt::format("Failed to inspect image \"{}\": {}", wish.image, loaded.error().message);
  out.retry = seconds(2);
  co_return out;
}

Task<Fetched> Pulls::fetch(const ImageWish& wish, Reference ref, Tell tell) {
  const auto key = wish.pod_uid + "_" + wish.image;
  if (const auto known = back_offs_.find(key);
      known != back_offs_.end() && loop_.now() < known->second.until) {
    Fetched out;
    out.reason = "ImagePullBackOff";
    out.message = fmt::format("Back-off pulling image \"{}\": {}: {}",
                              wish.image,
                              known->second.reason,
                              known->second.message);
    out.retry = known->second.until - loop_.now();
    tell({false, "BackOff", fmt::format("Back-off pulling image \"{}\"", wish.image)});
    co_return out;
  }
  tell({false, "Pulling", fmt::format("Pulling image \"{}\"", wish.image)});
  const auto begun = loop_.monotonic();
  const auto pull = join(ref.name(), wish.credentials.matching(ref));
  const auto done = loop_.make_signal();
  pull->waiting.push_back(done.get());
  pull->tells.push_back(&tell);
  while (!pull->done) co_await done->wait(Duration::zero());
  if (!pull->error.empty()) co_return failed(wish, pull->error, tell);
  auto out = co_await use(wish, ref, *pull->image);
  if (!out.image) co_return out;
  back_offs_.erase(key);
  tell({false,
        "Pulled",
        fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} "
                    "bytes.",
                    wish.image,
                    go_duration(pull->took),
                    go_duration(loop_.monotonic() - begun),
                    pull->image->size_bytes)});
  co_return out;
}

Fetched Pulls::failed(const ImageWish& wish, const std::string& error, const Tell& tell) {
  const auto now = loop_.now();
  std::erase_if(back_offs_,
                [now](const auto& item) { return now - item.second.updated > kBackOffForgotten; });
  auto& back_off = back_offs_[wish.pod_uid + "_" + wish.image];
  back_off.span =
      back_off.span == Duration::zero() ? kBackOffFirst : std::min(back_off.span * 2, kBackOffMax);
  back_off.until = now + back_off.span;
  back_off.updated = now;
  std::tie(back_off.reason, back_off.message) = pull_failure(wish.image, error);
  Fetched out;
  out.reason = back_off.reason;
  out.message = back_off.message;
  out.retry = kFailureShown;
  tell({true, "Failed", fmt::format("Failed to pull image \"{}\": {}", wish.image, out.message)});
  return out;
}

// ------------------------------------------------------------------------------------------- pulls

std::shared_ptr<Pulls::Pull> Pulls::join(const std::string& name, std::vector<Login> logins) {
  auto key = name;
  for (const auto& login : logins) key += " " + fingerprint(login);
  auto& pull = under_way_[key];
  if (pull) return pull;
  pull = std::make_shared<Pull>();
  pull->name = name;
  pull->logins = std::move(logins);
  const auto began = pull;
  // Found again by its key until it is done; whoever comes later begins another.
  const auto run = [this, key, began, alive = alive_]() -> Task<void> {
    co_await work(began, alive);
    if (*alive) under_way_.erase(key);
    began->done = true;
    for (auto* signal : began->waiting) signal->notify();
  };
  // The lambda must live as long as its coroutine.
  loop_.spawn([](auto body) -> Task<void> { co_await body(); }(run));
  return began;
}

Task<void> Pulls::work(std::shared_ptr<Pull> pull, std::shared_ptr<bool> alive) {
  co_await take_turn();
  if (!*alive) co_return;
  const auto begun = loop_.monotonic();
  loop_.spawn(tell_progress(pull, alive));
  co_await try_logins(pull);
  if (!*alive) co_return;
  give_turn();
  pull->took = loop_.monotonic() - begun;
  if (!pull->error.empty()) co_return;
  auto found = co_await store_.find(pull->name);
  if (!found) pull->error = found.error().message;
  if (found && !*found)
    pull->error =
        fmt::format("the image \"{}\" was pulled, but containerd does not have it", pull->name);
  if (!pull->error.empty()) co_return;
  pull->image = std::move(**found);
  used_[pull->image->id] = loop_.now();  // or it might be collected before it is
  if (on_change) on_change();
}

/// One login after another: those of the pod, then the machine's, and without any if there is none.
Task<void> Pulls::try_logins(std::shared_ptr<Pull> pull) {
  std::vector<Login> logins = pull->logins;
  const auto own = logins.size();
  const auto ref = parse_reference(pull->name);
  if (ref) {
    for (auto& login : of_machine_.matching(*ref)) logins.push_back(std::move(login));
  }
  if (logins.empty()) logins.emplace_back();
  std::vector<std::string> errors;
  for (std::size_t i = 0; i < logins.size(); ++i) {
    const auto pulled = co_await store_.pull(pull->name, logins[i]);
    if (!pulled) {
      errors.push_back(pulled.error().message);
      continue;
    }
    auto found = co_await store_.find(pull->name);
    if (found && *found) remember((*found)->id, logins[i], i >= own);
    pull->error.clear();
    co_return;
  }
  pull->error = joined(errors);
}

/// CRI has no word for how far a pull is; containerd's store knows what is being written.
Task<void> Pulls::tell_progress(std::shared_ptr<Pull> pull, std::shared_ptr<bool> alive) {
  while (true) {
    co_await loop_.sleep(kProgressEvery);
    if (!*alive || pull->done) co_return;
    const auto downloads = co_await store_.downloads();
    if (!*alive || pull->done) co_return;
    if (!downloads || downloads->empty()) continue;
    std::uint64_t done = 0, total = 0;
    for (const auto& one : *downloads) {
      done += one.done_bytes;
      total += std::max(one.total_bytes, one.done_bytes);
    }
    for (auto* tell : pull->tells)
      (*tell)({false,
               "Pulling",
               fmt::format("Still pulling image \"{}\": {} of {} of the layers now being fetched",
                           pull->name,
                           mebibytes(done),
                           mebibytes(total))});
  }
}

Task<void> Pulls::take_turn() {
  if (free_ > 0) {
    --free_;
    co_return;
  }
  const auto turn = loop_.make_signal();
  queue_.push_back(turn.get());
  co_await turn->wait(Duration::zero());
}

/// The turn passes to the first who waits.
void Pulls::give_turn() {
  if (queue_.empty()) {
    ++free_;
    return;
  }
  auto* const next = queue_.front();
  queue_.pop_front();
  next->notify();
}

// --------------------------------------------------------------------------------- who may use what

bool Pulls::may_use(const std::string& id, const std::vector<Login>& logins) const {
  const auto known = pulled_with_.find(id);
  if (known == pulled_with_.end() || known->second.contains("")) return true;
  return std::any_of(logins.begin(), logins.end(), [&known](const Login& login) {
    return known->second.contains(fingerprint(login));
  });
}

void Pulls::remember(const std::string& id, const Login& login, bool of_machine) {
  auto& logins = pulled_with_[id];
  if (logins.insert(of_machine ? "" : fingerprint(login)).second) save();
}

void Pulls::forget(const std::string& id) {
  used_.erase(id);
  if (pulled_with_.erase(id) > 0) save();
}

void Pulls::save() const {
  json::Object out;
  for (const auto& [id, logins] : pulled_with_) {
    json::Array list;
    for (const auto& login : logins) list.emplace_back(login);
    out[id] = std::move(list);
  }
  const auto path = options_.directory + "/pulled.json";
  const auto written = write_file(path + ".new", json::dump(out), 0600);
  if (!written || rename((path + ".new").c_str(), path.c_str()) != 0)
    log::warn(
        "agent", "\"{}\" cannot be written: records of who pulled which image are lost", path);
}

Image Pulls::make_image(const Reference& ref, const LoadedImage& loaded) {
  used_[loaded.stored.id] = loop_.now();
  Image out;
  out.layers = loaded.layers;
  out.entrypoint = loaded.config.entrypoint;
  out.command = loaded.config.command;
  out.env = loaded.config.env;
  out.working_dir = loaded.config.working_dir;
  out.user = loaded.config.user;
  out.pulled = true;
  out.name = ref.name();
  out.id = loaded.stored.id;
  for (const auto& digest : loaded.stored.repo_digests) {
    if (digest.starts_with(ref.repository() + "@")) out.id = digest;
  }
  return out;
}

Time Pulls::last_used(const std::string& id) {
  return used_.try_emplace(id, loop_.now()).first->second;
}

}  // namespace muster::agent::image
