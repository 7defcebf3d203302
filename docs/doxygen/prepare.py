#!/usr/bin/env python3
"""Puts what Doxygen reads into a folder: the public headers with comments that it understands, the pages with links
that lead from page to page, and the header of the site. Any link to what is not there is an error.

  prepare.py SOURCE FOLDER         used by scripts/docs
"""
import html
import re
import shutil
import sys
from pathlib import Path

ROOT, OUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
GUIDES = ["first-network", "your-own-data", "image-data", "table-data", "your-own-source", "several-inputs",
          "your-own-layer-loss-optimizer", "saving-resuming-deploying", "weights", "onnx", "several-devices",
          "model-parallel", "several-machines", "cluster", "search", "comparing-devices", "mixed-precision", "memory",
          "reading-a-profile", "command-line", "adding-an-operator", "adding-a-backend", "onnx-export"]
FIRST_PAGES = ["install", "troubleshooting", "glossary", "models", "performance"]
REFERENCE = [("annotated.html", "Classes"), ("namespaces.html", "Namespaces"), ("files.html", "Headers")]

errors: list[str] = []


# --- headers

def public_headers() -> list[Path]:
    """Those that export what they declare, and two of macros, as in cmake/ConcordHeaders.cmake."""
    macros = [ROOT / "src/core/export.hpp", ROOT / "src/graph/scalar_function_list.hpp"]
    return sorted(header for header in (ROOT / "src").rglob("*.hpp") if header in macros
                  or re.search(r"^namespace CONCORD_PUBLIC concord \{", header.read_text(), re.M))


COMMANDS = "param|tparam|returns?|throws|ref|see|note|warning|brief|code|endcode|deprecated|since"


def escaped(text: str) -> str:
    """A comment as Doxygen wants it: what is not code has no tags, and no commands but the usual ones."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(rf"[\\@](?!(?:{COMMANDS})\b)|[<>#%]", lambda found: "\\" + found[0], parts[i])
    return "".join(parts)


def check_names(header: Path, text: str, declared: set[str]) -> None:
    """What a comment names as Class::member has to be there."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = line.partition("//")[2]
        for name in re.findall(r"\b(?:\w+::)+(\w+)", comment):
            if name not in declared and "std::" not in comment:
                errors.append(f"{header.relative_to(ROOT)}:{number}: nothing is named {name}")


def with_comments(text: str) -> str:
    lines = text.splitlines()
    head = 0
    while head < len(lines) and lines[head].startswith("//"):
        head += 1
    result = ["/// @file"] + ["/// " + escaped(line[2:].strip()) for line in lines[:head]] if head else []
    for line in lines[head:]:
        whole = re.match(r"^(\s*)/// ?(.*)$", line)
        trailing = re.match(r'^(\s*[^\s/"][^"]*?(?:"[^"]*"[^"]*?)*[;,}\w])  // (?!NOLINT)(.*)$', line)
        if whole:
            result.append(f"{whole[1]}/// {escaped(whole[2])}")
        elif trailing and not trailing[1].lstrip().startswith(("#", "return", "if ", "for ", "}")):
            result.append(f"{trailing[1]}  ///< {escaped(trailing[2])}")
        else:
            result.append(line)
    return "\n".join(result) + "\n"


def write_headers() -> None:
    everything = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.hpp"))
    declared = set(re.findall(r"\w+", re.sub(r"//.*", "", everything)))
    for header in public_headers():
        check_names(header, header.read_text(), declared)
        target = OUT / "include/concord" / header.relative_to(ROOT / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_comments(header.read_text()))


# --- pages

