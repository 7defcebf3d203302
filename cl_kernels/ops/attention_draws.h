// The factors of dropout for weights that lie in the registers of a matrix unit (ops/attention_mma.h,
// ops/attention_wgmma.h): of a tile of 16 by 8 a lane has rows ROW and ROW + 8 and columns 2·QUAD and the next.
#ifndef CONCORD_ATTENTION_DRAWS_H
#define CONCORD_ATTENTION_DRAWS_H

// As draw_four compares: the upper 24 bits of a word, in parts of 2^24, below `keep`.
#define FACTOR(word) ((word) >> 8 < (uint)ceil(keep * 16777216.0f) ? kept : 0.0f)

// The factors of a tile whose rows are queries and whose columns are keys: row ROW is `row` of the stream, and row
// ROW + 8; the first of the eight keys is s. Lanes with neighbouring keys draw for one row each and exchange halves.
TILE_FUNCTION void draw_keys(float factors[4], const ulong row, const uint s, const uint keys,
                             __global const int *state, const uint purpose, const float keep, const float kept) {
  const bool odd = QUAD % 2 == 1;
  const philox_block block = drawn_block(row + (odd ? 8 : 0), s + 4 * (QUAD / 2), keys, state, purpose);
  const uint mine0 = odd ? block.word[2] : block.word[0], mine1 = odd ? block.word[3] : block.word[1];
  const uint other0 = lane_xor(odd ? block.word[0] : block.word[2], 1);
  const uint other1 = lane_xor(odd ? block.word[1] : block.word[3], 1);
  factors[0] = FACTOR(odd ? other0 : mine0);
  factors[1] = FACTOR(odd ? other1 : mine1);
  factors[2] = FACTOR(odd ? mine0 : other0);
  factors[3] = FACTOR(odd ? mine1 : other1);
}

// Those of a tile whose rows are keys, the first of them s, and whose columns are queries: column 2·QUAD is `row` of the
// stream. Four lanes with neighbouring keys draw for one query and one half of the rows each, and transpose the words.
TILE_FUNCTION void draw_queries(float factors[4], const ulong row, const uint s, const uint keys,
                                __global const int *state, const uint purpose, const float keep, const float kept) {
  const uint place = ROW % 4;
  const philox_block block = drawn_block(row + place % 2, s + place / 2 * 8 + ROW / 4 * 4, keys, state, purpose);
  uint word0 = block.word[0], word1 = block.word[1], word2 = block.word[2], word3 = block.word[3];
  EXCHANGE_WORDS(word0, word1, place % 2 == 1, 4)
  EXCHANGE_WORDS(word2, word3, place % 2 == 1, 4)
  EXCHANGE_WORDS(word0, word2, place / 2 == 1, 8)
  EXCHANGE_WORDS(word1, word3, place / 2 == 1, 8)
  factors[0] = FACTOR(word0);
  factors[1] = FACTOR(word1);
  factors[2] = FACTOR(word2);
  factors[3] = FACTOR(word3);
}

#endif
