// The copy engine (TMA) of NVIDIA's Hopper GPUs: copies of boxes of a tensor to local memory, and the barriers that count
// what has arrived. Local memory is named by its address in the shared state space. `map` describes the tensor
// (src/opencl/gemm/hopper/tensor_map.hpp).
#ifndef CONCORD_NVIDIA_TMA_H
#define CONCORD_NVIDIA_TMA_H

#define BARRIER_BEGIN(at, count) \
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory")
#define BARRIERS_BEGUN() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define BARRIER_EXPECT(at, bytes) \
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory")
#define BARRIER_ARRIVE(at) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory")
// A map that another kernel wrote.
#define READ_MAP(map) \
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory")

// A map with the address of its tensor.
#define MAP_WORDS 32
static inline void write_map(__global const uint *map, __global uint *to, __global const void *tensor) {
  const ulong address = (ulong)(size_t)tensor;
  to[0] = (uint)address;
  to[1] = (uint)(address >> 32);
  for (uint i = 2; i < MAP_WORDS; ++i) to[i] = map[i];
}

// Begins the copy of a box to local memory; `full` counts its bytes.
#define COPY_BOX(to, map, full, x, y, z)                                                                    \
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"                \
               " [%0], [%1, {%3, %4, %5}], [%2];"                                                           \
               ::"r"(to), "l"(map), "r"(full), "r"(x), "r"(y), "r"(z) : "memory")
// The same of the places of an image that one tap meets.
#define COPY_PLACES(to, map, full, channel, x, y, image, tap_x, tap_y)                                      \
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"         \
               " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"                                             \
               ::"r"(to), "l"(map), "r"(full), "r"(channel), "r"(x), "r"(y), "r"(image),                    \
                 "h"((ushort)(tap_x)), "h"((ushort)(tap_y)) : "memory")

// Waits for the phase of a barrier. Bounded, so that an error does not end in a hung device; 0 says so.
static inline uint wait_phase(uint barrier_address, uint phase, uint tries) {
  uint left = tries;
  while (left > 0) {
    uint done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier_address), "r"(phase) : "memory");
    if (done) return tries;
    --left;
  }
  return 0;
}
#define MOST_TRIES (1u << 20)

#endif
