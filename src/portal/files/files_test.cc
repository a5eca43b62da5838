#include "portal/files/files.h"

#include <gtest/gtest.h>

namespace muster::portal {
namespace {

net::Response asked(const Files& files, const std::string& path) {
  net::Request request;
  request.method = "GET";
  request.target = path;
  return files.answer(request, *net::parse_target(path));
}

/// Check 60: such a program has a page all the same.
TEST(Files, AProgramBuiltWithoutNodeSaysHowToGetThePortal) {
  const std::vector<EmbeddedFile> nothing;
  const Files files("", nothing);
  EXPECT_FALSE(files.present());
  for (const char* path : {"/", "/jobs", "/terminal"}) {
    const net::Response response = asked(files, path);
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_NE(response.body.find("built without its portal"), std::string::npos) << path;
    EXPECT_NE(response.body.find("apt-get install nodejs npm"), std::string::npos) << path;
    EXPECT_EQ(response.body.find("<script"), std::string::npos) << path;
    EXPECT_NE(response.headers.get("Content-Security-Policy").find("default-src 'none'"),
              std::string_view::npos);
  }
}

TEST(Files, AnyPageIsTheOneDocumentAndAnUnknownAssetIsNot) {
  const std::vector<EmbeddedFile> one = {
      {.path = "index.html", .identity = "<p>page</p>", .gzip = {}, .brotli = {}, .hash = "h"}};
  const Files files("", one);
  EXPECT_EQ(asked(files, "/jobs/a~b").body, "<p>page</p>");
  EXPECT_EQ(asked(files, "/assets/none.js").status, 404);
}

}  // namespace
}  // namespace muster::portal
