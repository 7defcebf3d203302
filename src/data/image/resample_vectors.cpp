// Inner loops of resampling: in plain C++, with SSE2, which every 64-bit x86 has, and with AVX2 where it is found at
// run time.
#include "concord/data/image/resample_vectors.hpp"

#include <algorithm>
#include <array>

#if defined(__SSE2__) && defined(__GNUC__)
#include <immintrin.h>
#define CONCORD_X86 1
#else
#define CONCORD_X86 0
#endif

namespace concord::data {
namespace {

constexpr std::int32_t kSumHalf = 1 << (FilterTaps::kWeightBits - 1);

void weighted_sum_plain(const std::uint8_t* src, std::size_t stride, const FilterTaps::Pixel& taps, std::size_t bytes,
                        std::uint8_t* dst) {
  for (std::size_t i = 0; i < bytes; i += kSumBytes) {
    std::array<std::int32_t, kSumBytes> sum;
    sum.fill(kSumHalf);
    for (std::size_t k = 0; k < 2 * taps.pairs; ++k) {
      const std::int32_t pair = taps.weights[k / 2], weight = k % 2 == 0 ? pair & 0xFFFF : pair >> 16;
      for (std::size_t j = 0; j < kSumBytes; ++j) sum[j] += weight * src[k * stride + i + j];
    }
    for (std::size_t j = 0; j < kSumBytes; ++j) {
      dst[i + j] = static_cast<std::uint8_t>(sum[j] >> FilterTaps::kWeightBits);
    }
  }
}

#if CONCORD_X86

// Interleaved with the row below, bytes are the pairs that a multiplication with two weights takes. Unpacking and
// packing are within 16 bytes, so pixels end where they began.
void weighted_sum_sse2(const std::uint8_t* src, std::size_t stride, const FilterTaps::Pixel& taps, std::size_t bytes,
                       std::uint8_t* dst) {
  const __m128i zero = _mm_setzero_si128();
  for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
    __m128i a = _mm_set1_epi32(kSumHalf), b = a, c = a, d = a;
    const std::uint8_t* from = src + i;
    for (std::size_t pair = 0; pair < taps.pairs; ++pair, from += 2 * stride) {
      const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const __m128i lower = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + stride));
      const __m128i weights = _mm_set1_epi32(taps.weights[pair]);
      const __m128i left = _mm_unpacklo_epi8(upper, lower), right = _mm_unpackhi_epi8(upper, lower);
      a = _mm_add_epi32(a, _mm_madd_epi16(_mm_unpacklo_epi8(left, zero), weights));
      b = _mm_add_epi32(b, _mm_madd_epi16(_mm_unpackhi_epi8(left, zero), weights));
      c = _mm_add_epi32(c, _mm_madd_epi16(_mm_unpacklo_epi8(right, zero), weights));
      d = _mm_add_epi32(d, _mm_madd_epi16(_mm_unpackhi_epi8(right, zero), weights));
    }
    constexpr int kBits = FilterTaps::kWeightBits;
    const __m128i left = _mm_packs_epi32(_mm_srai_epi32(a, kBits), _mm_srai_epi32(b, kBits));
    const __m128i right = _mm_packs_epi32(_mm_srai_epi32(c, kBits), _mm_srai_epi32(d, kBits));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i), _mm_packus_epi16(left, right));
  }
}

