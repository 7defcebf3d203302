// Bitonic sort (Batcher, "Sorting Networks and their Applications", 1968) of 64-bit words, rising; their number is a
// power of two and a multiple of BLOCK. A work-group of BLOCK / 2 items, one comparison each, holds BLOCK words in local
// memory. A run of `size` words is sorted rising where its number is even, falling where it is odd.
//   sort_blocks  every block from scratch.
//   sort_step    one step of merging runs of `size`: words `distance` apart, at least BLOCK.
//   sort_merge   the steps of merging runs of `size` whose words lie in one block.
#define ITEMS (BLOCK / 2)

static inline void sort_exchange(__local ulong *words, uint distance, bool rising) {
  const uint item = (uint)get_local_id(0), a = 2 * item - (item & (distance - 1)), b = a + distance;
  const ulong x = words[a], y = words[b];
  if ((x > y) == rising) {
    words[a] = y;
    words[b] = x;
  }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void sort_blocks(__global ulong *words,
                                                                           const ulong words_offset) {
  __local ulong block[BLOCK];
  const uint item = (uint)get_local_id(0), first = (uint)get_group_id(0) * BLOCK;
  words += words_offset + first;
  block[item] = words[item];
  block[item + ITEMS] = words[item + ITEMS];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint size = 2; size <= BLOCK; size *= 2) {
    for (uint distance = size / 2; distance > 0; distance /= 2) {
      sort_exchange(block, distance, ((first + 2 * item) & size) == 0);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  words[item] = block[item];
  words[item + ITEMS] = block[item + ITEMS];
}

__kernel void sort_step(__global ulong *words, const ulong words_offset, const uint size, const uint distance) {
  const uint item = (uint)get_global_id(0), a = 2 * item - (item & (distance - 1)), b = a + distance;
  words += words_offset;
  const ulong x = words[a], y = words[b];
  if ((x > y) == ((a & size) == 0)) {
    words[a] = y;
    words[b] = x;
  }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void sort_merge(__global ulong *words,
                                                                          const ulong words_offset, const uint size) {
  __local ulong block[BLOCK];
  const uint item = (uint)get_local_id(0), first = (uint)get_group_id(0) * BLOCK;
  words += words_offset + first;
  block[item] = words[item];
  block[item + ITEMS] = words[item + ITEMS];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint distance = ITEMS; distance > 0; distance /= 2) {
    sort_exchange(block, distance, (first & size) == 0);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  words[item] = block[item];
  words[item + ITEMS] = block[item + ITEMS];
}