def slug(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


class Page:
    def __init__(self, source: Path):
        self.source = source
        inside = source.relative_to(ROOT).with_suffix("")
        self.id = "index" if source.name == "README.md" else "_".join(inside.parts).replace("-", "_").lower()
        self.lines = source.read_text().splitlines()
        self.title = next(line[2:] for line in self.lines if line.startswith("# "))
        self.anchors = set()
        for line in self.prose():
            if heading := re.match(r"(#{2,6}) (.*)", line):
                self.anchors.add(slug(heading[2]))
            self.anchors.update(re.findall(r'<a id="([^"]+)">', line))

    def prose(self):
        fence = False
        for line in self.lines:
            if line.lstrip().startswith("```"):
                fence = not fence
            elif not fence:
                yield line

    def anchor(self, name: str) -> str:
        return f"{self.id}_{name.replace('-', '_')}"

    def url(self, name: str = "") -> str:
        return f"{self.id}.html" + (f"#{self.anchor(name)}" if name else "")


class Site:
    def __init__(self):
        sources = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"),
                   *(ROOT / "docs/guide").glob("*.md")]
        self.pages = {source: Page(source) for source in sources}

    def target(self, page: Page, number: int, url: str) -> str:
        """Where a link of a page leads on the site."""
        if re.match(r"(https?|mailto):", url):
            return url
        path, _, anchor = url.partition("#")
        source = (page.source.parent / path).resolve() if path else page.source
        where = f"{page.source.relative_to(ROOT)}:{number}"
        if source in self.pages:
            other = self.pages[source]
            if anchor and anchor not in other.anchors:
                errors.append(f"{where}: {other.source.relative_to(ROOT)} has no heading #{anchor}")
            return other.url(anchor)
        if not source.is_file():
            errors.append(f"{where}: there is no {url}")
            return url
        inside = source.relative_to(ROOT)
        copy = OUT / "html/files" / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        return f"files/{inside}"

    def converted(self, page: Page, first: int, text: str) -> str:
        """Prose for Doxygen; its first line is line `first` of the page."""
        def link(found: re.Match) -> str:
            url = self.target(page, first + text.count("\n", 0, found.start()), found[3])
            if found[1]:
                return f'<img class="shown" src="{url}" alt="{html.escape(found[2])}"/>'
            return f"[{found[2]}]({url})"

        def picture(found: re.Match) -> str:
            if found[1].startswith("files/"):
                return found[0]
            url = self.target(page, first + text.count("\n", 0, found.start()), found[1])
            return f'<img class="shown" src="{url}"{found[2].rstrip()}/>'

        # The text of a link may have code in it, and go over two lines.
        text = re.sub(r"(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)", link, text)
        text = re.sub(r'<img src="([^"]+)"([^>]*?)/?>', picture, text)
        return re.sub(r'<a id="([^"]+)"></a>', lambda found: f"@anchor {page.anchor(found[1])} ", text)

    def write(self, page: Page) -> None:
        result: list[str] = []
        prose: list[str] = []
        fence = False
        sections = sum(1 for line in page.prose() if re.match(r"##+ ", line))

        def flush(end: int) -> None:
            if prose:
                result.append(self.converted(page, end - len(prose), "\n".join(prose)))
                prose.clear()

        for number, line in enumerate(page.lines, 1):
            if line.lstrip().startswith("```"):
                flush(number)
                fence = not fence
                result.append(line)
            elif fence:
                result.append(line)
            elif line.startswith("# "):
                result.append(f"# {page.title} {{#{'mainpage' if page.id == 'index' else page.id}}}")
                if sections > 5 and page.id != "index":
                    result += ["", "[TOC]"]
            elif heading := re.match(r"(#{2,6}) (.*)", line):
                flush(number)
                title = heading[2].replace("`", "")  # Doxygen would show the tags of code
                result.append(f"{heading[1]} {title} {{#{page.anchor(slug(heading[2]))}}}")
            else:
                prose.append("" if line.startswith("<!--") else line)
        flush(len(page.lines) + 1)
        target = OUT / "pages" / f"{page.id}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(result) + "\n")

    def navigation(self) -> str:
        def item(url: str, title: str) -> str:
            return f'<li><a href="$relpath^{url}">{html.escape(title)}</a></li>'

        docs = ROOT / "docs"
        guides = [self.pages[docs / "guide" / f"{name}.md"] for name in GUIDES]
        missing = {page.source for page in self.pages.values() if page.source.parent.name == "guide"} - {
            page.source for page in guides}
        errors.extend(f"docs/doxygen/prepare.py: GUIDES lacks {source.stem}" for source in missing)
        others = sorted((page for source, page in self.pages.items()
                         if source.parent == docs and source.stem not in FIRST_PAGES), key=lambda page: page.title)
        pages = [self.pages[docs / f"{name}.md"] for name in FIRST_PAGES] + others + [
            self.pages[ROOT / "CONTRIBUTING.md"]]
        groups = [("Guides", [item(page.url(), page.title) for page in guides]),
                  ("Pages", [item(page.url(), page.title) for page in pages]),
                  ("Reference", [item(url, title) for url, title in REFERENCE])]
        return "\n".join(f"<h2>{title}</h2>\n<ul>\n" + "\n".join(items) + "\n</ul>" for title, items in groups)


def main() -> int:
    for folder in ("include", "pages", "html"):
        shutil.rmtree(OUT / folder, ignore_errors=True)
    write_headers()
    site = Site()
    for page in site.pages.values():
        site.write(page)
    template = (ROOT / "docs/doxygen/header.html").read_text()
    (OUT / "header.html").write_text(template.replace("@NAVIGATION@", site.navigation()))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
