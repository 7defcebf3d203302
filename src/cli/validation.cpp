// The options of the validation data.
#include "concord/cli/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::cli {
namespace {

// "SOURCE PART SEED". The sources of --validate, but "held-out" or "part" where --validate split took this; "split" in
// checkpoints that do not say which.
constexpr const char* kValidation = "concord.validation";
constexpr std::string_view kHeldOut = "held-out", kPart = "part";

}  // namespace

void ValidationOptions::add(CLI::App& command) {
  source_option = command
                      .add_option("--validate", source,
                                  "Validate on the validation part of the data, or if it has none on a held-out part "
                                  "of the training set (split), "
                                  "on the test part (test), or not at all (none)")
                      ->capture_default_str()
                      ->check(one_of({"split", "test", "none"}));
  part_option = command.add_option("--validation-split", part, "The part of the training set for validation")
                    ->capture_default_str()
                    ->check(between_0_and_1());
  seed_option = command.add_option("--validation-seed", seed, "Selects the samples for validation")
                    ->capture_default_str()
                    ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
}

void ValidationOptions::follow(const std::string& checkpoint) {
  const auto metadata = io::read_safetensors(checkpoint, [](std::string_view) { return false; }).metadata;
  const auto found = metadata.find(kValidation);
  // As checkpoints that do not say.
  const std::vector<std::string> words = split(found == metadata.end() ? "test" : found->second, ' ');
  ValidationOptions saved;
  if (!words.empty()) saved.source = words[0];
  if (words.size() > 1) saved.part = number_in_text<decltype(saved.part)>(words[1]).value_or(saved.part);
  if (words.size() > 2) saved.seed = number_in_text<decltype(saved.seed)>(words[2]).value_or(saved.seed);
  if (saved.source == kHeldOut) before_ = Before::held_out;
  if (saved.source == kPart) before_ = Before::part;
  if (before_ != Before::unknown) saved.source = "split";
  const auto take = [&](auto& own, const auto& other, const CLI::Option* option, const char* what) {
    if (option->count() == 0) {
      own = other;
    } else if (own != other) {
      say(fmt::format("{}: the training had {} {}; this one has {}", checkpoint, what, other, own));
    }
  };
  take(source, saved.source, source_option, "--validate");
  take(part, saved.part, part_option, "--validation-split");
  take(seed, saved.seed, seed_option, "--validation-seed");
}

void ValidationOptions::check() const {
  for (const CLI::Option* const option : {part_option, seed_option}) {
    CONCORD_CHECK(is_split() || option->count() == 0, ArgumentError,
                  "{} is for --validate split, and this training has --validate {}", option->get_name(), source);
  }
}

void ValidationOptions::note_part(bool was_taken, const std::string& data) {
  CONCORD_CHECK(was_taken || before_ != Before::part || part_option->count() > 0, ArgumentError,
                "{} has no validation part, but the training that goes on had one; a part of its training samples "
                "would not be new to it. Use --validate test or none, or --validation-split to hold out samples anyway",
                data);
  has_part_ = was_taken;
}

std::int64_t ValidationOptions::held_out_of(std::string_view data, std::int64_t samples) const {
  CONCORD_CHECK(samples >= 2, ArgumentError,
                "{}: a part of {} cannot be held out for validation: use --validate test or none", data,
                counted(samples, "sample"));
  const auto wanted = static_cast<std::int64_t>(std::llround(part * static_cast<double>(samples)));
  return std::clamp<std::int64_t>(wanted, 1, samples - 1);
}

std::map<std::string, std::string> ValidationOptions::metadata() const {
  const std::string_view used = !is_split() ? std::string_view(source) : has_part_ ? kPart : kHeldOut;
  return {{kValidation, fmt::format("{} {} {}", used, part, seed)}};
}

}  // namespace concord::cli
