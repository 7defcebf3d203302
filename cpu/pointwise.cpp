// Pointwise: an expression run over cache-sized tiles of the output, in the order the output is stored. Operands
// stored as the output is are read in place; others are gathered into tiles by their strides and types, so that
// row-major and channels-last operands, in fp32 and bf16, mix freely.
#include "concord/ops/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "kernels.hpp"
#include "strided.hpp"
#include "tile_program.hpp"

namespace concord::cpu {
namespace {

constexpr std::size_t kMaxOperands = 32;

// How one operand or coordinate reaches its tile.
struct Gathered {
  std::int32_t slot = 0;  // its tile
  std::size_t input = 0;  // operand number; unused for coordinates
  bool is_coordinate = false;
  std::size_t axis = 0;     // of the view, for coordinates
  std::size_t strides = 0;  // row of view.strides, for operands
  bool invariant = false;   // the same for every whole-row tile
};

struct Plan {
  TileProgram program;
  StridedView view;  // dims of the output as stored; strides of the operands that are not uniform
  std::vector<DType> input_types, output_types;
  std::vector<TileSource> sources;
  std::vector<Gathered> gathered;
  std::int64_t elements = 0;
  int threads = 1;

  [[nodiscard]] std::int64_t row() const { return view.dims.back(); }
  [[nodiscard]] std::int64_t rows() const { return elements / row(); }
  /// Elements at a time.
  [[nodiscard]] std::int64_t tile() const { return program.tiles() == 0 && program.passes() <= 1 ? kLongRun : kTile; }
  [[nodiscard]] bool whole_rows() const { return row() <= tile(); }
  [[nodiscard]] std::int64_t rows_per_tile() const { return whole_rows() ? tile() / row() : 1; }
  [[nodiscard]] std::int64_t tiles_per_row() const { return whole_rows() ? 1 : (row() + tile() - 1) / tile(); }
  [[nodiscard]] std::int64_t tiles() const {
    return whole_rows() ? (rows() + rows_per_tile() - 1) / rows_per_tile() : rows() * tiles_per_row();
  }
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(uniform_floats() + threads * program.tiles() * kTilePitch) * sizeof(float);
  }
  // Rounded up, so that the tiles after them are aligned.
  [[nodiscard]] std::int64_t uniform_floats() const { return (program.uniforms() + 15) / 16 * 16; }
};

// Fills one tile: `rows` rows of `columns` elements from (row, column) on.
void gather(const Plan& plan, const Gathered& item, const std::byte* src, std::int64_t row, std::int64_t rows,
            std::int64_t column, std::int64_t columns, float* dst) {
  const std::size_t outer = plan.view.dims.size() - 1;
  for (std::int64_t r = row; r < row + rows; ++r, dst += columns) {
    if (item.is_coordinate) {
      std::vector<std::int64_t>::size_type d = outer;
      std::int64_t index = r;
      if (item.axis == outer) {
        for (std::int64_t i = 0; i < columns; ++i) dst[i] = static_cast<float>(column + i);
        continue;
      }
      while (--d > item.axis) index /= plan.view.dims[d];
      std::fill_n(dst, columns, static_cast<float>(index % plan.view.dims[item.axis]));
    } else {
      const auto& strides = plan.view.strides[item.strides];
      const DType type = plan.input_types[item.input];
      const std::int64_t offset = offset_of(r, plan.view.dims, strides, outer) + column * strides[outer];
      tile_load(type, src + offset * static_cast<std::int64_t>(size_of(type)), strides[outer], dst, columns);
    }
  }
}

void run_tiles(const Plan& plan, const Pointers& pointers, const float* uniforms, float* tiles, std::int64_t begin,
               std::int64_t end) {
  std::array<const float*, kMaxOperands> direct{};
  std::array<std::byte*, kMaxOperands> outputs{};
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t row = plan.whole_rows() ? t * plan.rows_per_tile() : t / plan.tiles_per_row();
    const std::int64_t rows = plan.whole_rows() ? std::min(plan.rows_per_tile(), plan.rows() - row) : 1;
    const std::int64_t column = plan.whole_rows() ? 0 : t % plan.tiles_per_row() * plan.tile();
    const std::int64_t columns = plan.whole_rows() ? plan.row() : std::min(plan.tile(), plan.row() - column);
    const std::int64_t first = row * plan.row() + column;
    for (std::size_t i = 0; i < plan.sources.size(); ++i) {
      if (plan.sources[i] == TileSource::direct) direct[i] = pointers.input<float>(i) + first;
    }
    for (std::size_t k = 0; k < plan.output_types.size(); ++k) {
      outputs[k] = pointers.output<std::byte>(k) + first * static_cast<std::int64_t>(size_of(plan.output_types[k]));
    }
    for (const Gathered& item : plan.gathered) {
      if (item.invariant && t != begin) continue;
      const std::byte* src = item.is_coordinate ? nullptr : pointers.input<std::byte>(item.input);
      gather(plan, item, src, row, rows, column, columns, tiles + item.slot * kTilePitch);
    }
    plan.program.run(uniforms, tiles, direct, outputs, rows * columns);
  }
}

