#include "model/gguf.hpp"

namespace trigon {
namespace {

// Numbers of ggml.h in llama.cpp, and above 96 of ik_llama.cpp (whose row-interleaved twins add
// 200 and have the size of the plain type). 4, 5, 31-33, 36-38 were withdrawn.
constexpr GgmlType kTypes[] = {
    {0, "f32", Format::f32},
    {1, "f16", Format::f16},
    {2, "q4_0", Format::q4_0},
    {3, "q4_1", Format::q4_1},
    {4, "q4_2", Format::unknown},
    {5, "q4_3", Format::unknown},
    {6, "q5_0", Format::q5_0},
    {7, "q5_1", Format::q5_1},
    {8, "q8_0", Format::q8_0},
    {9, "q8_1", Format::q8_1},
    {10, "q2_k", Format::q2_k},
    {11, "q3_k", Format::q3_k},
    {12, "q4_k", Format::q4_k},
    {13, "q5_k", Format::q5_k},
    {14, "q6_k", Format::q6_k},
    {15, "q8_k", Format::q8_k},
    {16, "iq2_xxs", Format::iq2_xxs},
    {17, "iq2_xs", Format::iq2_xs},
    {18, "iq3_xxs", Format::iq3_xxs},
    {19, "iq1_s", Format::iq1_s},
    {20, "iq4_nl", Format::iq4_nl},
    {21, "iq3_s", Format::iq3_s},
    {22, "iq2_s", Format::iq2_s},
    {23, "iq4_xs", Format::iq4_xs},
    {24, "i8", Format::i8},
    {25, "i16", Format::i16},
    {26, "i32", Format::i32},
    {27, "i64", Format::i64},
    {28, "f64", Format::f64},
    {29, "iq1_m", Format::iq1_m},
    {30, "bf16", Format::bf16},
    {31, "q4_0_4_4", Format::q4_0},
    {32, "q4_0_4_8", Format::q4_0},
    {33, "q4_0_8_8", Format::q4_0},
    {34, "tq1_0", Format::tq1_0},
    {35, "tq2_0", Format::tq2_0},
    {36, "iq4_nl_4_4", Format::iq4_nl},
    {37, "iq4_nl_4_8", Format::iq4_nl},
    {38, "iq4_nl_8_8", Format::iq4_nl},
    {39, "mxfp4", Format::mxfp4},
    {133, "q6_0", Format::q6_0},
    {134, "iq1_bn", Format::iq1_bn},
    {135, "iq2_bn", Format::iq2_bn},
    {137, "iq2_k", Format::iq2_k},
    {138, "iq3_k", Format::iq3_k},
    {139, "iq4_k", Format::iq4_k},
    {140, "iq5_k", Format::iq5_k},
    {141, "iq6_k", Format::iq6_k},
    {144, "iq4_ks", Format::iq4_ks},
    {145, "iq2_ks", Format::iq2_ks},
    {146, "iq4_kss", Format::iq4_kss},
    {152, "iq5_ks", Format::iq5_ks},
    {153, "iq2_kt", Format::iq2_kt},
    {154, "iq3_kt", Format::iq3_kt},
    {155, "iq4_kt", Format::iq4_kt},
    {156, "iq3_ks", Format::iq3_ks},
    {157, "iq2_kl", Format::iq2_kl},
    {158, "iq1_kt", Format::iq1_kt},
    {202, "q4_0_r8", Format::q4_0},
    {206, "q5_0_r4", Format::q5_0},
    {208, "q8_0_r8", Format::q8_0},
    {210, "q2_k_r4", Format::q2_k},
    {211, "q3_k_r4", Format::q3_k},
    {212, "q4_k_r4", Format::q4_k},
    {213, "q5_k_r4", Format::q5_k},
    {214, "q6_k_r4", Format::q6_k},
    {216, "iq2_xxs_r4", Format::iq2_xxs},
    {217, "iq2_xs_r4", Format::iq2_xs},
    {218, "iq3_xxs_r4", Format::iq3_xxs},
    {219, "iq1_s_r4", Format::unknown},
    {220, "iq4_nl_r4", Format::iq4_nl},
    {221, "iq3_s_r4", Format::iq3_s},
    {222, "iq2_s_r4", Format::iq2_s},
    {223, "iq4_xs_r8", Format::iq4_xs},
    {229, "iq1_m_r4", Format::unknown},
    {230, "bf16_r16", Format::bf16},
    {233, "q6_0_r4", Format::q6_0},
    {335, "iq2_bn_r4", Format::iq2_bn},
    {337, "iq2_k_r4", Format::iq2_k},
    {338, "iq3_k_r4", Format::iq3_k},
    {339, "iq4_k_r4", Format::iq4_k},
    {340, "iq5_k_r4", Format::iq5_k},
    {344, "iq4_ks_r4", Format::iq4_ks},
    {352, "iq5_ks_r4", Format::iq5_ks},
};

}  // namespace

const GgmlType* ggml_type(std::uint32_t number) {
  for (const GgmlType& t : kTypes)
    if (t.number == number) return &t;
  return nullptr;
}

std::string SplitName::of(std::int64_t which) const {
  auto five = [](std::int64_t v) {
    std::string s = std::to_string(v);
    return std::string(s.size() < 5 ? 5 - s.size() : 0, '0') + s;
  };
  return stem + "-" + five(which) + "-of-" + five(parts) + ".gguf";
}

std::optional<SplitName> split_name(std::string_view name) {
  constexpr std::string_view kEnd = ".gguf";
  // "-00002-of-00005" has 15 characters.
  if (name.size() < 15 + kEnd.size() || name.substr(name.size() - kEnd.size()) != kEnd)
    return std::nullopt;
  name.remove_suffix(kEnd.size());
  std::string_view tail = name.substr(name.size() - 15);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  SplitName s;
  for (char c : tail.substr(1, 5)) {
    if (c < '0' || c > '9') return std::nullopt;
    s.part = s.part * 10 + (c - '0');
  }
  for (char c : tail.substr(10, 5)) {
    if (c < '0' || c > '9') return std::nullopt;
    s.parts = s.parts * 10 + (c - '0');
  }
  if (s.part < 1 || s.part > s.parts) return std::nullopt;
  s.stem = name.substr(0, name.size() - 15);
  return s;
}

}  // namespace trigon
