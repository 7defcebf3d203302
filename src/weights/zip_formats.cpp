// Which format a zip archive is.
#include "concord/weights/zip_formats.hpp"

#include "concord/core/check.hpp"

namespace concord::weights {

std::unique_ptr<Reader> open_zip(const std::filesystem::path& path) {
  auto archive = std::make_unique<io::ZipArchive>(path, "file of PyTorch or Keras");
  if (auto reader = open_torch_zip(archive)) return reader;
  if (auto reader = open_keras_zip(archive)) return reader;
  throw FormatError(
      fmt::format("{}, byte 0: a zip archive that is neither a PyTorch file (NAME/data.pkl) nor a Keras file "
                  "(config.json and model.weights.h5)",
                  path.string()));
}

}  // namespace concord::weights
