#!/usr/bin/env python3
"""What Doxygen reads of a page in Markdown, line for line: headings have the anchors that GitHub gives them, and links to
files that are no pages lead from build/docs to where these are.

    page_filter.py FILE
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (ROOT, ROOT / "docs", ROOT / "docs/results")  # the folders of INPUT
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def slug(heading):
    """GitHub's anchor of a heading: `the-two-limits` of `The "two" limits`."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchor(page, fragment):
    """An anchor's name among those of all pages."""
    return f"{page.stem.lower()}-{fragment}"


def link(page, match):
    text, target, fragment = match.groups()
    if "://" in target:
        return match[0]
    file = (page.parent / target).resolve() if target else page
    if file.suffix != ".md" or file.parent not in PAGES:
        return f'<a href="../../{file.relative_to(ROOT)}">{text}</a>'
    return f"[{text}](@ref {anchor(file, fragment)})" if fragment else match[0]


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    for line in page.read_text(encoding="utf-8").splitlines():
        heading = re.match(r"#+ (.*)", line)
        if heading:
            line += f" {{#{anchor(page, slug(heading[1]))}}}"
        elif not line.startswith("    "):
            line = LINK.sub(lambda match: link(page, match), line)
        print(line)


main()
