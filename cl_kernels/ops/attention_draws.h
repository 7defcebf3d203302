// The random words of dropout for weights that lie in the registers of a matrix unit (ops/attention_mma.h,
// ops/attention_wgmma.h): of a tile of 16 by 8 a lane has rows ROW and ROW + 8 and columns 2·QUAD and the next. Of two
// neighbouring tiles it has eight weights, for which shared/attention_dropout.h draws one block.
#ifndef CONCORD_ATTENTION_DRAWS_H
#define CONCORD_ATTENTION_DRAWS_H
#ifdef DROPOUT

// Rows are queries: the tiles begin at row `row` of squares and key s. Weight i, of the first tile if i < 4, is kept if
// KEEPS_KEY(words, i).
#define KEEPS_KEY(words, i) keeps_half(dropout, (words).word[(i) / 2], (i) % 2)
static inline philox_block draw_keys(const attention_dropout dropout, const uint row, const uint s) {
  return drawn_block(dropout, row, s * (DRAWN_BLOCKS / DRAWN_SQUARE) + ITEM % 32);
}

// Rows are keys, the first of them s; the tiles begin at row `row` of squares of queries. Two lanes with neighbouring
// keys draw for one of the two queries 2·QUAD and 2·QUAD + 1 each, and exchange halves. Weight i is kept if
// KEEPS_QUERY(words, i).
#define KEEPS_QUERY(words, i) keeps_half(dropout, (words).word[(i) / 4 * 2 + (i) % 2], (i) / 2 % 2)
static inline philox_block draw_queries(const attention_dropout dropout, const uint row, const uint s) {
  const bool is_odd = ROW % 2 == 1;
  const uint place = s * (DRAWN_BLOCKS / DRAWN_SQUARE) + (2 * QUAD + ROW % 2) * 4 + ROW / 2;
  const philox_block drawn = drawn_block(dropout, row, place);
  philox_block words;
  EACH(tile, 2) {
    const uint near = drawn.word[tile], far = drawn.word[tile + 2];  // keys 2·(ROW / 2) and the next, and 8 beyond
    uint of_even = near & 0xffff | far << 16, of_odd = near >> 16 | far & 0xffff0000;
    EXCHANGE_WORDS(of_even, of_odd, is_odd, 4)
    words.word[2 * tile] = of_even;     // of query 2·QUAD: keys ROW and ROW + 8
    words.word[2 * tile + 1] = of_odd;  // of the next query
  }
  return words;
}

// The compiler draws before what follows.
#define HOLD_DRAWN(drawn) EACH(j, SCORES / 8) EACH(w, 4) asm volatile("" : "+r"((drawn)[j].word[w]))

#else
#define KEEPS_KEY(words, i) true
#define KEEPS_QUERY(words, i) true
#endif
#endif
