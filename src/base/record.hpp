#pragma once
// How a number came about. The evaluators are function templates over a recorder: NoRecord costs
// nothing, Record keeps each formula with its substituted numbers. Both run the same arithmetic,
// and a test holds the results bitwise equal.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace trigon {

// A formula is named `page.formula`: docs/PAGE.md has a section of that name with its source.
struct Formula {
  const char* name;        // "memory.kv_cache"
  const char* expression;  // "2 * layers * kv_heads * head_dim * bytes * tokens"
};

struct Symbol {
  const char* name;  // "kv_heads", as in the expression
  double value;      // in base units
  const char* unit;  // "B", "s", "FLOP", "B/s", "" ...
  std::string
      fact{};  // fact or coefficient id when it is one: "gpu/h100-sxm-80gb#memory_bandwidth"
};

struct DerivationStep {
  const Formula* formula = nullptr;
  double value = 0;
  const char* unit = "";
  std::string subject;  // what it is about: an operator, a component, a rank
  std::vector<Symbol> symbols;
};

struct Derivation {
  std::vector<DerivationStep> steps;
};

struct NoRecord {
  static constexpr bool on = false;
  template <class F>
  void step(F&&) {}
};

// The callable makes the DerivationStep, so that nothing is built when nobody listens.
struct Record {
  static constexpr bool on = true;
  Derivation derivation;
  template <class F>
  void step(F&& make) {
    derivation.steps.push_back(make());
  }
};

}  // namespace trigon
