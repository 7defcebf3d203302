// The JSON of denylists.
#include "concord/device/denylist.hpp"

#include <cctype>
#include <span>
#include <system_error>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/private_files.hpp"
#include "concord/core/text.hpp"
#include "concord/core/version.hpp"

namespace concord {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "concord-quirks";
constexpr int kFileVersion = 1;

/// "pthread-skylake_3.1+debian.json"
std::string file_name(const DenylistOrigin& origin) {
  std::string name = origin.device + "_" + origin.driver;
  for (char& c : name) {
    const bool is_plain = is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '+';
    if (!is_plain) c = '_';
  }
  return name + ".json";
}

Denylist parsed(const std::string& text, const DenylistOrigin& origin) {
  return read_json(text, "the file", [&](const Json& json) {
    const JsonFields fields(json, "the file");
    CONCORD_CHECK(fields.at("format") == kFormat && fields.at("version") == kFileVersion, FormatError,
                  "it is not a denylist of this library");
    const auto device = fields.get<std::string>("device"), driver = fields.get<std::string>("driver");
    CONCORD_CHECK(device == origin.device && driver == origin.driver, FormatError,
                  "it belongs to the device \"{}\" with the driver {}", device, driver);
    return fields.get<Denylist>("quirks");
  });
}

void warn(const std::filesystem::path& file, std::string_view why) {
  log(LogLevel::warning, fmt::format("{} is ignored: {}; `concord doctor` writes it again", file.string(), why));
}

}  // namespace

std::filesystem::path denylist_file(const DenylistOrigin& origin) {
  const std::filesystem::path folder = private_cache_directory("quirks");
  return folder.empty() ? folder : folder / file_name(origin);
}

Denylist read_denylist(const DenylistOrigin& origin) {
  const std::filesystem::path file = denylist_file(origin);
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_regular_file(file, ignored)) return {};
  try {
    const std::optional<std::string> text = read_private_file(file);
    return text ? parsed(*text, origin) : Denylist{};
  } catch (const std::exception& error) {
    warn(file, error.what());
  }
  return {};
}

void write_denylist(const DenylistOrigin& origin, const Denylist& denylist) {
  const std::filesystem::path file = denylist_file(origin);
  CONCORD_CHECK(!file.empty(), IoError, "there is no folder for denylists: set CONCORD_CACHE_DIR");
  std::error_code error;
  if (denylist.empty()) {
    std::filesystem::remove(file, error);
    CONCORD_CHECK(!error, IoError, "cannot remove {}: {}", file.string(), error.message());
    return;
  }
  create_private_directories(file.parent_path());
  const Json json{{"format", kFormat},       {"version", kFileVersion}, {"library", kVersion},
                  {"device", origin.device}, {"driver", origin.driver}, {"quirks", denylist}};
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomically(file, std::as_bytes(std::span(text)), Durability::durable, Readers::owner);
}

}  // namespace concord
