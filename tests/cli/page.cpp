// The page of a comparison in a browser: on a phone and on a desk, light and dark. A browser measures it; what it finds
// wrong is listed.
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/compare/compare.hpp"
#include "concord/core/platform.hpp"

namespace concord::test {
namespace {

constexpr std::array kWidths{380, 1280};

/// The path of a browser, or nothing and a word that the test is skipped.
std::string browser() {
  for (const char* const path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (std::filesystem::exists(path)) return path;
  }
  if (environment("CONCORD_NO_SKIP") == "1")
    FAIL("there is no browser; apt-get install chromium");  // test --portability
  WARN("skipped: there is no browser; apt-get install chromium");
  return {};
}

/// Measures a page in frames of several widths. A text's contrast is that of WCAG 2: of its colour over what lies
/// behind it.
constexpr const char* kFrames = R"html(<body><script>
const widths = [WIDTHS];
const channels = text => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, ground) => {
  const alpha = top.length > 3 ? top[3] : 1;
  return [0, 1, 2].map(i => top[i] * alpha + ground[i] * (1 - alpha));
};
const luminance = color => {
  const [r, g, b] = color.map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const ground = (view, element) => {
  if (!element) return [255, 255, 255];
  const color = channels(view.getComputedStyle(element).backgroundColor);
  const alpha = color.length > 3 ? color[3] : 1;
  return alpha == 1 ? color : over(color, ground(view, element.parentElement));
};
const name = element => (element.tagName + "." + (element.getAttribute("class") || "") + " " +
  element.textContent.slice(0, 30)).replace(/[^\w. -]/g, "_");

function texts(view, page) {
  const found = {texts: 0, least: 99, faint: [], small: []};
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("title, style")) continue;
    if (!element.getClientRects().length) continue;
    const style = view.getComputedStyle(element), behind = ground(view, element);
    const isDrawn = element.closest("svg");
    const ratio = contrast(over(channels(isDrawn ? style.fill : style.color), behind), behind);
    const svg = element.closest("svg"), size = parseFloat(style.fontSize);
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    ++found.texts;
    found.least = Math.min(found.least, ratio);
    if (ratio < 4.5 && found.faint.length < 5) found.faint.push(name(element) + " " + ratio.toFixed(2));
    if (size * scale < 11 && found.small.length < 5) found.small.push(name(element) + " " + (size * scale).toFixed(1));
  }
  return found;
}

function charts(view, page) {
  return [...page.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0).map(svg => {
    const behind = ground(view, svg), box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll(".line, .mark")];
    const shown = marks.filter(mark => {
      const style = view.getComputedStyle(mark), at = mark.getBoundingClientRect();
      const isLine = mark.classList.contains("line");
      const opacity = Number(isLine ? style.strokeOpacity : style.fillOpacity);
      const color = over([...channels(isLine ? style.stroke : style.fill).slice(0, 3), opacity], behind);
      const isInside = at.left >= box.left - 1 && at.right <= box.right + 1 && at.top >= box.top - 1 &&
                       at.bottom <= box.bottom + 1;
      return at.width > 1 && isInside && contrast(color, behind) >= (mark.classList.contains("wideline") ? 1.5 : 3);
    });
    return {marks: marks.length, hidden: marks.length - shown.length, name: svg.getAttribute("aria-label").slice(0, 8)};
  });
}

/// What lies beyond the frame, texts that run out of their boxes among it, and has no scroll bar of its own.
function beyond(page) {
  const range = page.createRange();
  const rightOf = node => { range.selectNode(node); return range.getBoundingClientRect().right; };
  return [...page.body.querySelectorAll("*")].filter(element => {
    const texts = [...element.childNodes].filter(node => node.nodeType == Node.TEXT_NODE).map(rightOf);
    const right = Math.max(element.getBoundingClientRect().right, ...texts);
    return right > page.documentElement.clientWidth + 0.5 && !element.closest(".scroll");
  }).map(name);
}

