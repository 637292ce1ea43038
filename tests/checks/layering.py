#!/usr/bin/env python3
"""Include arrows: which folder may include which, and which libraries stay in which files. See docs/architecture.md.

usage: layering.py [ROOT]; prints every violation as file:line and exits with 1 if there is one.
"""
import pathlib
import re
import sys

import tree

# folder -> folders it may include from. A longer name wins over a shorter one. tests/ may include everything.
ARROWS = {
    "trace": {"trace"},
    "include": {"include"},
    "interpose": {"interpose", "trace", "include"},
    "sim": {"sim", "trace", "include"},
    "analyzer": {"analyzer", "trace"},
    "analyzer/cli": {"analyzer/cli", "analyzer", "trace"},
    "kernels": {"kernels", "include"},
    "examples": {"examples", "include"},
}

# (library, pattern of its headers, pattern of the files that may include it, why)
LIBRARIES = [
    ("CUDA", r"(cuda|cupti|cudart|nv/|driver_types|crt/).*", r"(interpose|sim|kernels|examples|tests)/.*",
     "the contract and the analyzer must build without CUDA"),
    ("CUPTI", r"cupti.*", r"(interpose|tests)/.*", "only the shim speaks CUPTI"),
    ("yaml-cpp", r"yaml-cpp/.*", r"analyzer/(rule_reader|yaml_\w+|cli/config\w*)\.(h|cpp)", "one file turns YAML into our own types"),
    ("pugixml", r"pugixml.hpp", r"analyzer/report_junit\.cpp", "one report is XML"),
    ("PEGTL", r"tao/pegtl.*", r"analyzer/\w+\.(h|cpp)", "the condition language belongs to the analyzer"),
    ("Boost.Program_options", r"boost/.*", r"(analyzer/cli|kernels|tests)/.*", "arguments are the command line's"),
    ("libdw", r"(elfutils/.*|dwarf\.h|libelf\.h|gelf\.h)", r"(analyzer/symbols\.cpp|analyzer/cli/program\.cpp|tests/.*)",
     "one file reads debug information, one looks at programs before they start"),
    ("iostream", r"(iostream|fstream|sstream|iomanip|regex|locale)", r"(?!interpose/|trace/|include/).*",
     "static initialisers and locales have no place in somebody else's process"),
    ("fmt, JSON", r"(fmt|nlohmann)/.*", r"(?!interpose/|trace/|include/|sim/).*", "the victim's side has libc only"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CODE_MUST_NOT_READ = re.compile(r"capture_matrix")  # measured answers are for tests


def owner(relative, folders=tuple(sorted(ARROWS, key=len, reverse=True))):
    """The folder of ARROWS that a path belongs to, or None."""
    for folder in folders:
        if relative.startswith(folder + "/"):
            return folder
    return None


def target_of(root, file, quote, name):
    """The path of an included file of ours, relative to root, or None."""
    places = [file.parent / name, root / name] if quote == '"' else [root / name]
    for place in places:
        if place.is_file() and root in place.resolve().parents:
            return place.resolve().relative_to(root).as_posix()
    return None


def violations_of(root, file):
    relative = file.relative_to(root).as_posix()
    text = tree.text_of(file) or ""
    here = owner(relative)
    for number, line in enumerate(text.splitlines(), 1):
        if here in ("sim", "analyzer", "analyzer/cli") and CODE_MUST_NOT_READ.search(line):
            yield f"{relative}:{number}: names the measured matrix, which only tests may read"
        match = INCLUDE.match(line)
        if not match:
            continue
        target = target_of(root, file, *match.groups())
        if target is None:
            for library, headers, allowed, why in LIBRARIES:
                if re.fullmatch(headers, match[2]) and not re.fullmatch(allowed, relative):
                    yield f"{relative}:{number}: <{match[2]}> ({library}) is not for this file: {why}"
            continue
        there = owner(target)
        if here is None:
            continue
        if there is None or there not in ARROWS[here]:
            yield f"{relative}:{number}: {here}/ must not include {target}"


def violations(root):
    for file in tree.files(root):
        if file.suffix in tree.SOURCES:
            yield from violations_of(root, file)


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else tree.ROOT
    found = list(violations(root))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} include violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
