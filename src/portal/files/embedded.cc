#include "portal/files/files.h"

// The build writes this list (cmake/portal_files.cmake): one MUSTER_PORTAL_FILE(number, path, file,
// hash) for each file of build/web, or nothing where there was no Node to make them.
#define MUSTER_BYTES(symbol, file)                                                                 \
  asm(".pushsection .rodata." #symbol                                                              \
      ",\"a\",@progbits\n"                                                                         \
      ".balign 16\n" #symbol ":\n.incbin \"" file "\"\n" #symbol "_end:\n.byte 0\n.popsection\n"); \
  extern "C" const char symbol[];                                                                  \
  extern "C" const char symbol##_end[];

#define MUSTER_PORTAL_FILE(number, path, file, hash)  \
  MUSTER_BYTES(muster_portal_##number, file)          \
  MUSTER_BYTES(muster_portal_gz_##number, file ".gz") \
  MUSTER_BYTES(muster_portal_br_##number, file ".br")
#include MUSTER_PORTAL_LIST
#undef MUSTER_PORTAL_FILE

namespace muster::portal {
namespace {

[[maybe_unused]] std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::vector<EmbeddedFile> make_list() {
  std::vector<EmbeddedFile> files;
#define MUSTER_PORTAL_FILE(number, path, file, hash)                                    \
  files.push_back({path,                                                                \
                   between(muster_portal_##number, muster_portal_##number##_end),       \
                   between(muster_portal_gz_##number, muster_portal_gz_##number##_end), \
                   between(muster_portal_br_##number, muster_portal_br_##number##_end), \
                   hash});
#include MUSTER_PORTAL_LIST
#undef MUSTER_PORTAL_FILE
  return files;
}

}  // namespace

const std::vector<EmbeddedFile>& embedded_files() {
  static const std::vector<EmbeddedFile> kFiles = make_list();
  return kFiles;
}

}  // namespace muster::portal
