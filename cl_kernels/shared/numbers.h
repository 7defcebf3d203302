// The numbers of a kernel as members of one struct by value, its parameter `numbers` (PackedArguments in
// src/opencl/launch/stage.hpp): each argument of a kernel costs the host time at every launch. A list names the numbers
// once, in the order of the host's arguments; the kernel has them as constants:
//   #define SCALE_NUMBERS(NUMBER) NUMBER(ulong, dst_offset) NUMBER(uint, count) NUMBER(float, factor)
//   typedef struct { SCALE_NUMBERS(NUMBER_MEMBER) } scale_numbers;
//   __kernel void scale(__global float *dst, const scale_numbers numbers) {
//     SCALE_NUMBERS(NUMBER_CONSTANT)
#ifndef CONCORD_NUMBERS_H
#define CONCORD_NUMBERS_H

#define NUMBER_MEMBER(type, name) type name;
#define NUMBER_CONSTANT(type, name) const type name = numbers.name;

#endif
