// Products of matrices: MatMul, Gemm, Einsum.

#include <algorithm>
#include <map>

#include "onnx/product.hpp"

namespace trigon::onnx {
namespace {

void matmul(Op& op) { multiply(op, {}, op.in(0).type); }

void gemm(Op& op) {
  op.need_rank(0, 2, 2);
  op.need_rank(1, 2, 2);
  Product p;
  p.transpose_a = op.integer("transA", 0) != 0;
  p.transpose_b = op.integer("transB", 0) != 0;
  p.beside = {2};
  multiply(op, p, op.in(0).type);
}

void fused_matmul(Op& op) {
  Product p;
  p.transpose_a = op.integer("transA", 0) != 0;
  p.transpose_b = op.integer("transB", 0) != 0;
  multiply(op, p, op.in(0).type);
}

// "ij,jk->ik" for any number of operands: letters that no output has are summed.
void einsum(Op& op) {
  std::string equation;
  for (char c : op.text("equation"))
    if (c != ' ') equation += c;
  const auto arrow = equation.find("->");
  std::vector<std::string> terms{""};
  for (char c : equation.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  auto bad = [&] { op.fail(OnnxMessage::bad_attribute, "equation", equation.substr(0, 200)); };
  if (terms.size() != op.inputs()) return bad();
  std::map<char, std::int64_t> sizes;
  TensorShape ellipsis;
  std::map<char, int> uses;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const TensorShape s = op.shape(i);
    if (!op.ok()) return;
    const auto dots = terms[i].find("...");
    const std::string letters =
        dots == std::string::npos ? terms[i] : terms[i].substr(0, dots) + terms[i].substr(dots + 3);
    if (letters.size() > s.size() || (dots == std::string::npos && letters.size() != s.size()))
      return bad();
    const std::size_t open = s.size() - letters.size();
    if (dots != std::string::npos) {
      auto all =
          broadcast(ellipsis, TensorShape(s.begin() + static_cast<std::ptrdiff_t>(dots),
                                          s.begin() + static_cast<std::ptrdiff_t>(dots + open)));
      if (!all) return bad();
      ellipsis = *all;
    }
    for (std::size_t j = 0; j < letters.size(); ++j) {
      const std::int64_t d = s[j < dots ? j : j + open];
      auto [it, fresh] = sizes.emplace(letters[j], d);
      if (!fresh && it->second != d && it->second != 1 && d != 1) return bad();
      it->second = std::max(it->second, d);
      ++uses[letters[j]];
    }
  }
  std::string result;
  if (arrow != std::string::npos) {
    result = equation.substr(arrow + 2);
  } else {
    if (equation.find("...") != std::string::npos) result = "...";
    for (const auto& [letter, n] : uses)
      if (n == 1) result += letter;
  }
  TensorShape y;
  std::string kept;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result.compare(i, 3, "...") == 0) {
      y.insert(y.end(), ellipsis.begin(), ellipsis.end());
      i += 2;
      continue;
    }
    auto it = sizes.find(result[i]);
    if (it == sizes.end()) return bad();
    y.push_back(it->second);
    kept += result[i];
  }
  op.set(0, op.in(0).type, y);
  if (!op.ok()) return;
  TensorShape summed;
  for (const auto& [letter, n] : sizes)
    if (kept.find(letter) == std::string::npos) summed.push_back(n);
  const auto k = checked_elements(summed);
  if (!k) return op.fail(OnnxMessage::value_too_large);
  if (terms.size() == 1) {
    if (summed.empty()) return op.emit(Move{}, {0});
    return op.emit(Reduction{}, {0});
  }
  if (summed.empty())
    return op.emit(Elementwise{"multiply", 1, Keeps::inputs}, op.range_of_inputs());
  // With a stored second operand whose every letter is either summed or new, it is a projection.
  if (terms.size() == 2 && op.in(1).constant && !op.in(0).constant) {
    bool plain = terms[1].find("...") == std::string::npos;
    TensorShape inner;
    for (char c : terms[1]) {
      const bool is_summed = kept.find(c) == std::string::npos;
      plain = plain && is_summed == (terms[0].find(c) != std::string::npos);
      if (is_summed) inner.push_back(sizes[c]);
    }
    const auto in = checked_elements(inner);
    if (plain && in && *in > 0 && *in == *k) {
      const std::size_t x = op.seen_as(0, {op.in(0).count() / *in, *in});
      return op.emit(Projection{}, {x}, {1});
    }
  }
  // y elements times summed elements, whatever the letters' roles; more operands are taken in turn.
  MatrixProduct m;
  m.m = op.out(0).count();
  m.k = *k;
  for (std::size_t i = 0; i + 2 < terms.size(); ++i) m.batch += 1;
  op.emit(m, op.range_of_inputs());
}

void determinant(Op& op) {
  op.need_rank(0, 2);
  TensorShape s = op.shape(0);
  if (!op.ok()) return;
  const std::int64_t n = s.back();
  s.resize(s.size() - 2);
  op.set(0, op.in(0).type, s);
  // LU decomposition: n^3 / 3 multiply-accumulates.
  op.emit(MatrixProduct{checked_elements(s).value_or(1), n, n, std::max<std::int64_t>(1, n / 3)},
          {0});
}

}  // namespace

const OperatorTable& product_operators() {
  static const OperatorTable table = {{"MatMul", matmul},
                                      {"Gemm", gemm},
                                      {"FusedGemm", gemm},
                                      {"FusedMatMul", fused_matmul},
                                      {"TransposeMatMul", fused_matmul},
                                      {"Einsum", einsum},
                                      {"Det", determinant}};
  return table;
}

}  // namespace trigon::onnx
