// Pointwise on CPUs: a work-item owns `chunk` neighbouring elements and walks through them in runs along the innermost
// dimension, where every operand moves by a fixed step and the compiler can vectorise. The host puts in front:
//   POINTWISE_PARAMETERS    operands, results and strides; POINTWISE_ARGUMENTS are their names
//   pointwise_run           computes elements from i on, up to `end` or the end of the run; returns how many

__kernel void pointwise(POINTWISE_PARAMETERS, const index_t chunk, const index_t n) {
  index_t i = (index_t)get_global_id(0) * chunk;
  const index_t end = min(i + chunk, n);
  while (i < end) i += pointwise_run(i, end, POINTWISE_ARGUMENTS);
}
