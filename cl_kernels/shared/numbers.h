// The numbers of a kernel as members of one struct by value, its parameter `numbers` (PackedArguments in
// src/opencl/launch/stage.hpp): each argument of a kernel costs the host time at every launch. A list names the numbers
// once, in the order of the host's arguments; the kernel has them as constants:
//   #define SCALE_NUMBERS(NUMBER) NUMBER(ulong, dst_offset) NUMBER(uint, count) NUMBER(float, factor)
//   typedef struct { SCALE_NUMBERS(NUMBER_MEMBER) } scale_numbers;
//   __kernel void scale(__global float *dst, const scale_numbers numbers) {
//     SCALE_NUMBERS(NUMBER_CONSTANT)
#ifndef CONCORD_NUMBERS_H
#define CONCORD_NUMBERS_H

// Its memories are listed so, too, and stand in front of the struct:
//   #define SCALE_MEMORIES(MEMORY) MEMORY(const float *restrict, src) MEMORY(float *, dst)
//   __kernel void scale(MEMORY_PARAMETERS(SCALE_MEMORIES) const scale_numbers numbers) {
//     SCALE_NUMBERS(NUMBER_CONSTANT)
//     DECLARE_MEMORIES(SCALE_MEMORIES)
// With ONE_MEMORY the kernel has the first memory as its only one, and all offsets count from it
// (src/opencl/launch/one_memory.hpp). FURTHER_PARAMETERS: those of a second list. A table of the kernel's own, which else has
// no offset, then has one in bytes: TABLE_PARAMETER, TABLE_NUMBER in its place in the list, and DECLARE_TABLE.
#define NUMBER_MEMBER(type, name) type name;
#define NUMBER_CONSTANT(type, name) const type name = numbers.name;

#define MEMORY_PARAMETER(pointer, name) __global pointer name,
#define MEMORY_DECLARED(pointer, name) __global pointer name = (__global pointer)one_memory;
#ifdef ONE_MEMORY
#define MEMORY_PARAMETERS(LIST) __global uchar *one_memory,
#define DECLARE_MEMORIES(LIST) LIST(MEMORY_DECLARED)
#define FURTHER_PARAMETERS(LIST)
#define TABLE_PARAMETER(pointer, name)
#define TABLE_NUMBER(NUMBER, name) NUMBER(ulong, name##_offset)
#define DECLARE_TABLE(pointer, name) __global pointer name = (__global pointer)(one_memory + name##_offset);
#else
#define MEMORY_PARAMETERS(LIST) LIST(MEMORY_PARAMETER)
#define DECLARE_MEMORIES(LIST)
#define FURTHER_PARAMETERS(LIST) LIST(MEMORY_PARAMETER)
#define TABLE_PARAMETER(pointer, name) __global pointer name,
#define TABLE_NUMBER(NUMBER, name)
#define DECLARE_TABLE(pointer, name)
#endif

#endif
