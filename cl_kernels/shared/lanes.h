// Rows that several work-items reduce together: a work-group of LANES·ROWS items serves ROWS rows, LANES items each.
// LANES is a power of two. With ROWS_ADJACENT neighbouring items belong to neighbouring rows (a reduction over an outer
// axis reads along rows), otherwise to one row. The order of a reduction depends on LANES alone.
#ifndef CONCORD_LANES_H
#define CONCORD_LANES_H

#define THREADS (LANES * ROWS)
#ifdef ROWS_ADJACENT
#define LANE ((uint)get_local_id(0) / ROWS)
#define ROW ((uint)get_local_id(0) % ROWS)
#define LANE_DISTANCE ROWS
#else
#define LANE ((uint)get_local_id(0) % LANES)
#define ROW ((uint)get_local_id(0) / LANES)
#define LANE_DISTANCE 1
#endif

// Every item of the row ends with the row's reduction of `value`. All items of the group must come here.
#if LANES == 1
#define LANES_SCRATCH(type, name)
#define LANES_REDUCE(value, scratch, COMBINE)
#else
#define LANES_SCRATCH(type, name) __local type name[THREADS]
#define LANES_REDUCE(value, scratch, COMBINE)                                                            \
  do {                                                                                                   \
    const uint item_ = (uint)get_local_id(0);                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
    scratch[item_] = value;                                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
    for (uint step_ = LANES / 2; step_ > 0; step_ /= 2) {                                                \
      if (LANE < step_) scratch[item_] = COMBINE(scratch[item_], scratch[item_ + step_ * LANE_DISTANCE]); \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                      \
    }                                                                                                    \
    value = scratch[item_ - LANE * LANE_DISTANCE];                                                       \
  } while (0)
#endif

#define COMBINE_SUM(a, b) ((a) + (b))
// NaN if either is NaN; for scalars and vectors.
#define COMBINE_MAXIMUM(a, b) select((b), (a), ((a) > (b)) | ((a) != (a)))
#define COMBINE_MINIMUM(a, b) select((b), (a), ((a) < (b)) | ((a) != (a)))

#endif