void run(const Plan& plan, const Pointers& pointers) {
  if (plan.elements == 0) return;
  float* uniforms = pointers.workspace<float>();
  for (std::size_t i = 0; i < plan.program.code().size(); ++i) {
    const auto& instruction = plan.program.code()[i];
    const TileValue& value = plan.program.value(static_cast<std::int32_t>(i));
    if (instruction.function != ScalarFunction::input || value.source != TileSource::uniform) continue;
    const auto input = static_cast<std::size_t>(instruction.index);
    tile_load(plan.input_types[input], pointers.input<std::byte>(input), 0, uniforms + value.slot, 1);
  }
  plan.program.run_uniform(uniforms);
  parallel_parts(plan.tiles(), plan.threads, plan.elements >= kParallelElements,
                 [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                   float* tiles = uniforms + plan.uniform_floats() + part * plan.program.tiles() * kTilePitch;
                   run_tiles(plan, pointers, uniforms, tiles, begin, end);
                 });
}

// The strides of `spec` stored as `layout` along the dimensions of `output`; 0 where it is broadcast.
std::vector<std::int64_t> broadcast_strides(const TensorSpec& spec, const Layout& layout, const Shape& output) {
  const std::vector<std::int64_t> own = strides_in(spec, layout);
  std::vector<std::int64_t> strides(output.rank(), 0);
  const std::size_t shift = output.rank() - spec.shape.rank();
  for (std::size_t d = 0; d < own.size(); ++d) {
    if (spec.shape.dims()[d] != 1) strides[d + shift] = own[d];
  }
  return strides;
}

/// How the results are stored.
struct ResultStorage {
  bool is_last = false;       // channels-last
  DType stored = DType::f32;  // of floats
  [[nodiscard]] DType type_of(const TensorSpec& spec) const { return spec.dtype == DType::f32 ? stored : spec.dtype; }
  [[nodiscard]] Layout of(const TensorSpec& spec) const { return with_type(spec, type_of(spec)); }
  /// In the same order.
  [[nodiscard]] Layout with_type(const TensorSpec& spec, DType type) const {
    return is_last ? channels_last(spec, type) : row_major(spec, type);
  }
};

/// Channels-last when at least half of the operands of full shape are; in bf16 when one of these is.
ResultStorage choose_storage(const KernelRequest& request, const TensorSpec& output) {
  int last = 0, others = 0;
  ResultStorage storage;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorSpec& spec = request.inputs[i];
    if (spec.shape != output.shape) continue;
    ++(is_channels_last(spec, request.input_layouts[i]) ? last : others);
    if (stored_type(spec, request.input_layouts[i]) == DType::bf16) storage.stored = DType::bf16;
  }
  storage.is_last = last > 0 && last >= others && channels_last(output);
  return storage;
}

