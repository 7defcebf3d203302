// Copy between two orders of dimensions where src is contiguous along one dimension ("rows") and dst along another
// ("columns"): through tiles in local memory, so that both sides are read and written in whole lines. A work-group of
// 32 x 8 items owns a tile of 32 x 32 elements; the padded line of the tile keeps its columns in different banks.
// The host puts in front what ops/copy.cl wants; copy_src and copy_dst find the start of a plane.
#define TILE 32
#define LINES 8

__kernel __attribute__((reqd_work_group_size(TILE, LINES, 1))) void copy_transpose(
    __global const ELEMENT* src, const ulong src_offset, __global ELEMENT* dst, const ulong dst_offset COPY_PARAMETERS,
    const index_t rows, const index_t columns, const index_t src_stride, const index_t dst_stride) {
  __local ELEMENT tile[TILE][TILE + 1];
  const index_t column_tiles = (columns + TILE - 1) / TILE, row_tiles = (rows + TILE - 1) / TILE;
  const index_t group = (index_t)get_group_id(0);
  const index_t tile_row = group / column_tiles, plane = tile_row / row_tiles;
  const index_t first_column = (group - tile_row * column_tiles) * TILE;
  const index_t first_row = (tile_row - plane * row_tiles) * TILE;
  const index_t x = (index_t)get_local_id(0), y = (index_t)get_local_id(1);
  src += src_offset + copy_src(plane COPY_ARGUMENTS);
  dst += dst_offset + copy_dst(plane COPY_ARGUMENTS);

  for (index_t line = y; line < TILE; line += LINES) {
    const index_t row = first_row + x, column = first_column + line;
    if (row < rows && column < columns) tile[line][x] = src[column * src_stride + row];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t line = y; line < TILE; line += LINES) {
    const index_t row = first_row + line, column = first_column + x;
    if (row < rows && column < columns) dst[row * dst_stride + column] = tile[x][line];
  }
}
