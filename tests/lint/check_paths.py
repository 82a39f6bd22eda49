#!/usr/bin/env python3
"""Checks that what the documentation names exists: files and folders of the project, the targets of links with their
headings, and a group of the API reference for every folder of strait/. Prints FILE:LINE: what is wrong, and exits with
status 1 when there is anything.

    check_paths.py ROOT         checks README.md, CONTRIBUTING.md and the pages under docs/
    check_paths.py --self-test  checks that planted mistakes are found and good pages are not reported
"""

import pathlib
import re
import sys
import tempfile

# Top-level folders whose files a page may name, and what a name looks like. `*` stands for any part of a name; a name with
# a part in capitals, such as strait/FOLDER, is a placeholder.
FOLDERS = ("bench", "cli", "cmake", "docs", "examples", "experiments", "fuzz", "python", "scripts", "strait", "tests")
NAME = re.compile(r"(?<![\w/.~$-])((?:" + "|".join(FOLDERS) + r")/[\w*+-][\w./*+-]*)")
PLACEHOLDER = re.compile(r"(^|[/._-])[A-Z]{3,}($|[/._-])")

# Sources may also be named from strait/ on, in code spans: `models/attention.cpp`.
SOURCE = re.compile(r"`((?!torch/)[a-z_0-9]+/[\w/.-]+\.(?:h|cpp|def))`")

# What docs/adding_a_codec.md tells its reader to write.
TO_BE_WRITTEN = {"strait/codecs/bare_sign.cpp", "tests/codecs/bare_sign_test.cpp", "strait/models/lenet.cpp",
                 "tests/models/lenet_test.cpp", "strait/data/spirals.cpp", "tests/data/spirals_test.cpp"}

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def slug(heading):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings_of(page):
    return {slug(match[1]) for match in re.finditer(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)}


def names_of(line):
    """The project's files that a line names."""
    for match in NAME.finditer(line):
        name = match[1].rstrip(".*-+/") if match[1].endswith((".", "-", "/")) else match[1]
        if not PLACEHOLDER.search(name):
            yield name


def check_link(root, page, target, fragment):
    """What is wrong with a link, or None."""
    if "://" in target or target.startswith("mailto:"):
        return None
    file = (page.parent / target).resolve() if target else page
    if not file.exists():
        return f"the link to {target} leads nowhere"
    if fragment and file.suffix == ".md" and fragment not in headings_of(file):
        return f"{file.relative_to(root)} has no heading #{fragment}"
    return None


def check_page(root, page):
    """Yields (line, what is wrong) for one page."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        for name in names_of(line):
            if name not in TO_BE_WRITTEN and not any(root.glob(name)):
                yield number, f"{name} does not exist"
        for name in SOURCE.findall(line):
            if name not in TO_BE_WRITTEN and not (root / name).exists() and not (root / "strait" / name).exists():
                yield number, f"{name} does not exist, here or in strait/"
        for target, fragment in LINK.findall(line):
            wrong = check_link(root, page, target, fragment)
            if wrong:
                yield number, wrong


def check_rooms(root):
    """Yields (line, what is wrong) for the groups of the reference."""
    groups = set(re.findall(r"@defgroup (\w+)", (root / "docs/doxygen/rooms.dox").read_text(encoding="utf-8")))
    folders = {folder.name for folder in (root / "strait").iterdir() if any(folder.glob("*.h"))}
    for room in sorted(folders - groups):
        yield 1, f"strait/{room} has no @defgroup {room}"
    for room in sorted(groups - folders):
        yield 1, f"@defgroup {room} is of no folder of strait/"


def check(root):
    """What is wrong in a source tree."""
    root = root.resolve()
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]
    wrong = [(page.relative_to(root), *what) for page in pages for what in check_page(root, page)]
    wrong += [(pathlib.Path("docs/doxygen/rooms.dox"), *what) for what in check_rooms(root)]
    return [f"{page}:{line}: {what}" for page, line, what in wrong]


def self_test():
    files = {
        "strait/wire/frame.h": "",
        "docs/doxygen/rooms.dox": "/** @defgroup wire wire */\n/** @defgroup gone gone */\n",
        "docs/results/small/report.html": "",
        "CONTRIBUTING.md": "strait/FOLDER and `wire/frame.h`, ~/docs/nothing, experiments/*.toml.\n",
        "experiments/a.toml": "",
        "README.md": "# The \"two\" limits\n[x](docs/a.md#a-b), [y](#the-two-limits), [z](https://example.com/docs/b)\n",
        "docs/a.md": "# A b\n`wire/gone.h`\nstrait/gone.h and strait/wire/frame.h.\n[x](b.md)\n[y](../README.md#none)\n"
        "experiments/*.json\n[z](results/small/report.html)\n",
    }
    expected = {
        "docs/a.md:2: wire/gone.h does not exist, here or in strait/",
        "docs/a.md:3: strait/gone.h does not exist",
        "docs/a.md:4: the link to b.md leads nowhere",
        "docs/a.md:5: README.md has no heading #none",
        "docs/a.md:6: experiments/*.json does not exist",
        "docs/doxygen/rooms.dox:1: @defgroup gone is of no folder of strait/",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = set(check(root))
        (root / "docs/doxygen/rooms.dox").write_text("", encoding="utf-8")
        unnamed = check(root)
    assert found == expected, found ^ expected
    assert "docs/doxygen/rooms.dox:1: strait/wire has no @defgroup wire" in unnamed, unnamed
    print("check_paths: finds what is wrong")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    wrong = check(pathlib.Path(sys.argv[1]))
    print("\n".join(wrong) if wrong else "check_paths: what the documentation names exists")
    sys.exit(bool(wrong))


main()
