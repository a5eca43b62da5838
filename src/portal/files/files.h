/// The portal's own files, as the build put them into the program, or from a folder (development).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http/http.h"

namespace muster::portal {

/// One file inside the program: the bytes as they are, and packed where that pays.
struct EmbeddedFile {
  std::string_view path;  // "index.html", "assets/x.js"
  std::string_view identity, gzip, brotli;
  std::string_view hash;  // of the bytes as they are
};
/// Empty when the program was built without Node.
const std::vector<EmbeddedFile>& embedded_files();

class Files {
 public:
  /// `folder` empty: what is in the program.
  explicit Files(std::string folder, const std::vector<EmbeddedFile>& inside = embedded_files());
  /// The answer for a path that no API has: a file, or the page for everything else. Policy and
  /// caching are part of it.
  [[nodiscard]] net::Response answer(const net::Request& request, const net::Target& target) const;
  /// What a browser that finds another one should load anew for.
  [[nodiscard]] const std::string& build() const { return build_; }
  [[nodiscard]] bool present() const;

 private:
  [[nodiscard]] const EmbeddedFile* find(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;

  std::string folder_;
  std::map<std::string_view, const EmbeddedFile*> by_path_;
  std::string build_;
};

/// Where OpenPAI's page of this name is here; absent: no page of OpenPAI's.
std::optional<std::string> openpai_page(const net::Target& target);
/// "text/css; charset=utf-8" of a name.
std::string_view type_of(std::string_view path);
/// Which of br, gzip and identity an Accept-Encoding prefers of those there are.
enum class Encoding : std::uint8_t { kIdentity, kGzip, kBrotli };
Encoding choose_encoding(std::string_view accept, bool gzip, bool brotli);

}  // namespace muster::portal
