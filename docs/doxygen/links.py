#!/usr/bin/env python3
"""Follows every link of the site that scripts/docs has built: the file and the place in it have to exist.

  links.py FOLDER
"""
import re
import sys
from pathlib import Path
from urllib.parse import unquote

SITE = Path(sys.argv[1]).resolve()


def main() -> int:
    pages = {page.name: page.read_text(errors="replace") for page in SITE.glob("*.html")}
    places = {name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for name, text in pages.items()}
    errors = set()
    for name, text in pages.items():
        if name.endswith("-members.html"):  # lists of Doxygen's, which has left friends out elsewhere
            continue
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, place = unquote(link).partition("#")
            target = file or name
            if target in pages:
                if place not in places[target] | {"", "nested-classes"}:
                    errors.add(f"{name}: {target} has no place #{place}")
            elif not (SITE / target).exists():
                errors.add(f"{name}: there is no {target}")
    for error in sorted(errors):
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
