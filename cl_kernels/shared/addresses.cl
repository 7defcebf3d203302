// Where memory lies, and the check that it is found from other memory (src/opencl/launch/one_memory.hpp).
#include "shared/numbers.h"

__kernel void address_of(__global uchar *memory_of_interest, __global ulong *address) {
  *address = (ulong)(size_t)memory_of_interest;
}

#define WRITE_MEMORIES(MEMORY) MEMORY(uint *, first) MEMORY(uint *, second) MEMORY(uint *, third)
#define WRITE_NUMBERS(NUMBER)                                                            \
  NUMBER(ulong, first_offset) NUMBER(ulong, second_offset) NUMBER(ulong, third_offset)   \
  NUMBER(uint, second_value) NUMBER(uint, third_value)
typedef struct { WRITE_NUMBERS(NUMBER_MEMBER) } write_numbers;
__kernel void write_by_offsets(MEMORY_PARAMETERS(WRITE_MEMORIES) const write_numbers numbers) {
  WRITE_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(WRITE_MEMORIES)
  first[first_offset] = 0;
  second[second_offset] = second_value;
  third[third_offset] = third_value;
}