function measured(frame) {
  const view = frame.contentWindow, page = view.document;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const root = page.documentElement;
  return {width: view.innerWidth, tooWide: root.scrollWidth - root.clientWidth, beyond: beyond(page).slice(0, 5),
          dark: view.matchMedia("(prefers-color-scheme: dark)").matches, charts: charts(view, page),
          texts: texts(view, page), scripts: page.scripts.length,
          loaded: view.performance.getEntriesByType("resource").length};
}

const found = widths.map(() => null), errors = [];
window.onerror = message => { errors.push(String(message).replace(/[^\w. -]/g, "_")); tell(); };
const tell = () => {
  if (errors.length || found.every(part => part)) {
    document.body.dataset.found = JSON.stringify({errors, frames: found});
  }
};
widths.forEach((width, i) => {
  const frame = document.createElement("iframe");
  frame.style = "height:2000px;border:0;width:" + width + "px";
  frame.onload = () => { found[i] = measured(frame); tell(); };
  frame.src = "report.html";
  document.body.append(frame);
});
</script></body>)html";

enum class Scheme { dark, light };  // as the browser counts them

std::string with_widths() {
  std::string text = kFrames;
  const std::string mark = "WIDTHS";
  return text.replace(text.find(mark), mark.size(), fmt::format("{}", fmt::join(kWidths, ", ")));
}

/// What the browser finds of report.html in the folder.
nlohmann::json look(const std::string& program, const TemporaryFolder& folder, Scheme scheme) {
  const std::string frames = (folder / "frames.html").string();
  write_file(frames, with_widths());
  const Ended shown =
      Process(program, {"--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                        "--blink-settings=preferredColorScheme=" + std::to_string(static_cast<int>(scheme)),
                        "--user-data-dir=" + (folder / "profile").string(), "--virtual-time-budget=5000", "--dump-dom",
                        "file://" + frames})
          .finish();
  INFO(shown.err);
  const std::string mark = "data-found=\"";
  const std::size_t begin = shown.out.find(mark);
  REQUIRE(begin != std::string::npos);
  std::string text =
      shown.out.substr(begin + mark.size(), shown.out.find('"', begin + mark.size()) - begin - mark.size());
  for (std::size_t at = 0; (at = text.find("&quot;")) != std::string::npos;) text.replace(at, 6, "\"");
  return nlohmann::json::parse(text);
}

/// In both schemes and all widths: nothing wider than the frame, every chart's marks seen, every text read.
void check_page(const std::string& program, const TemporaryFolder& folder, std::size_t charts) {
  for (const Scheme scheme : {Scheme::dark, Scheme::light}) {
    const auto found = look(program, folder, scheme);
    INFO(found.dump(1));
    REQUIRE(found.at("errors").empty());
    REQUIRE(found.at("frames").size() == kWidths.size());
    for (std::size_t i = 0; i < kWidths.size(); ++i) {
      const auto& frame = found.at("frames")[i];
      CHECK(frame.at("dark") == (scheme == Scheme::dark));
      CHECK(frame.at("width") == kWidths[i]);
      CHECK(frame.at("tooWide") <= 0);
      CHECK(frame.at("beyond").empty());
      CHECK(frame.at("scripts") == 0);
      CHECK(frame.at("loaded") == 0);
      CHECK(frame.at("charts").size() == charts);  // each in one size
      for (const auto& chart : frame.at("charts")) {
        CHECK(chart.at("marks") > 0);
        CHECK(chart.at("hidden") == 0);
      }
      const auto& texts = frame.at("texts");
      CHECK(texts.at("texts") > 100);
      CHECK(texts.at("least") >= 4.5);
      CHECK(texts.at("faint").empty());
      CHECK(texts.at("small").empty());
    }
  }
}

Deviation deviation(int i, double share) {
  Deviation d;
  d.node = fmt::format("stage{}/block/convolution_with_a_long_name", i);
  d.op = fmt::format("conv2d_{}+batch_norm+relu", i);
  d.kernel = "gemm 64x64";
  d.value = d.node;
  d.shapes = "f32 [64, 256, 56, 56], f32 [64, 256, 3, 3] -> f32 [64, 256, 56, 56]";
  d.tolerance = 1e-4;
  d.error = share * d.tolerance;
  d.largest_relative = share / 256;
  d.largest_ulps = share * 65536;
  if (share > 0) d.worst_element = {63, 255, 55, 55};
  return d;
}

