// The program of docs/guide/adding-a-backend.md: a complete backend for one operator family.
#include <cstring>

#include "concord/device/kernel_table.hpp"
#include "guide_test.hpp"

namespace concord {
namespace {

// [memory]
/// Memory of the device. This device computes in host memory.
class PlainBuffer final : public Buffer {
 public:
  explicit PlainBuffer(std::size_t bytes) : Buffer(bytes), bytes_(bytes) {}
  [[nodiscard]] std::byte* at(std::size_t offset) { return bytes_.data() + offset; }
  [[nodiscard]] const std::byte* at(std::size_t offset) const { return bytes_.data() + offset; }

 private:
  std::vector<std::byte> bytes_;
};

std::byte* address(const Operand& operand) { return static_cast<PlainBuffer&>(*operand.buffer).at(operand.offset); }
// [end]

// [kernel]
/// Applies a formula to each element of its operands, which broadcast to the shape of the output.
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(Expression expression, const KernelRequest& request)
      : expression_(std::move(expression)), inputs_(request.inputs), outputs_(request.outputs) {}

  [[nodiscard]] std::string name() const override { return "pointwise, element by element"; }

  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand /*workspace*/) const override {
    return std::make_unique<Bound>(*this, std::vector(inputs.begin(), inputs.end()),
                                   std::vector(outputs.begin(), outputs.end()));
  }

 private:
  /// The kernel with its operands. `enqueue` allocates nothing.
  class Bound final : public Launch {
   public:
    Bound(const PointwiseKernel& kernel, std::vector<Operand> inputs, std::vector<Operand> outputs)
        : kernel_(kernel), inputs_(std::move(inputs)), outputs_(std::move(outputs)), arguments_(inputs_.size()) {}

    void enqueue() override {
      const Shape& shape = kernel_.outputs_[0].shape;
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
          const std::int64_t from = place(i, shape, kernel_.inputs_[k].shape);
          std::memcpy(&arguments_[k], address(inputs_[k]) + 4 * from, 4);
        }
        for (std::size_t k = 0; k < outputs_.size(); ++k) {
          const float result = kernel_.expression_.evaluate(k, arguments_);
          std::memcpy(address(outputs_[k]) + 4 * i, &result, 4);
        }
      }
      for (const Operand& output : outputs_) output.buffer->touch();
    }

   private:
    /// The index of the value for element `i` of the output in an operand of another shape.
    static std::int64_t place(std::int64_t i, const Shape& output, const Shape& operand) {
      std::int64_t from = 0, stride = 1;
      for (std::int64_t axis = -1; axis >= -static_cast<std::int64_t>(output.rank()); --axis) {
        const std::int64_t index = i % output[axis];
        i /= output[axis];
        if (-axis > static_cast<std::int64_t>(operand.rank())) continue;
        if (operand[axis] > 1) from += index * stride;
        stride *= operand[axis];
      }
      return from;
    }

    const PointwiseKernel& kernel_;
    std::vector<Operand> inputs_, outputs_;
    std::vector<float> arguments_;
  };

  Expression expression_;
  std::vector<TensorSpec> inputs_, outputs_;
};
// [end]

// [table]
struct PlainBackend {};  // for prepare functions, in addition to the request: settings, caches

PreparedKernel prepare_pointwise(PlainBackend&, const ops::Pointwise& op, const KernelRequest& request) {
  const auto is_f32 = [](const TensorSpec& spec) { return spec.dtype == DType::f32; };
  if (!std::ranges::all_of(request.inputs, is_f32) || !std::ranges::all_of(request.outputs, is_f32) ||
      op.expression().uses_coordinates()) {
    throw NotSupported("the plain backend has pointwise formulas of f32 alone");
  }
  return {.kernel = std::make_unique<PointwiseKernel>(op.expression(), request),
          .input_layouts = std::vector<Layout>(request.inputs.size()),  // null: row-major
          .output_layouts = std::vector<Layout>(request.outputs.size())};
}

const KernelTable<PlainBackend>& kernel_table() {
  static const KernelTable<PlainBackend> table = [] {
    KernelTable<PlainBackend> filled;
    filled.add<ops::Pointwise, prepare_pointwise>();
    return filled;
  }();
  return table;
}
// [end]

