// How the products on NVIDIA's matrix units copy their right operand (gemm/element.h) to local memory, asynchronously.
// A kernel's file defines, before it includes this, TILE_K, THREADS, RIGHT_LINES (lines across k of its right tile) and
// B_VECTOR, the floats a copy moves, 1 or 4: 4 where they are adjacent, aligned, and in range together.
#include "gemm/element.h"
#include "shared/nvidia/units.h"

#define COPY_1(dst, src, wanted) \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"((wanted) ? 4 : 0) : "memory")
#define COPY_4(dst, src, wanted) \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"((wanted) ? 16 : 0) : "memory")
// An item copies B_VECTOR floats of B_LOADS lines that lie B_STRIDE apart.
#if B_VECTOR == 4
#define COPY_B COPY_4
#else
#define COPY_B COPY_1
#endif
#ifdef B_ALONG_K
#define B_LINE (TILE_K / B_VECTOR)
#else
#define B_LINE (RIGHT_LINES / B_VECTOR)
#endif
#define B_LOADS (RIGHT_LINES * TILE_K / B_VECTOR / THREADS)
#define B_STRIDE (THREADS / B_LINE)

// What an item keeps of the lines it copies, from row or column `begin` on. Those past the edge repeat the last one.
#if defined(B_PATCH) && defined(B_ALONG_K)
#define KEEP_LINES(begin)  \
  int2 b_taps[B_LOADS];    \
  EACH(i, B_LOADS) b_taps[i] = taps[min((begin) + b_line + i * B_STRIDE, n_size - 1)];
#elif defined(B_PATCH)
#define KEEP_LINES(begin) const int2 b_place = PLACE(min((begin) + b_along, n_size - B_VECTOR));
#elif defined(B_ALONG_K)
#define KEEP_LINES(begin)        \
  index_t b_columns[B_LOADS];    \
  EACH(i, B_LOADS) b_columns[i] = B_COLUMN_OF(min((begin) + b_line + i * B_STRIDE, n_size - 1));
#else
#define KEEP_LINES(begin) const index_t b_column = B_COLUMN_OF(min((begin) + b_along, n_size - B_VECTOR));
#endif

// Begins the copies of the tile from k = `tile` on to b_to + stage + B_TO(i), zeros from k_end on.
#if defined(B_PATCH) && defined(B_ALONG_K)
#define LOAD_B(tile, stage)                                                               \
  {                                                                                       \
    const uint k = (tile) + b_along;                                                      \
    const int2 place = PLACE(min(k, k_size - B_VECTOR));                                  \
    EACH(i, B_LOADS) {                                                                    \
      const bool wanted = k < k_end && IN_IMAGE(b_taps[i], place);                        \
      COPY_B(b_to + (stage) + B_TO(i), b + (wanted ? b_taps[i].x + place.x : 0), wanted); \
    }                                                                                     \
  }
#elif defined(B_PATCH)
#define LOAD_B(tile, stage)                                                         \
  EACH(i, B_LOADS) {                                                                \
    const uint k = (tile) + b_line + i * B_STRIDE;                                  \
    const int2 tap = taps[min(k, k_size - 1)];                                      \
    const bool wanted = k < k_end && IN_IMAGE(tap, b_place);                        \
    COPY_B(b_to + (stage) + B_TO(i), b + (wanted ? tap.x + b_place.x : 0), wanted); \
  }
#elif defined(B_ALONG_K)
#define LOAD_B(tile, stage)                                                         \
  {                                                                                 \
    const uint k = (tile) + b_along;                                                \
    const bool wanted = k < k_end;                                                  \
    __global const float *from = b + (wanted ? B_STEP_OF(k) : 0);                   \
    EACH(i, B_LOADS) COPY_B(b_to + (stage) + B_TO(i), from + b_columns[i], wanted); \
  }
#else
#define LOAD_B(tile, stage)                                                               \
  EACH(i, B_LOADS) {                                                                      \
    const uint k = (tile) + b_line + i * B_STRIDE;                                        \
    const bool wanted = k < k_end;                                                        \
    COPY_B(b_to + (stage) + B_TO(i), b + b_column + (wanted ? B_STEP_OF(k) : 0), wanted); \
  }
#endif