PreparedKernel prepare_pointwise(Backend& backend, const ops::Pointwise& op, const KernelRequest& request) {
  const TensorSpec& output = request.outputs.front();
  CONCORD_CHECK(request.inputs.size() <= kMaxOperands && request.outputs.size() <= kMaxOperands, NotSupported,
                "{}: at most {} operands", op.name(), kMaxOperands);
  const ResultStorage storage = choose_storage(request, output);
  const Layout layout = storage.of(output);
  PreparedKernel prepared;
  StridedView view;
  view.dims.assign(output.shape.dims().begin(), output.shape.dims().end());
  view.strides.push_back(strides_in(output, layout));
  std::vector<TileSource> sources;
  std::vector<DType> input_types;
  std::vector<std::size_t> stride_rows(request.inputs.size(), 0);
  const auto results = op.expression().results();
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorSpec& spec = request.inputs[i];
    const bool full = spec.shape == output.shape;
    const DType stored = stored_type(spec, request.input_layouts[i]);
    Layout wanted = full ? storage.with_type(spec, stored) : request.input_layouts[i];
    if (!full && !is_row_major(wanted) && !is_channels_last(spec, wanted)) wanted = nullptr;
    prepared.input_layouts.push_back(wanted);
    input_types.push_back(stored_type(spec, wanted));
    TileSource source = TileSource::loaded;
    if (spec.shape.elements() == 1) {
      source = TileSource::uniform;
    } else if (full && input_types.back() == DType::f32) {
      source = TileSource::direct;
    }
    // A result that is an operand itself could be overwritten by another output before it is copied.
    for (const std::int32_t result : results) {
      const auto& code = op.expression().code()[static_cast<std::size_t>(result)];
      const bool is_result = code.function == ScalarFunction::input && code.index == static_cast<std::int32_t>(i);
      if (source == TileSource::direct && is_result && results.size() > 1) source = TileSource::loaded;
    }
    sources.push_back(source);
    if (source == TileSource::loaded) {
      stride_rows[i] = view.strides.size();
      view.strides.push_back(broadcast_strides(spec, wanted, output.shape));
    }
  }
  std::vector<std::size_t> order(output.shape.rank());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (storage.is_last) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  view = permute(view, order);
  const bool keep_dims = op.expression().uses_coordinates();
  if (!keep_dims) view = collapse(view);

  std::vector<DType> output_types;
  for (const TensorSpec& spec : request.outputs) {
    output_types.push_back(storage.type_of(spec));
    prepared.output_layouts.push_back(storage.of(spec));
  }
  Plan plan{.program = TileProgram(op.expression(), sources, output_types),
            .view = view,
            .input_types = std::move(input_types),
            .output_types = output_types,
            .sources = sources,
            .gathered = {},
            .elements = output.shape.elements(),
            .threads = backend.threads};
  for (std::size_t i = 0; i < plan.program.code().size(); ++i) {
    const auto& instruction = plan.program.code()[i];
    const TileValue& value = plan.program.value(static_cast<std::int32_t>(i));
    if (value.source != TileSource::loaded) continue;
    Gathered item{.slot = value.slot};
    if (instruction.function == ScalarFunction::coordinate) {
      item.is_coordinate = true;
      const std::size_t logical = output.shape.rank() - 1 - static_cast<std::size_t>(instruction.index);
      item.axis = static_cast<std::size_t>(std::find(order.begin(), order.end(), logical) - order.begin());
      item.invariant = plan.whole_rows() && item.axis == order.size() - 1;
    } else {
      item.input = static_cast<std::size_t>(instruction.index);
      item.strides = stride_rows[item.input];
      const auto& strides = view.strides[item.strides];
      item.invariant =
          plan.whole_rows() && std::all_of(strides.begin(), strides.end() - 1, [](std::int64_t s) { return s == 0; });
    }
    plan.gathered.push_back(item);
  }
  const std::size_t workspace = plan.workspace();
  const std::string name = fmt::format("pointwise {} instructions, {} gathered{}", plan.program.code().size(),
                                       plan.gathered.size(), layout ? ", " + layout->str() : "");
  prepared.kernel = loop_kernel(name, workspace, [plan = std::move(plan)](const Pointers& p) { run(plan, p); });
  return prepared;
}

}  // namespace

void add_pointwise(Kernels& kernels) { kernels.add<ops::Pointwise, prepare_pointwise>(); }

}  // namespace concord::cpu
