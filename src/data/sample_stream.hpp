// SampleStream: a source that can only be read from its beginning to its end, whose size nobody knows: a socket, a
// compressed file, a generator. StreamedSamples makes Samples of it, shuffled by a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/samples.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

struct SampleStreamState;

/// Only one thread at a time calls these functions.
class SampleStream {
 public:
  std::string name;                      // for messages and reports
  std::vector<std::string> class_names;  // as Samples::class_names

  virtual ~SampleStream() = default;

  /// The columns of a sample, as in Samples.
  [[nodiscard]] virtual std::vector<ColumnSpec> feature_specs() const = 0;
  [[nodiscard]] virtual std::vector<ColumnSpec> label_specs() const = 0;
  /// Goes to the first sample of a pass through the source. Passes count from 0. The same pass must give the same
  /// samples again, or trainings cannot be repeated or continued; different passes may differ.
  virtual void start(std::int64_t pass) = 0;
  /// Writes the next sample: `columns` has the memory of its features, in order, then of its labels. Returns false at
  /// the end of the pass. An error that it throws ends the training; a damaged sample is better left out.
  virtual bool next(std::span<const std::span<std::byte>> columns) = 0;

 protected:
  SampleStream() = default;
  SampleStream(const SampleStream&) = default;
  SampleStream(SampleStream&&) = default;
  SampleStream& operator=(const SampleStream&) = default;
  SampleStream& operator=(SampleStream&&) = default;
};

struct StreamOptions {
  std::int64_t epoch = 0;      // samples in an epoch: batch · steps. It need not be a pass through the source
  std::int64_t buffer = 1000;  // samples in memory, of which a random one comes next; 1: the order of the source
};

/// The samples of a stream, pass after pass. An epoch goes on where the one before it ended. A buffer shuffles them:
/// the order depends on the source, the seed of the training and the size of the buffer, not on threads.
///
/// A training that is resumed reads the source again from its beginning, without using the samples. The trainer does
/// not shuffle further. Orders by class, a padded last batch, selections and FitOptions::nan_trace need samples in any
/// order, or twice: they throw ArgumentError.
class StreamedSamples final : public Samples {
 public:
  /// Throws ArgumentError without a stream, for an epoch outside 1 … 2^31 − 1, and for a buffer below 1.
  StreamedSamples(std::shared_ptr<SampleStream> stream, StreamOptions options);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override;
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override;
  /// Throws Error for whatever the stream throws, and if a pass has no sample.
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns, const SampleRandom& random) const override;
  [[nodiscard]] bool is_sequential() const override { return true; }
  void start(const SampleRandom& first, std::span<const std::int32_t> rows) const override;

 private:
  std::shared_ptr<SampleStreamState> state_;
};

}  // namespace data
}  // namespace concord
