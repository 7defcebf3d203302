// The key of a product in a tuning table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"

namespace concord::opencl {
namespace {

std::string_view alignment(std::initializer_list<std::int64_t> strides) { return in_fours(strides) ? "" : " odd"; }

std::string_view sharing(const Gemm& gemm, std::int64_t stride) {
  return gemm.batch > 1 && stride == 0 ? " shared" : "";
}

std::string left_key(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  if (a.is_channels_last) return "channels last";
  if (a.is_patch) return fmt::format("patch{}", sharing(gemm, a.batch));
  const std::int64_t walked = a.k == 1 ? a.row : a.k;
  return fmt::format("{}{}{}{}", a.k == 1 ? "k" : "m", a.block != 0 ? fmt::format(" by {}", a.block) : "",
                     alignment({walked, a.batch, a.block, a.outer}), sharing(gemm, a.batch));
}

std::string right_key(const Gemm& gemm) {
  const GemmRight& b = gemm.b;
  const std::string_view along = b.along_k ? "k" : "n";
  if (b.is_patch) {
    return fmt::format("{} patch{}{}", along, b.is_channels_last ? " channels last" : "", sharing(gemm, b.batch));
  }
  return fmt::format("{}{}{}{}", along, b.block != 0 ? fmt::format(" by {}", b.block) : "",
                     alignment({b.along_k ? b.n : b.k, b.batch, b.block}), sharing(gemm, b.batch));
}

std::string part_key(const PatchPart& part) {
  return fmt::format("{}/{}/{}+{}", part.block, part.page, part.line, fmt::join(part.move, ","));
}

std::string patch_key(const Patch& patch) {
  return fmt::format("; image {} k {} n {} from {} step {}{}", fmt::join(patch.size, "x"), part_key(patch.k),
                     part_key(patch.n), fmt::join(patch.shift, ","), fmt::join(patch.step, ","),
                     patch.inside ? " inside" : "");
}

std::string result_key(const GemmResult& c) {
  if (c.is_channels_last) return fmt::format("channels last{}", c.is_stepped() ? " stepped" : "");
  if (c.is_stepped()) return fmt::format("by {} stepped {}", c.block, fmt::join(c.step, ","));
  return fmt::format("{}{}", c.block != 0 ? fmt::format("by {}", c.block) : "rows",
                     alignment({c.row, c.batch, c.block, c.outer}));
}

std::string epilogue_key(const EpilogueText& epilogue) {
  if (epilogue.text.empty()) return "";
  return fmt::format("; epilogue of {}", epilogue.operands());
}

}  // namespace

std::string tuning_key(const Gemm& gemm) {
  return fmt::format("{}x{}x{} x{} {}; a {}; b {}{}; c {}{}{}{}", gemm.m, gemm.n, gemm.k, gemm.batch,
                     name_of(gemm.precision), left_key(gemm), right_key(gemm),
                     gemm.a.is_patch || gemm.b.is_patch ? patch_key(gemm.patch) : "", result_key(gemm.c),
                     epilogue_key(gemm.epilogue), gemm.before.empty() ? "" : "; operand first",
                     gemm.partial ? "; parts" : "");
}

}  // namespace concord::opencl
