"""The house rules that a machine can check, as functions from a source tree to complaints.

usage: rules.py RULE [ROOT]      prints complaints, exits 1 when there are any
       rules.py --list
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = {".cpp", ".hpp", ".h", ".cc", ".S", ".in"}
WARN_LINES, MOST_LINES = 400, 800
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def files(root, *folders):
    """Files under `folders`: those git knows or would take, so build output never counts."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
             "--exclude-standard", "--", *folders],
            check=True, capture_output=True).stdout.decode().split("\0")
        found = [root / name for name in listed if name]
    except (subprocess.CalledProcessError, FileNotFoundError):
        found = [p for f in folders for p in (root / f).rglob("*")]
    return sorted(p for p in set(found) if p.is_file())


def rooms(root):
    return (root / "src/ROOMS").read_text().split()


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def include_order(root):
    """A file includes only its own room and rooms above it in src/ROOMS."""
    order = rooms(root)
    for path in files(root, "src", "include"):
        if path.suffix not in SOURCE:
            continue
        parts = path.relative_to(root).parts
        room = parts[1] if len(parts) > 2 and parts[0] == "src" else None
        if room is not None and room not in order:
            yield f"{path.relative_to(root)}: folder '{room}' is not in src/ROOMS"
            continue
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            kind, name = match.groups()
            at = f"{path.relative_to(root)}:{line_of(text, match.start())}"
            if ".." in Path(name).parts:
                yield f"{at}: includes by a relative path: {name}"
                continue
            target = name.split("/")[0] if "/" in name else None
            if kind == '"' and target is None:
                yield f"{at}: write the room in the include: \"{name}\""
                continue
            if room is None or target not in order:
                continue
            if order.index(target) > order.index(room):
                yield f"{at}: room {room} includes {name}, but {target} comes after it"


def own_header_first(root):
    """x.cpp includes x.hpp before anything else, so that compiling it shows x.hpp stands alone."""
    for path in files(root, "src"):
        own = path.with_suffix(".hpp")
        if path.suffix != ".cpp" or not own.exists():
            continue
        first = INCLUDE.search(path.read_text())
        if not first or first.group(2) != own.relative_to(root / "src").as_posix():
            yield f"{path.relative_to(root)}: include {own.relative_to(root / 'src')} first"


def file_length(root):
    """Files are short enough to read in one sitting; long ones are reported, huge ones fail."""
    for path in files(root, "src", "app", "include", "tests", "bench", "fuzz", "tools"):
        if path.suffix not in SOURCE | {".py", ".sh"}:
            continue
        lines = len(path.read_text(errors="replace").splitlines())
        name = path.relative_to(root)
        if lines > MOST_LINES:
            yield f"{name}: {lines} lines, at most {MOST_LINES}: split it by meaning"
        elif lines > WARN_LINES:
            print(f"note: {name}: {lines} lines, aim at {WARN_LINES}")


def names(root):
    """No file or folder is called utils, helpers, common or manager."""
    vague = re.compile(r"(^|[_\-./])(utils?|helpers?|common|managers?|misc)([_\-./]|$)")
    for path in files(root, "src", "app", "include", "tests", "bench", "fuzz", "tools"):
        name = path.relative_to(root).as_posix()
        if vague.search(name):
            yield f"{name}: a name that says nothing; name what it does"


def headers(root):
    """Headers have `#pragma once` and include nothing heavy."""
    heavy = re.compile(r"^(nlohmann/|toml\+\+/|toml\.hpp|CLI/|rapidcheck|pybind11/|benchmark/)")
    for path in files(root, "src", "app", "include"):
        if path.suffix != ".hpp":
            continue
        text = path.read_text()
        name = path.relative_to(root)
        if "#pragma once" not in text:
            yield f"{name}: no #pragma once"
        for match in INCLUDE.finditer(text):
            if heavy.match(match.group(2)) and not match.group(2).endswith("json_fwd.hpp"):
                yield f"{name}:{line_of(text, match.start())}: heavy header in a header: " \
                      f"{match.group(2)}"


