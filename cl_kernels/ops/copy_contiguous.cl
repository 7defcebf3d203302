// Copy on CPUs: a work-item owns `chunk` neighbouring elements of the loop and walks through them in runs along the
// innermost dimension, as in formula/pointwise_contiguous.cl. The host puts in front what ops/copy.cl wants and
//   copy_run_length         elements from i to the end of the run or to `end`
//   SRC_STEP, DST_STEP      how far the operands move along the innermost dimension

__kernel void copy(__global const ELEMENT* src, const ulong src_offset, __global ELEMENT* dst,
                   const ulong dst_offset COPY_PARAMETERS, const index_t chunk, const index_t n) {
  index_t i = (index_t)get_global_id(0) * chunk;
  const index_t end = min(i + chunk, n);
  while (i < end) {
    const index_t run = copy_run_length(i, end COPY_ARGUMENTS);
    __global const ELEMENT* from = src + src_offset + copy_src(i COPY_ARGUMENTS);
    __global ELEMENT* to = dst + dst_offset + copy_dst(i COPY_ARGUMENTS);
#pragma clang loop vectorize(assume_safety)
    for (index_t j = 0; j < run; ++j) to[j * DST_STEP] = from[j * SRC_STEP];
    i += run;
  }
}
