// Philox: the published known answers, the host's view of the stream, unbiased bounded numbers.
#include "concord/core/philox.hpp"

#include <shared/attention_dropout.h>

#include <algorithm>
#include <array>

#include "concord_test.hpp"

using namespace concord;

TEST_CASE("philox gives the known answers of Random123", "[core]") {
  using Block = std::array<std::uint32_t, 4>;
  // counter words 0 and 1 are the index, 2 the purpose, 3 the step; the key is the seed
  CHECK(Philox(0, 0, 0).block(0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox(~0ull, ~0u, ~0u).block(~0ull) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox(0x299f31d0a4093822ull, 0x13198a2e, 0x03707344).block(0x85a308d3243f6a88ull) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox of seven rounds, which attention draws from, gives the known answers of Random123", "[core]") {
  struct Answer {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> block;
  };
  constexpr std::uint32_t kOnes = 0xffffffff;
  const std::array<Answer, 3> answers{
      {{{0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
       {{kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}, {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
       {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
        {0xa4093822, 0x299f31d0},
        {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}}}};
  for (const Answer& answer : answers) {
    const auto& [place, row, purpose, step] = answer.counter;
    const philox_block block = drawn_block(dropout_of(answer.key[0], answer.key[1], step, purpose, 1), row, place);
    CHECK(std::ranges::equal(block.word, answer.block));
  }
}

TEST_CASE("philox words, uniforms and sequences are views of the same blocks", "[core]") {
  const Philox stream(42, philox_purpose("test"), 7);
  PhiloxSequence sequence(stream);
  for (std::uint64_t i = 0; i < 11; ++i) {
    const std::uint32_t word = stream.block(i / 4)[i % 4];
    CHECK(stream.word(i) == word);
    CHECK(stream.uniform(i) == static_cast<float>(word >> 8) / 16777216.0f);
    CHECK(sequence.next() == word);
  }
}

TEST_CASE("philox streams differ by seed, purpose and step", "[core]") {
  const std::uint32_t purpose = philox_purpose("a");
  const std::uint32_t first = Philox(1, purpose, 0).word(0);
  CHECK(first != Philox(2, purpose, 0).word(0));
  CHECK(first != Philox(1, philox_purpose("b"), 0).word(0));
  CHECK(first != Philox(1, purpose, 1).word(0));
}

TEST_CASE("bounded numbers stay below their bound and are even", "[core]") {
  PhiloxSequence sequence(Philox(3, philox_purpose("below")));
  CHECK(sequence.below(1) == 0);
  std::array<int, 6> count{};
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) ++count.at(sequence.below(6));
  for (const int c : count) CHECK(std::abs(c - kDraws / 6) < 500);  // more than five deviations
  // Three quarters of 2^32: a quarter of the words would be rejected, and a modulus would double the first third.
  constexpr std::uint32_t kBound = 3u << 30;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t value = sequence.below(kBound);
    CHECK(value < kBound);
    low += value < (1u << 30);
  }
  CHECK(std::abs(low - kDraws / 3) < 600);
}
