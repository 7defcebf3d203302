// A report for programs.
#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/cli/data/check_report.hpp"

namespace concord::cli {
namespace {

nlohmann::json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

nlohmann::json size_json(const CheckedImages::Size& size) {
  return {{"width", size.width}, {"height", size.height}, {"name", size.name}};
}

nlohmann::json images_json(const CheckedImages& images) {
  nlohmann::json json{{"formats", images.formats},
                      {"special", images.special},
                      {"shorter_sides", nlohmann::json::array()},
                      {"mean", images.mean},
                      {"deviation", images.deviation}};
  if (images.shorter_sides.empty()) return json;
  json["smallest"] = size_json(images.smallest);
  json["largest"] = size_json(images.largest);
  json["median"] = {{"width", images.median_width}, {"height", images.median_height}};
  json["options"] = normalisation_options(images);
  for (const CheckedImages::Bin& bin : images.shorter_sides) {
    json["shorter_sides"].push_back({{"first", bin.first}, {"last", bin.last}, {"images", bin.count}});
  }
  return json;
}

}  // namespace

std::string check_json(const CheckReport& report) {
  nlohmann::json json{
      {"spec", report.spec},           {"samples", report.samples()},           {"parts", nlohmann::json::array()},
      {"classes", report.class_names}, {"imbalance", report.imbalance()},       {"bad", nlohmann::json::array()},
      {"leaks", report.leaks()},       {"duplicates", nlohmann::json::array()}, {"warnings", report.warnings}};
  for (const CheckedPart& part : report.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"source", part.source},
                             {"samples", part.samples},
                             {"bad", part.bad},
                             {"bytes", part.bytes},
                             {"class_counts", part.class_counts}});
  }
  if (report.images) json["images"] = images_json(*report.images);
  if (report.masks) {
    json["masks"] = {{"classes", report.masks->classes},
                     {"pixels", report.masks->pixels},
                     {"pixels_without_class", report.masks->no_class}};
  }
  for (const CheckedColumn& column : report.columns) {
    json["columns"].push_back({{"name", column.name},
                               {"part", column.part},
                               {"role", column.role},
                               {"type", column.type},
                               {"values", column.values},
                               {"missing", column.missing},
                               {"least", number_or_null(column.least)},
                               {"largest", number_or_null(column.largest)},
                               {"mean", number_or_null(column.mean)},
                               {"deviation", number_or_null(column.deviation)}});
  }
  for (const BadSample& bad : report.bad) {
    json["bad"].push_back({{"part", bad.part}, {"name", bad.name}, {"reason", bad.reason}});
  }
  for (const DuplicateGroup& group : report.duplicates) {
    nlohmann::json members = nlohmann::json::array();
    for (const DuplicateGroup::Member& member : group.members) {
      members.push_back({{"part", report.parts[member.part].name},
                         {"row", member.row},
                         {"name", member.name},
                         {"label", member.label}});
    }
    json["duplicates"].push_back({{"samples", std::move(members)},
                                  {"across_parts", group.is_across_parts},
                                  {"different_labels", group.has_other_labels},
                                  {"equal_bytes", group.has_equal_bytes}});
  }
  return json_text(json);
}

}  // namespace concord::cli