/// Nine devices, more than there are colours, every shade of the table of errors, one device wrong, one without losses
/// that are finite.
Comparison everything() {
  Comparison result{"a network", {.steps = 20, .batch = 64, .seed = 7, .drift = true, .speed = true}, {}};
  for (int i = 0; i < 9; ++i) {
    DeviceRun run;
    run.device.id = fmt::format("opencl:{}", i);
    run.device.name = "NVIDIA H200 with a name that goes on and on";
    run.device.platform = "Portable_Computing_Language_in_one_word_without_a_space_in_it";
    run.device.memory = 150'000'000'000;
    for (int step = 1; step <= 20; ++step) {
      run.losses.push_back(2.5F / static_cast<float>(step) + 0.01F * static_cast<float>(i));
      run.weight_distances.push_back({step, 1e-7 * step * (i + 1)});
    }
    run.median_ms = run.min_ms = run.max_ms = 12345.678;
    run.checked_values = 17;
    for (const double share : {0.0, 0.05, 0.3, 0.9, 40.0}) {
      run.operators.push_back(deviation(static_cast<int>(run.operators.size()), i == 0 ? 0 : share));
    }
    const double rate = 4e9 * (i + 1);
    run.times = {{"conv2d+relu", "gemm 64x64", "", "", 2, 4e6 / rate, {4e6, 1e6}, 1e-3},
                 {"copy", "copy", "", "", 1, 1e-3, {0, 1e6}, 1e-4}};
    run.speed = DeviceSpeed{.bytes_per_second = 1e10 * (i + 1), .flops_per_second = 4 * rate, .launch_seconds = 5e-6};
    result.runs.push_back(std::move(run));
  }
  result.runs[3].first_deviation = result.runs[3].operators.back();
  result.runs[4].losses.back() = NAN;
  std::vector<float> but_the_last = result.runs[0].losses;  // one point that differs: not a line
  but_the_last.back() += 0.01F;
  result.perturbed = {{result.runs[1].losses, 1e-7, result.runs[0].weight_distances},
                      {but_the_last, 1e-7, result.runs[0].weight_distances}};
  result.check_cost = {{0.010, 0.010}, {0.011}, 1.5};
  return result;
}

}  // namespace

TEST_CASE("the page of a small residual network is read on a phone and a desk, light and dark", "[browser]") {
  const std::string program = browser();
  if (program.empty() || !command_is_there()) return;
  const TemporaryFolder folder;
  const Ended ended = run_command({"compare", "resnet20:depth=1,width=4", "--devices",
                                   cheap_device() + "," + devices().back()->info().id, "--batch", "2", "--steps", "3",
                                   "--seconds", "0.01", "--html", (folder / "report.html").string()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  check_page(program, folder, 4);  // loss, two of drift, roofline
}

TEST_CASE("the page of many devices, some of them wrong, is read on a phone and a desk, light and dark", "[browser]") {
  const std::string program = browser();
  if (program.empty()) return;
  const TemporaryFolder folder;
  write_file(folder / "report.html", everything().html());
  check_page(program, folder, 4);
}

TEST_CASE("the page of a search is read on a phone and a desk, light and dark", "[browser][search]") {
  const std::string program = browser();
  if (program.empty() || !command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "<i>data<i>", 100, 10);
  const Ended ended =
      run_command({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--trials", "20", "--space",
                   "lr=log(1e-4,1) batch={10,20} depth=[1,3] momentum=[0,0.95] weight-decay=log(1e-6,1e-2) "
                   "optimizer={sgd,adam}",
                   "--scheduler", "asha", "--epochs", "3", "--out", folder.path().string()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK_THAT(ended.out, contains("failed"));  // adam has no momentum
  CHECK_THAT(content_of(folder / "search.html"), contains("&lt;i&gt;data&lt;i&gt;"));
  std::filesystem::rename(folder / "search.html", folder / "report.html");
  check_page(program, folder, 2);  // settings and curves
}

}  // namespace concord::test
