// The options of data.
#include "concord/cli/data_options.hpp"

#include "concord/cli/bytes.hpp"
#include "concord/cli/validator.hpp"
#include "concord/data/image/transform.hpp"

namespace concord::cli {

void DataOptions::add(CLI::App& command, CLI::Option* data) {
  data->check(data_name());
  command
      .add_option("--image", image,
                  "Height and width of images as the network sees them [those of the network, or of its training]")
      ->check(whole(1, data::kLongestSide));
  command
      .add_option("--resize", resize,
                  "The shorter side of an image before its centre is cut out [--image * 256/224; below 96 --image]")
      ->check(whole(1, data::kLongestSide));
  mean_option = command
                    .add_option("--mean", mean,
                                "Mean of the channels of images, from 0 to 1: 0.485,0.456,0.406 [those numbers of "
                                "ImageNet for colour; grey images stay as they are]")
                    ->delimiter(',')
                    ->allow_extra_args(false)
                    ->check(from_0_to_1());
  command.add_option("--deviation", deviation, "Standard deviation of the channels: 0.229,0.224,0.225")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(positive())
      ->needs(mean_option);
  mean_option->needs("--deviation");
}

void DataOptions::add_cache(CLI::App& command) {
  CLI::Option* const bytes =
      command
          .add_option("--cache", cache,
                      "Keep decoded images while this suffices, instead of decoding them in each epoch: 8GiB")
          ->check(number_of_bytes());
  command.add_option("--cache-dir", cache_directory, "Keep them in a file in this folder instead of in memory")
      ->check(file_name())
      ->needs(bytes);
}

}  // namespace concord::cli