[[gnu::target("avx2")]] void weighted_sum_avx2(const std::uint8_t* src, std::size_t stride,
                                               const FilterTaps::Pixel& taps, std::size_t bytes, std::uint8_t* dst) {
  const __m256i zero = _mm256_setzero_si256();
  for (std::size_t i = 0; i < bytes; i += sizeof(__m256i)) {
    __m256i a = _mm256_set1_epi32(kSumHalf), b = a, c = a, d = a;
    const std::uint8_t* from = src + i;
    for (std::size_t pair = 0; pair < taps.pairs; ++pair, from += 2 * stride) {
      const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i lower = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + stride));
      const __m256i weights = _mm256_set1_epi32(taps.weights[pair]);
      const __m256i left = _mm256_unpacklo_epi8(upper, lower), right = _mm256_unpackhi_epi8(upper, lower);
      a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(left, zero), weights));
      b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(left, zero), weights));
      c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(right, zero), weights));
      d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(right, zero), weights));
    }
    constexpr int kBits = FilterTaps::kWeightBits;
    const __m256i left = _mm256_packs_epi32(_mm256_srai_epi32(a, kBits), _mm256_srai_epi32(b, kBits));
    const __m256i right = _mm256_packs_epi32(_mm256_srai_epi32(c, kBits), _mm256_srai_epi32(d, kBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i), _mm256_packus_epi16(left, right));
  }
}

__m128i reversed_bytes(__m128i bytes) {
  constexpr int kBackward = 0x1B, kSwap = 0xB1;
  bytes = _mm_shuffle_epi32(bytes, kBackward);
  bytes = _mm_shufflehi_epi16(_mm_shufflelo_epi16(bytes, kSwap), kSwap);
  return _mm_or_si128(_mm_srli_epi16(bytes, 8), _mm_slli_epi16(bytes, 8));
}

void separate_16(const std::uint8_t* src, bool mirror, std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue) {
  const auto* const from = reinterpret_cast<const __m128i*>(src);
  __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2);
  // Byte i comes beside byte i + 24. After four times, 48 = 3·16 bytes are in the order of channels.
  for (int step = 0; step < 4; ++step) {
    const __m128i first = _mm_unpacklo_epi8(a, _mm_unpackhi_epi64(b, b));
    const __m128i second = _mm_unpacklo_epi8(_mm_unpackhi_epi64(a, a), c);
    const __m128i third = _mm_unpacklo_epi8(b, _mm_unpackhi_epi64(c, c));
    a = first, b = second, c = third;
  }
  if (mirror) a = reversed_bytes(a), b = reversed_bytes(b), c = reversed_bytes(c);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(red), a);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(green), b);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(blue), c);
}

/// Of 16 pixels in the registers a, b and c, where the bytes of a channel go: -1 leaves a byte 0.
struct ChannelShuffle {
  alignas(16) std::array<std::array<std::int8_t, 16>, 3> places;
};

constexpr ChannelShuffle channel_shuffle(int channel, bool mirror) {
  ChannelShuffle shuffle{};
  for (int part = 0; part < 3; ++part) {
    for (int pixel = 0; pixel < 16; ++pixel) {
      const int from = 3 * pixel + channel - 16 * part;
      const int to = mirror ? 15 - pixel : pixel;
      shuffle.places[static_cast<std::size_t>(part)][static_cast<std::size_t>(to)] =
          static_cast<std::int8_t>(from >= 0 && from < 16 ? from : -1);
    }
  }
  return shuffle;
}

/// Bytes from `at` in the lower half, and those of 16 pixels later in the upper one.
[[gnu::target("avx2")]] __m256i two_parts(const std::uint8_t* at) {
  const __m128i lower = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 48));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1);
}

[[gnu::target("avx2")]] __m256i shuffled(__m256i bytes, const std::array<std::int8_t, 16>& places) {
  const __m128i half = _mm_load_si128(reinterpret_cast<const __m128i*>(places.data()));
  return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(half));
}

/// 32 pixels at a time; the two halves of a register have 16 each. Returns how many pixels it did.
template <bool kMirror>
[[gnu::target("avx2")]] std::size_t separate_avx2(const std::uint8_t* src, std::size_t pixels,
                                                  const std::array<std::uint8_t*, 3>& dst) {
  static constexpr std::array<ChannelShuffle, 3> kShuffles{channel_shuffle(0, kMirror), channel_shuffle(1, kMirror),
                                                           channel_shuffle(2, kMirror)};
  std::size_t x = 0;
  for (; x + 32 <= pixels; x += 32) {
    const __m256i a = two_parts(src + 3 * x), b = two_parts(src + 3 * x + 16), c = two_parts(src + 3 * x + 32);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const auto& places = kShuffles[channel].places;
      __m256i sum = _mm256_or_si256(shuffled(a, places[0]), shuffled(b, places[1]));
      sum = _mm256_or_si256(sum, shuffled(c, places[2]));
      if (kMirror) sum = _mm256_permute2x128_si256(sum, sum, 1);
      std::uint8_t* const to = dst[channel] + (kMirror ? pixels - 32 - x : x);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum);
    }
  }
  return x;
}

