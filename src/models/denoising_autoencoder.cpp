// A denoising autoencoder with one hidden layer (Vincent et al., "Extracting and Composing Robust Features with
// Denoising Autoencoders", 2008) for images with values in [0, 1]: in training a part of the values is set to 0, and
// the whole image is to come out.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr float kCorrupted = 0.25F;  // of the values
constexpr std::int64_t kPixels = 784, kHidden = 500;

struct DenoisingAutoencoder : nn::Module {
  nn::Linear encoder{kPixels, kHidden}, decoder{kHidden, kPixels};
  float corrupted;
  explicit DenoisingAutoencoder(float part) : corrupted(part) {}
  Value forward(Value x) override {
    const Value image = flatten(x);
    const nn::OwnRandomNumbers own(image);
    const bool corrupt = image.graph().training() && corrupted > 0;
    // Dropout scales what it keeps; the paper's masking noise does not.
    const Value seen = corrupt ? dropout(image, corrupted) * (1 - corrupted) : image;
    return reshape(sigmoid(decoder(sigmoid(encoder(seen)))), x.shape());
  }
  Children children() override { return {{"encoder", &encoder}, {"decoder", &decoder}}; }
};

}  // namespace

Model denoising_autoencoder() {
  return {"denoising_autoencoder",
          "autoencoder 784-500-784 of masked images",
          Shape{1, 28, 28},
          0,
          785284,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<DenoisingAutoencoder>(variant.rate(kCorrupted));
          },
          Shape{1, 28, 28},
          Task::reconstruction};
}

}  // namespace concord::models
