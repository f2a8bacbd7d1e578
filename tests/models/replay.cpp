// Runs a fuzz target over kept inputs without libFuzzer: each must end without a crash.
//
// usage: NAME_replay DIRECTORY...

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(argv[i], none)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    const std::string bytes = text.str();
    // Every prefix of small inputs as well: cut files are the most common damage.
    const std::size_t first = bytes.size() <= 4096 ? 0 : bytes.size();
    for (std::size_t n = first; n <= bytes.size(); ++n)
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), n);
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
