// The products of a launch of gemm/hopper/tma.cl: 1 to 4, which differ in nothing but their numbers, such as the phases of a
// data gradient's stride. Their works follow each other, those of a product from its first_work on, so that groups without a
// work of one product take one of the next. All read the same memories and write disjoint parts of C; the maps of one product
// lie behind those of another. Uses that file's names.
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

#endif