def without_comments(text):
    """The code with comments and string contents blanked, lines kept."""
    pattern = re.compile(
        r'R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)

    def blank(match):
        return '""' + "\n" * match.group().count("\n")

    return pattern.sub(blank, text)


def quiet_library(root):
    """Library code neither prints nor exits."""
    loud = re.compile(
        r"\bstd::(cout|cerr|clog|exit|quick_exit|_Exit)\b|\b(printf|fprintf|puts|putchar)\s*\("
        r"|(?<![\w.:>])(exit|_exit)\s*\(|\bfmt::print\b")
    # The one place where a broken invariant speaks before it aborts.
    may = {"src/base/byte_count.cpp", "src/pack_facts.cpp"}
    for path in files(root, "src"):
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".cpp", ".hpp"} or name in may or name.endswith("_test.cpp"):
            continue
        code = without_comments(path.read_text())
        for match in loud.finditer(code):
            yield f"{name}:{line_of(code, match.start())}: library code prints or exits: " \
                  f"{match.group().strip()}"


def language(root):
    """Only the part of C++20 that g++ 12 and clang 14 share."""
    absent = re.compile(
        r"#\s*include\s*<(format|expected|source_location|print|stacktrace|ranges)>"
        r"|\bstd::(format|expected|source_location|views|ranges::views)\b")
    for path in files(root, "src", "app", "include", "tests", "bench", "fuzz"):
        if path.suffix not in {".cpp", ".hpp"}:
            continue
        code = without_comments(path.read_text())
        for match in absent.finditer(code):
            yield f"{path.relative_to(root)}:{line_of(code, match.start())}: " \
                  f"not in both compilers: {match.group()}"


def messages(root):
    """Message ids are unique in a room, and placeholders count from {0} without a gap."""
    entry = re.compile(r'TRIGON_MESSAGE\(\s*(\w+)\s*,((?:\s*"(?:\\.|[^"\\])*")+)\s*\)')
    for path in files(root, "src"):
        if not path.name.endswith("messages.def"):
            continue
        text = path.read_text()
        name = path.relative_to(root)
        seen = set()
        for match in entry.finditer(text):
            at = f"{name}:{line_of(text, match.start())}"
            if match.group(1) in seen:
                yield f"{at}: second message called {match.group(1)}"
            seen.add(match.group(1))
            used = {int(n) for n in re.findall(r"\{(\d+)", match.group(2))}
            if used != set(range(len(used))):
                yield f"{at}: placeholders of {match.group(1)} have a gap"
        if text.count("TRIGON_MESSAGE(") != len(entry.findall(text)):
            yield f"{name}: an entry that is not TRIGON_MESSAGE(id, \"text\")"


def room_list(root):
    """The rooms of src/ROOMS are the folders of src/ and come in the order of `enum class Room`."""
    order = rooms(root)
    folders = {p.relative_to(root).parts[1] for p in files(root, "src")
               if len(p.relative_to(root).parts) > 2}
    for room in sorted(folders - set(order)):
        yield f"src/{room}: not in src/ROOMS"
    text = (root / "src/base/message.hpp").read_text()
    found = re.search(r"enum class Room[^{]*\{([^}]*)\}", text)
    listed = re.findall(r"\w+", found.group(1)) if found else []
    if [r for r in listed if r in order] != order:
        yield "src/base/message.hpp: enum Room and src/ROOMS differ in their rooms or order"


def formulas(root):
    """Each formula `page.name` that a derivation cites is explained in docs/PAGE.md.

    Explained means a heading that contains `name` or `page.name`.
    """
    cited = re.compile(r'\bFormula\s+\w+\s*\{\s*"(\w+)\.(\w+)"')
    for path in files(root, "src"):
        if path.suffix not in {".cpp", ".hpp"} or path.name.endswith("_test.cpp"):
            continue
        text = path.read_text()
        for match in cited.finditer(text):
            page, formula = match.groups()
            document = root / "docs" / f"{page}.md"
            headings = re.findall(r"^#+ .*$", document.read_text(), re.M) \
                if document.exists() else []
            if not any(re.search(rf"\b{formula}\b", heading) for heading in headings):
                yield f"{path.relative_to(root)}:{line_of(text, match.start())}: " \
                      f"docs/{page}.md has no section on {page}.{formula}"


RULES = {f.__name__: f for f in (include_order, own_header_first, file_length, names, headers,
                                 quiet_library, language, messages, room_list, formulas)}


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(RULES))
        return 0
    root = Path(arguments[1] if len(arguments) > 1 else ".").resolve()
    complaints = list(RULES[arguments[0]](root))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
