// The products of a launch of gemm/hopper/tma.cl, and their works. There are 1 to 4 products, which differ in nothing but
// their numbers, such as the phases of a data gradient's stride, or the gradients of the weights of several layers. Their works
// follow each other, those of a product from its first_work on, so that groups without a work of one product take one of the
// next. Products in the same memories write disjoint parts of C; with ONE_MEMORY the offsets of each lead to memories of its
// own. The maps of one product lie behind those of another. Uses that file's names.
#ifndef CONCORD_NVIDIA_GEMM_TMA_MEMBERS_H
#define CONCORD_NVIDIA_GEMM_TMA_MEMBERS_H

#ifndef MEMBERS
#define MEMBERS 1
#endif

#if MEMBERS == 1
typedef product_numbers launch_numbers;
#define OF_FIRST(name) name
#define ALL_WORKS works
#define NUMBERS_OF_LAUNCH TMA_NUMBERS(NUMBER_CONSTANT)
#define NUMBERS_OF_WORK
#else
#if MEMBERS == 2
typedef struct { product_numbers m0, m1; } launch_numbers;
#define LAST numbers.m1
#define OF_MEMBER(name) (work < numbers.m1.first_work ? numbers.m0.name : numbers.m1.name)
#elif MEMBERS == 3
typedef struct { product_numbers m0, m1, m2; } launch_numbers;
#define LAST numbers.m2
#define OF_MEMBER(name)                              \
  (work < numbers.m1.first_work   ? numbers.m0.name  \
   : work < numbers.m2.first_work ? numbers.m1.name  \
                                  : numbers.m2.name)
#elif MEMBERS == 4
typedef struct { product_numbers m0, m1, m2, m3; } launch_numbers;
#define LAST numbers.m3
#define OF_MEMBER(name)                              \
  (work < numbers.m1.first_work   ? numbers.m0.name  \
   : work < numbers.m2.first_work ? numbers.m1.name  \
   : work < numbers.m3.first_work ? numbers.m2.name  \
                                  : numbers.m3.name)
#endif
#define OF_FIRST(name) numbers.m0.name
#define ALL_WORKS (LAST.first_work + LAST.works)
#define NUMBERS_OF_LAUNCH
#define NUMBER_OF_WORK(type, name) const type name = OF_MEMBER(name);
#define NUMBERS_OF_WORK TMA_NUMBERS(NUMBER_OF_WORK)
#endif

// The works of a group: every so many, or two that its number gives it and those that it claims, so that a claim has the
// time of a work to be answered. The number of claims lies behind the maps.
#ifdef CLAIMED
#include "shared/nvidia/claims.h"
__kernel void claims_begin(__global uint *claims, ulong claims_offset) { claims[claims_offset] = 0; }

#define GIVEN_WORKS (2 * (uint)get_num_groups(0))
// Of the copier.
#define EACH_WORK_TO_COPY()                                                                                  \
  for (uint work = (uint)get_group_id(0), next_work = work + (uint)get_num_groups(0), last_work, turn = 1;   \
       work < ALL_WORKS; work = next_work, next_work = last_work, ++turn)
#define CLAIM_WORK() \
  last_work = claimed_work(maps + OF_FIRST(maps_offset) + 2 * MEMBERS * MAP_BYTES, ALL_WORKS, GIVEN_WORKS);
#define SAY_NEXT_WORK() known_works[turn % KNOWN_WORKS] = next_work;
// Of the others. Where copies never came, nobody knows what is next.
#define NEXT_WORK() (tries == 0 ? ALL_WORKS : known_works[turn % KNOWN_WORKS])
#define EACH_WORK() \
  for (uint work = (uint)get_group_id(0), turn = 1; work < ALL_WORKS; work = NEXT_WORK(), ++turn)
#else
#define EACH_WORK() \
  for (uint work = (uint)get_group_id(0); work < ALL_WORKS; work += (uint)get_num_groups(0))
#define EACH_WORK_TO_COPY() EACH_WORK()
#define CLAIM_WORK()
#define SAY_NEXT_WORK()
#endif

#endif
