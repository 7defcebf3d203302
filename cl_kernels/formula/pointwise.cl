// Pointwise: out_k[i] = expression_k(in_0[i], in_1[i], …) over `n` elements of the output. The host puts in front:
//   INPUTS                  number of operands
//   POINTWISE_PARAMETERS    operands, results and strides; POINTWISE_ARGUMENTS are their names
//   pointwise_load          reads the operands of element i as float, wherever broadcasting finds them
//   pointwise_store         computes the expressions of element i and writes them
// A work-group owns PER_ITEM * local size neighbouring elements, a work-item every local-size-th of them, so that
// neighbours read neighbours. All reads of a work-item come before its writes: results may lie over operands.

__kernel void pointwise(POINTWISE_PARAMETERS, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
  float in[PER_ITEM][INPUTS];
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i < n) pointwise_load(in[k], i, POINTWISE_ARGUMENTS);
  }
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i < n) pointwise_store(in[k], i, POINTWISE_ARGUMENTS);
  }
}