// [device]
/// All work is done when a call returns, so an event never has to wait.
class Done final : public Event {
 public:
  void wait() override {}
};

class PlainStaging final : public Staging {
 public:
  explicit PlainStaging(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class PlainDevice final : public Device {
 public:
  PlainDevice() {
    info_.id = "plain";
    info_.backend = "plain";
    info_.name = "the host, element by element";
    info_.memory = info_.max_allocation = std::uint64_t{1} << 30;
    info_.compute_units = 1;
    info_.precisions = {"fp32"};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override {
    allocated_ += bytes;
    return {new PlainBuffer(bytes), [this](Buffer* buffer) {
              allocated_ -= buffer->bytes();
              delete buffer;
            }};
  }
  [[nodiscard]] std::size_t allocated() const override { return allocated_; }
  [[nodiscard]] std::size_t peak_allocated() const override { return allocated_; }
  [[nodiscard]] StagingPtr allocate_staging(std::size_t bytes) override {
    return std::make_shared<PlainStaging>(bytes);
  }

  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, plain(dst).at(offset));
    dst.touch();
  }
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    std::copy_n(plain(src).at(offset), bytes.size(), bytes.data());
  }
  void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
            std::size_t bytes) override {
    std::memmove(plain(dst).at(dst_offset), plain(src).at(src_offset), bytes);
    dst.touch();
  }
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override {
    for (std::size_t i = 0; i < bytes; i += 4) std::memcpy(plain(dst).at(offset + i), &pattern, 4);
    dst.touch();
  }
  [[nodiscard]] EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                     const EventPtr& /*after*/) override {
    write(dst, offset, staging->bytes().first(bytes));
    return record();
  }
  [[nodiscard]] EventPtr record() override { return std::make_shared<Done>(); }
  void wait_for(const EventPtr& /*event*/) override {}

  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    return kernel_table().prepare(backend_, request);
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec&, const Layout&, const Layout&) override {
    throw NotSupported("the plain backend knows row-major tensors alone");
  }
  [[nodiscard]] bool supports_epilogue(const Operator&, std::span<const TensorSpec>, const TensorSpec&,
                                       const Expression&, std::span<const TensorSpec>, Precision) const override {
    return false;
  }

  void finish() override {}
  [[nodiscard]] double timed(Launch& launch) override {
    const timeline::Time begin = timeline::now();
    launch.enqueue();
    return 1e-9 * static_cast<double>(timeline::now() - begin);
  }
  void enqueue_recorded(Launch& launch, timeline::Label label) override {
    const timeline::Span span(label, track_);
    launch.enqueue();
  }

 private:
  static PlainBuffer& plain(Buffer& buffer) { return static_cast<PlainBuffer&>(buffer); }
  static const PlainBuffer& plain(const Buffer& buffer) { return static_cast<const PlainBuffer&>(buffer); }

  DeviceInfo info_;
  PlainBackend backend_;
  std::size_t allocated_ = 0;
  timeline::Track track_{"plain kernels"};
};
// [end]

TEST_CASE("guide: a backend runs what it has kernels for", "[docs]") {
  // [run]
  const auto variables = std::make_shared<Variables>(std::make_shared<PlainDevice>(), 1);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 3}});
  const Value y = relu(x * 2.0F - 1.0F);
  Program program = compile(graph, y, variables);
  program.write("x", Tensor::of(Shape{2, 3}, std::vector<float>{-1, 0, 1, 2, 3, 4}));
  program.run();
  const Tensor result = program.read(y);  // 0 0 1 3 5 7
  // [end]
  const auto got = result.values<float>();
  CHECK(std::vector<float>(got.begin(), got.end()) == std::vector<float>{0, 0, 1, 3, 5, 7});
  CHECK(program.run_traced().size() == 1);

  Graph other;
  const Value z = softmax(other.input("x", {DType::f32, Shape{2, 3}}), 1);
  CHECK_THROWS_AS(compile(other, z, variables), NotSupported);
}

}  // namespace
}  // namespace concord
