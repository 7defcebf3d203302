// The weights that dropout in attention keeps (cl_kernels/shared/attention_dropout.h): their rate, that neighbours in
// every direction, steps and seeds have nothing to do with each other, and equal masks on every device.
#include <shared/attention_dropout.h>

#include <cmath>

#include "concord/ops/attention.hpp"
#include "concord/ops/random.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr std::uint32_t kHeads = 8, kQueries = 200, kKeys = 300, kPurpose = 11;
constexpr std::uint32_t kWeights = kHeads * kQueries * kKeys;

/// Of (kHeads, kQueries, kKeys), which weights are kept.
std::vector<bool> mask_of(std::uint64_t seed, std::uint32_t step, std::uint32_t keep) {
  const attention_dropout dropout =
      dropout_of(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), step, kPurpose, keep);
  std::vector<bool> mask;
  for (std::uint32_t i = 0; i < kWeights; ++i) {
    mask.push_back(keeps_weight(dropout, i / kKeys / kQueries, i / kKeys % kQueries, i % kKeys, kQueries));
  }
  return mask;
}

/// By how many standard deviations the count of `both` among `pairs` pairs of independent weights differs from its
/// expectation.
double deviations(std::int64_t both, std::int64_t pairs, double rate) {
  const double expected = rate * static_cast<double>(pairs);
  return std::abs(static_cast<double>(both) - expected) / std::sqrt(expected * (1 - rate));
}

/// The same of the pairs of dropped weights whose places differ by `apart` and lie within runs of `run` places.
double of_neighbours(const std::vector<bool>& mask, std::size_t apart, std::size_t run, double dropped) {
  std::int64_t both = 0, pairs = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (i % run + apart >= run) continue;
    ++pairs;
    both += !mask[i] && !mask[i + apart];
  }
  return deviations(both, pairs, dropped * dropped);
}

double of_two(const std::vector<bool>& a, const std::vector<bool>& b, double dropped) {
  std::int64_t both = 0;
  for (std::size_t i = 0; i < a.size(); ++i) both += !a[i] && !b[i];
  return deviations(both, static_cast<std::int64_t>(a.size()), dropped * dropped);
}

}  // namespace

TEST_CASE("dropout in attention keeps a weight with its probability, independently of the others", "[ops][attention]") {
  for (const std::uint32_t keep : {58982U, 32768U, 13107U}) {
    INFO("keeps " << keep << " of 65536");
    const double dropped = 1 - keep / 65536.0;
    const std::vector<bool> mask = mask_of(7, 0, keep);
    CHECK(deviations(std::ranges::count(mask, false), kWeights, dropped) < 4);
    // Words and halves of a block, blocks of a square, squares.
    for (const std::size_t keys : {1, 2, 7, 8, 9, 16, 32}) {
      INFO(keys << " keys apart");
      CHECK(of_neighbours(mask, keys, kKeys, dropped) < 4);
    }
    for (const std::size_t rows : {1, 7, 8, 16}) {
      INFO(rows << " queries apart");
      CHECK(of_neighbours(mask, rows * kKeys, std::size_t{kQueries} * kKeys, dropped) < 4);
    }
    CHECK(of_neighbours(mask, std::size_t{8} * kKeys + 8, std::size_t{kQueries} * kKeys, dropped) < 4);
    CHECK(of_neighbours(mask, std::size_t{kQueries} * kKeys, kWeights, dropped) < 4);  // of two heads
    CHECK(of_two(mask, mask_of(7, 1, keep), dropped) < 4);
    CHECK(of_two(mask, mask_of(8, 0, keep), dropped) < 4);
    CHECK(of_two(mask, mask_of(7 | std::uint64_t{1} << 32, 0, keep), dropped) < 4);
  }
}

TEST_CASE("dropout in attention draws every weight of a square from bits of its own", "[ops][attention]") {
  // A weight that is kept at `keep` is kept at every larger one: the place where it changes is its 16 bits.
  const auto bits_of = [](std::uint32_t t, std::uint32_t s) {
    std::uint32_t low = 0, high = 65535;  // the bits are in [low, high]
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      const bool is_below = keeps_weight(dropout_of(7, 0, 0, kPurpose, middle + 1), 0, t, s, 16);
      (is_below ? high : low) = is_below ? middle : middle + 1;
    }
    return low;
  };
  std::vector<std::uint32_t> drawn, expected;
  const attention_dropout dropout = dropout_of(7, 0, 0, kPurpose, 1);
  for (std::uint32_t i = 0; i < 256; ++i) drawn.push_back(bits_of(i / 16, i % 16));
  for (std::uint32_t block = 0; block < DRAWN_BLOCKS; ++block) {
    for (const std::uint32_t word : drawn_block(dropout, 0, block).word) {
      expected.insert(expected.end(), {word & 0xffffU, word >> 16U});
    }
  }
  std::ranges::sort(drawn);
  std::ranges::sort(expected);
  CHECK(std::ranges::equal(drawn, expected));
}

TEST_CASE("dropout in attention rounds its probability to 1/65536 and keeps the expectation", "[ops][attention]") {
  const auto form = [](float dropout) { return ops::AttentionForm{.dropout = dropout}; };
  CHECK(form(0.1F).keep() == 58982);
  CHECK(form(0.5F).keep() == 32768);
  CHECK(form(0.5F).kept() == 2);
  CHECK(form(1e-9F).keep() == 65535);  // a probability between 0 and 1 stays there
  CHECK(form(0.9999999F).keep() == 1);
  CHECK(form(1).keep() == 0);
  CHECK(form(1).kept() == 0);
  for (const float dropout : {1e-9F, 0.001F, 0.1F, 0.3F, 0.77F, 0.9999999F}) {
    const ops::AttentionForm one = form(dropout);
    CHECK(static_cast<double>(one.kept()) * one.keep() / 65536 == Approx(1).epsilon(1e-7));
  }
}

TEST_CASE("every device draws the mask of dropout in attention with the same bits", "[ops][attention][random]") {
  const ops::AttentionForm form{.dropout = 0.35F};
  const attention_dropout dropout = dropout_of(7, 0, 0, kPurpose, form.keep());  // the seed is 7
  constexpr std::uint32_t kSome = 3, kRows = 21, kColumns = 37;
  const Build build = [&](const std::vector<Value>& x) {
    Graph& graph = x[0].graph();
    return std::vector{
        graph.add(std::make_shared<ops::Random>(ops::Distribution::attention, Shape{1, kSome, kRows, kColumns},
                                                static_cast<float>(form.keep()), form.kept(), kPurpose),
                  {graph.random_state()})};
  };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const Array mask = to_array(run(device, {{Array({1})}}, build)[0]);
    int wrong = 0;
    for (std::uint32_t i = 0; i < mask.values.size(); ++i) {
      const bool is_kept = keeps_weight(dropout, i / kColumns / kRows, i / kColumns % kRows, i % kColumns, kRows);
      wrong += mask.values[i] != (is_kept ? static_cast<double>(form.kept()) : 0);
    }
    CHECK(wrong == 0);
    CHECK(mask.values.size() == std::size_t{kSome} * kRows * kColumns);
  }
}

}  // namespace concord::test
