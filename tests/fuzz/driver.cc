/// Runs a fuzz target without libFuzzer: every seed file, then mutations of them from a fixed
/// random source until the time is up. The mutation count differs with the machine's speed, their
/// order does not: a failure prints its number and leaves the input in crash-<number>. An input
/// that takes too long is a failure too: anyone who may send it could block the program.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
/// A sanitizer ends the program without a signal; there is one only in builds with it.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr std::size_t kInputBytesMax = 4096;
/// Of processor time, for one input. Sanitizers take ten times as long.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::int64_t kInputMsMax = 1000;
#else
constexpr std::int64_t kInputMsMax = 20;
#endif
std::string current;       // what the target is working on, for the handler
std::uint64_t number = 0;  // how many came before it

void save_input() {
  const std::string name = "crash-" + std::to_string(number);
  std::ofstream(name, std::ios::binary)
      .write(current.data(), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr,
               "input %llu failed; it is in %s\n",
               static_cast<unsigned long long>(number),
               name.c_str());
}

void on_signal(int) {
  save_input();
  std::_Exit(1);
}

std::vector<std::string> read_seeds(const std::string& folder) {
  std::vector<std::string> seeds;
  std::error_code failure;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    seeds.push_back(text.str());
  }
  if (seeds.empty()) seeds.emplace_back();
  return seeds;
}

/// One of: flip, insert, erase, copy a piece, splice with another seed, put in a telling byte.
void mutate(std::string& input, const std::vector<std::string>& seeds, muster::Random& random) {
  static constexpr std::string_view kTelling("\0\xff\x7f{}[]\",:.$~/\\%=!()&-+eE09", 26);
  const std::size_t place = random.below(input.size() + 1);
  switch (random.below(6)) {
    case 0:
      if (!input.empty())
        input[place % input.size()] = static_cast<char>(input[place % input.size()] ^
                                                        static_cast<char>(1U << random.below(8)));
      break;
    case 1:
      input.insert(place, 1, static_cast<char>(random.below(256)));
      break;
    case 2:
      input.erase(place, 1 + random.below(8));
      break;
    case 3: {
      const std::string piece = input.substr(random.below(input.size() + 1), 1 + random.below(32));
      input.insert(place, piece);
      break;
    }
    case 4: {
      const std::string& other = seeds[random.below(seeds.size())];
      input = input.substr(0, place) + other.substr(random.below(other.size() + 1));
      break;
    }
    default:
      input.insert(place, 1, kTelling[random.below(kTelling.size())]);
      break;
  }
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
}

std::int64_t processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// What the present input costs.
std::int64_t once_ms() {
  const std::int64_t begun = processor_ms();
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  return processor_ms() - begun;
}

void run(std::string input) {
  current = std::move(input);
  ++number;
  std::int64_t took = once_ms();
  // The first one pays for tables that are made once, and a busy machine makes any take longer: the
  // best of several is what it costs.
  for (int again = 0; again < 5 && took > kInputMsMax; ++again) took = std::min(took, once_ms());
  if (took <= kInputMsMax) return;
  std::fprintf(stderr,
               "input %llu took %lld ms, wanted at most %lld\n",
               static_cast<unsigned long long>(number),
               static_cast<long long>(took),
               static_cast<long long>(kInputMsMax));
  save_input();
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::chrono::seconds length{1};
  std::vector<std::string> seeds;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--seconds" && i + 1 < argc) {
      length = std::chrono::seconds(std::atoi(argv[++i]));
    } else if (std::filesystem::is_directory(argv[i])) {
      for (std::string& seed : read_seeds(argv[i])) seeds.push_back(std::move(seed));
    } else if (std::filesystem::is_regular_file(argv[i])) {  // one input, to look at a failure
      std::ifstream in(argv[i], std::ios::binary);
      std::stringstream text;
      text << in.rdbuf();
      run(text.str());
      return 0;
    }
  }
  if (seeds.empty()) seeds.emplace_back();
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);
  for (const std::string& seed : seeds) run(seed);
  muster::Random random(1);
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    std::string input = seeds[random.below(seeds.size())];
    for (std::uint64_t times = 1 + random.below(4); times > 0; --times)
      mutate(input, seeds, random);
    run(std::move(input));
  }
  fmt::print("{} inputs, {} seeds\n", number, seeds.size());
  return 0;
}