#endif

/// From pixel `x` on.
void separate_rest(const std::uint8_t* src, std::size_t x, std::size_t pixels, bool mirror, std::uint8_t* red,
                   std::uint8_t* green, std::uint8_t* blue) {
  for (; x < pixels; ++x) {
    const std::size_t to = mirror ? pixels - 1 - x : x;
    red[to] = src[3 * x], green[to] = src[3 * x + 1], blue[to] = src[3 * x + 2];
  }
}

void separate_channels_plain(const std::uint8_t* src, std::size_t pixels, bool mirror, std::uint8_t* red,
                             std::uint8_t* green, std::uint8_t* blue) {
  separate_rest(src, 0, pixels, mirror, red, green, blue);
}

#if CONCORD_X86

void separate_by_16(const std::uint8_t* src, std::size_t x, std::size_t pixels, bool mirror, std::uint8_t* red,
                    std::uint8_t* green, std::uint8_t* blue) {
  for (; x + 16 <= pixels; x += 16) {
    const std::size_t to = mirror ? pixels - 16 - x : x;
    separate_16(src + 3 * x, mirror, red + to, green + to, blue + to);
  }
  separate_rest(src, x, pixels, mirror, red, green, blue);
}

void separate_channels_sse2(const std::uint8_t* src, std::size_t pixels, bool mirror, std::uint8_t* red,
                            std::uint8_t* green, std::uint8_t* blue) {
  separate_by_16(src, 0, pixels, mirror, red, green, blue);
}

void separate_channels_avx2(const std::uint8_t* src, std::size_t pixels, bool mirror, std::uint8_t* red,
                            std::uint8_t* green, std::uint8_t* blue) {
  const std::array<std::uint8_t*, 3> dst{red, green, blue};
  const std::size_t done = mirror ? separate_avx2<true>(src, pixels, dst) : separate_avx2<false>(src, pixels, dst);
  separate_by_16(src, done, pixels, mirror, red, green, blue);
}

#endif

}  // namespace

std::span<WeightedSum* const> weighted_sums() {
#if CONCORD_X86
  static constexpr std::array<WeightedSum*, 3> kAll{weighted_sum_avx2, weighted_sum_sse2, weighted_sum_plain};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return std::span(kAll).subspan(has_avx2 ? 0 : 1);
#else
  static constexpr std::array<WeightedSum*, 1> kAll{weighted_sum_plain};
  return kAll;
#endif
}

void transpose_16(const std::uint8_t* src, std::size_t src_stride, std::uint8_t* dst, std::size_t dst_stride) {
#if CONCORD_X86
  __m128i rows[16], next[16];
  for (std::size_t i = 0; i < 16; ++i)
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * src_stride));
  // Four times rows i and i + 8 are interleaved: the eight bits of (row, column) turn by one place.
  for (int step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < 8; ++i) {
      next[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      next[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy_n(next, 16, rows);
  }
  for (std::size_t i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i * dst_stride), rows[i]);
#else
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) dst[j * dst_stride + i] = src[i * src_stride + j];
  }
#endif
}

std::span<ChannelSeparation* const> channel_separations() {
#if CONCORD_X86
  static constexpr std::array<ChannelSeparation*, 3> kAll{separate_channels_avx2, separate_channels_sse2,
                                                          separate_channels_plain};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return std::span(kAll).subspan(has_avx2 ? 0 : 1);
#else
  static constexpr std::array<ChannelSeparation*, 1> kAll{separate_channels_plain};
  return kAll;
#endif
}

}  // namespace concord::data
