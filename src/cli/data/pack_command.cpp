// concord data pack: writes the images of a data set as shards, a database or a folder.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data/data_command.hpp"
#include "concord/cli/data/pack_output.hpp"
#include "concord/cli/data/rows.hpp"
#include "concord/cli/data/stored_parts.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/shell_word.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/transform.hpp"

namespace concord::cli {
namespace {

constexpr std::int64_t kNamedBad = 10;

struct PackArguments {
  std::string spec, out, part = "train", bad = "fail", shard_size;
  PackHow how;
  ShardLimits limits;
  std::uint64_t shuffle_seed = 0;
  bool is_png = false, is_raw = false, is_shuffled = false, is_forced = false, quiet = false;
  ReaderThreads threads;
};

StoredPart part_to_pack(const PackArguments& options) {
  const DataSpec spec = DataSpec::parse(options.spec);
  std::optional<StoredPart> part = open_part(spec, options.part);
  CONCORD_CHECK(part, ArgumentError, "{} has no {} part", options.spec, options.part);
  CONCORD_CHECK(part->images != nullptr, ArgumentError,
                "images can be packed, of u8 and 1 or 3 channels with a label for each; {} has others", options.spec);
  return std::move(*part);
}

std::vector<std::int32_t> order_of(std::int64_t size, const PackArguments& options) {
  if (options.is_shuffled) return data::permutation(size, options.shuffle_seed);
  std::vector<std::int32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

struct Packed {
  std::int64_t samples = 0, copies = 0, bad = 0;
  std::uint64_t bytes = 0;
};

Packed pack_all(const data::Records& records, const PackArguments& options, PackOutput& output) {
  const std::vector<std::int32_t> order = order_of(records.size(), options);
  const int threads = options.threads.get();
  const auto digits = std::max<std::size_t>(6, fmt::format("{}", order.size() - 1).size());
  std::vector<ImageMemory> memories(static_cast<std::size_t>(threads));
  Packed packed;
  RowProgress progress("packed", records.size(), options.quiet);
  in_order<PackedSample>(
      records.size(), threads,
      [&](std::int64_t i, std::size_t thread) {
        return pack_sample(records, order[static_cast<std::size_t>(i)], options.how, memories[thread]);
      },
      [&](std::int64_t i, PackedSample sample) {
        if (stop_requested()) throw StoppedByUser();
        progress.add();
        if (!sample.error.empty()) {
          CONCORD_CHECK(options.bad == "skip", FormatError,
                        "{}; `concord data check` lists all bad samples, and --bad skip leaves them out", sample.error);
          if (packed.bad++ < kNamedBad) log(LogLevel::warning, sample.error + "; it is left out");
          return;
        }
        output.add(fmt::format("{:0{}}", packed.samples, digits), order[static_cast<std::size_t>(i)], sample);
        ++packed.samples;
        packed.copies += sample.is_copy ? 1 : 0;
        packed.bytes += sample.bytes.size();
      });
  if (packed.bad > kNamedBad) log(LogLevel::warning, fmt::format("{} samples are left out", packed.bad));
  CONCORD_CHECK(packed.samples > 0, FormatError, "none of the samples can be read; nothing was written");
  return packed;
}

void run_pack(PackArguments options) {
  const PackKind kind = pack_kind_of(options.out);
  CONCORD_CHECK(kind == PackKind::shards || !options.limits.are_given, ArgumentError,
                "--shard-size and --shard-samples are for shards, such as x-%06d.tar");
  if (!options.shard_size.empty()) options.limits.bytes = parse_bytes(options.shard_size);
  using Raw = PackHow::Raw;
  options.how.raw = kind == PackKind::lmdb ? Raw::datum : kind == PackKind::shards ? Raw::array : Raw::pnm;
  catch_signals();
  const auto begin = std::chrono::steady_clock::now();
  const StoredPart part = part_to_pack(options);
  const PackLabels labels(*part.images);
  const auto output = pack_output(options.out, labels, part.images->has_mask(), options.limits, options.is_forced);
  Packed packed;
  try {
    packed = pack_all(*part.images, options, *output);
  } catch (const StoppedByUser&) {
    return say("concord: stopped; nothing was written");
  }
  output->finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << fmt::format("{} ({}) in {}, {} of them copied as they were, in {:.1f} s\n",
                           counted(packed.samples, "sample"), human_bytes(packed.bytes), output->what(), packed.copies,
                           seconds);
  if (packed.bad > 0) std::cout << fmt::format("left out: {}\n", counted(packed.bad, "bad sample"));
  for (const std::string& other : other_parts(DataSpec::parse(options.spec), options.part)) {
    std::cout << fmt::format("The {0} part is not packed: --part {0} packs it\n", other);
  }
  const data::Records& records = *part.images;
  const bool has_classes = records.has_mask() && records.mask_classes > 0;
  const std::string classes = has_classes ? fmt::format(",classes={}", records.mask_classes) : "";
  std::cout << fmt::format("--data {}\n", shell_word(output->spec() + classes));
}

}  // namespace

PackKind pack_kind_of(const std::string& out) {
  std::string_view name = out;
  CONCORD_CHECK(
      !name.starts_with("tar:") && !name.starts_with("lmdb:") && !name.starts_with("folder:"), ArgumentError,
      "\"{}\" is a set to read, not the name of what to write: give one set, and then the name. A shell makes "
      "several words of a pattern with braces; put it in quotes: 'tar:x-{{000..001}}.tar'",
      printable(out));
  const bool is_folder = name.ends_with('/');
  while (name.ends_with('/')) name.remove_suffix(1);
  if (name.ends_with(".lmdb")) return PackKind::lmdb;
  if (is_folder && !name.empty()) return PackKind::folder;
  CONCORD_CHECK(
      !is_folder && name.ends_with(".tar"), ArgumentError,
      "\"{}\" does not say what to write: shards are named like x-%06d.tar, a database x.lmdb, and a folder x/",
      printable(out));
  return PackKind::shards;
}

std::unique_ptr<PackOutput> pack_output(const std::string& out, const PackLabels& labels, bool has_masks,
                                        const ShardLimits& limits, bool is_forced) {
  const PackKind kind = pack_kind_of(out);
  CONCORD_CHECK(!has_masks || kind == PackKind::shards, ArgumentError,
                "masks are packed into shards alone, such as x-%06d.tar");
  if (kind == PackKind::shards) return pack_into_shards(out, labels, limits, is_forced);
  return kind == PackKind::lmdb ? pack_into_lmdb(out, labels, is_forced) : pack_into_folder(out, labels, is_forced);
}

void add_data_pack(CLI::App& data) {
  CLI::App* command = data.add_subcommand("pack", "Write the images of a data set as shards, a database or a folder");
  const auto options = std::make_shared<PackArguments>();
  add_spec(*command, options->spec);
  command
      ->add_option("out", options->out,
                   "x-%06d.tar: numbered shards, or x.tar: one; x.lmdb: a database of Caffe's Datum; x/: a folder of "
                   "images by class, with list.txt in the order of the set")
      ->required()
      ->check(file_name());
  command->add_option("--part", options->part, "The part of the set")
      ->capture_default_str()
      ->check(one_of({"train", "validation", "test"}));
  command
      ->add_option("--side", options->how.side,
                   "Resize images whose shorter side is longer than this; none is enlarged")
      ->check(whole(1, static_cast<std::uint64_t>(data::kLongestSide)));
  CLI::Option* quality =
      command
          ->add_option(
              "--quality", options->how.quality,
              "Write JPEG of this quality, 1 to 100. Without it files, and pixels in shards and databases, stay "
              "as they are; of files that are resized, JPEG stays JPEG, of quality 90, and the rest becomes "
              "PNG")
          ->check(whole(1, 100));
  CLI::Option* png = command->add_flag("--png", options->is_png, "Write PNG")->excludes(quality);
  command
      ->add_flag("--raw", options->is_raw,
                 "Write pixels: arrays in shards, Datum in a database, PPM and PGM in a folder")
      ->excludes(quality)
      ->excludes(png);
  CLI::Option* size =
      command->add_option("--shard-size", options->shard_size, "Most bytes of a shard [256MiB]")->check(not_empty());
  CLI::Option* count_option =
      command->add_option("--shard-samples", options->limits.samples, "Or: samples of a shard")->check(count());
  count_option->excludes(size);
  CLI::Option* shuffle = command->add_option("--shuffle", options->shuffle_seed, "Shuffle the samples with this seed")
                             ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
  command->add_option("--bad", options->bad, "Samples that cannot be read: fail ends the command, skip leaves them out")
      ->capture_default_str()
      ->check(one_of({"fail", "skip"}));
  command->add_flag("--verify,!--no-verify", options->how.is_verified,
                    "Decode files that are copied unchanged, so that no damage is copied (default)");
  command->add_flag("--force", options->is_forced, "Write over what is there");
  options->threads.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->callback([=] {
    if (quality->count() > 0) options->how.format = PackFormat::jpeg;
    if (options->is_png) options->how.format = PackFormat::png;
    if (options->is_raw) options->how.format = PackFormat::raw;
    options->limits.are_given = size->count() + count_option->count() > 0;
    options->is_shuffled = shuffle->count() > 0;
    run_pack(*options);
  });
}

}  // namespace concord::cli
