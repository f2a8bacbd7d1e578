#include "base/small_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace trigon {
namespace {

TEST(SmallFile, ReadsFilesAndRefusesWhatMayNeverEnd) {
  namespace fs = std::filesystem;
  fs::path dir = fs::path(testing::TempDir()) / "trigon_small_file";
  fs::remove_all(dir);
  fs::create_directories(dir);
  std::ofstream(dir / "text") << "abc";
  EXPECT_EQ(read_small_file(dir / "text").value(), "abc");
  EXPECT_EQ(read_small_file(dir / "text", 3).value(), "abc");
  EXPECT_FALSE(read_small_file(dir / "text", 2));
  fs::create_symlink(dir / "text", dir / "link");
  EXPECT_EQ(read_small_file(dir / "link").value(), "abc");
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink("circle", dir / "circle");
  for (const char* name : {"pipe", "circle", "missing", "."})
    EXPECT_FALSE(read_small_file(dir / name)) << name;
  fs::remove_all(dir);
}

}  // namespace
}  // namespace trigon
