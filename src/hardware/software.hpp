#pragma once
// What runs on what: statements of documentation and source code about software on hardware
// (data/software/). A statement not found is `unknown`, never `no`.

#include "hardware/accelerator.hpp"

namespace trigon {

enum class Support : std::uint8_t { no, partial, yes, unknown };
std::string_view name_of(Support s);

struct SupportAnswer {
  Support support = Support::unknown;
  std::string_view feature, detail, version, source;
  std::string_view hardware;  // as the source names it
};

class SupportTable {
 public:
  // The store must outlive the table.
  static Result<SupportTable> from(const FactStore& store);

  // Whether `software` ("vllm", "tensorrt-llm", "flashattention", ...) has `feature` ("awq",
  // "fp8_w8a8", "gguf", ...) on this accelerator. A "no" about "any" feature answers for
  // all features of its version. Of several statements the last one counts, so newer versions
  // override older ones.
  SupportAnswer supports(const Accelerator& a, std::string_view software,
                         std::string_view feature) const;
  // Everything said about this software on this accelerator, in the order of the sheet.
  std::vector<SupportAnswer> statements(const Accelerator& a, std::string_view software) const;
  std::vector<std::string_view> software() const;  // ids, sorted

 private:
  struct Statement {
    SupportAnswer answer;
    const FactGroup* selectors = nullptr;
  };
  struct Software {
    std::string_view id;
    std::vector<Statement> statements;
  };
  const Software* find(std::string_view id) const;
  std::vector<Software> all_;
};

}  // namespace trigon
