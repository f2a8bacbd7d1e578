"""Runs the commands that the documents show: documentation that lies fails the tests.

A fenced block that starts with ```console holds commands after `$ ` (a trailing backslash goes on
in the next line) and, below each, what it prints. Words after `console` say what is checked:

  ```console             the command exits with 0
  ```console exit=1      it exits with 1
  ```console output      it also prints exactly what is shown; a line `...` stands for any lines
  ```console shown       what is shown is an example: not compared, but kept up by --update

`trigon` is the program of this build; commands of the build itself are not run. Anything else is
a complaint, so that nothing shown goes unchecked.

usage: console_blocks.py ROOT PROGRAM [--update] [FILE...]     --update rewrites the `output` and
                                                               `shown` blocks
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^(?P<indent>[ ]*)```console(?P<words>[^\n]*)\n(?P<body>.*?)^[ ]*```[ ]*$",
                   re.M | re.S)
NOT_RUN = re.compile(
    r"^(tools/|\.ci/run|git |cmake |ninja |ctest |build[\w-]*/bench/|build[\w-]*/fuzz/)")


@dataclass
class Command:
    text: str
    line: int
    exit: int = 0
    output: list | None = None  # None: not compared
    shown: list = field(default_factory=list)


def commands(text):
    """The commands of all blocks; raises ValueError for a block that cannot be understood."""
    found = []
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start("body")) + 1
        expect, compare = 0, False
        for word in block.group("words").split():
            if word == "output":
                compare = True
            elif word == "shown":
                pass
            elif re.fullmatch(r"exit=\d+", word):
                expect = int(word[5:])
            else:
                raise ValueError(f"{first - 1}: unknown word '{word}' after ```console")
        indent = len(block.group("indent"))
        lines = [line[indent:] for line in block.group("body").splitlines()]
        current, going_on = None, False
        for offset, line in enumerate(lines):
            if going_on:
                current.text += " " + line.strip().removesuffix("\\").rstrip()
                going_on = line.endswith("\\")
            elif line.startswith("$ "):
                going_on = line.endswith("\\")
                current = Command(line[2:].removesuffix("\\").rstrip(), first + offset, expect)
                current.output = [] if compare else None
                found.append(current)
            elif current is None:
                raise ValueError(f"{first + offset}: a console block starts with '$ '")
            else:
                current.shown.append(line.rstrip())
                if compare:
                    current.output.append(line.rstrip())
        if current is None:
            raise ValueError(f"{first}: a console block without a command")
    return found


def matches(expected, actual):
    """Whether the lines agree, `...` standing for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + "\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in actual)) is not None


def run(root, program, text):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(program, Path(folder) / "trigon")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRIGON_")}
        environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "COLUMNS": "100",
                        "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "HOME": folder,
                        "XDG_CONFIG_HOME": folder}
        return subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=root, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=280)


def check(root, program, name, text):
    """Complaints about one document, and how many commands were run."""
    complaints, ran = [], 0
    try:
        found = commands(text)
    except ValueError as error:
        return [f"{name}:{error}"], 0
    for command in found:
        at = f"{name}:{command.line}: $ {command.text}"
        if NOT_RUN.match(command.text):
            continue
        if not re.match(r"trigon( |$)", command.text):
            complaints.append(f"{at}\n  shown but not tested: only `trigon` can be run here")
            continue
        result = run(root, program, command.text)
        ran += 1
        if result.returncode != command.exit:
            complaints.append(f"{at}\n  exits with {result.returncode}, not {command.exit}\n"
                              + result.stderr[-1500:])
        elif command.output is not None and not matches(command.output,
                                                        result.stdout.splitlines()):
            complaints.append(f"{at}\n  prints something else:\n{result.stdout[:6000]}")
    return complaints, ran


def updated(root, program, text):
    """The document with the bodies of its `output` and `shown` blocks as printed now."""
    def rewrite(block):
        if not {"output", "shown"} & set(block.group("words").split()):
            return block.group()
        indent, lines, shown = block.group("indent"), [], []
        for command in commands(block.group()):
            shown.append(command)
        body_lines = block.group("body").splitlines()
        position = 0
        for line in body_lines:
            if line[len(indent):].startswith("$ ") or (lines and lines[-1].endswith("\\")):
                lines.append(line)
                if not line.endswith("\\"):
                    result = run(root, program, shown[position].text)
                    position += 1
                    lines += [(indent + out).rstrip() for out in result.stdout.splitlines()]
        return f"{indent}```console{block.group('words')}\n" + "\n".join(lines) + f"\n{indent}```"
    return BLOCK.sub(rewrite, text)


def main(arguments):
    update = "--update" in arguments
    root, program, *rest = [a for a in arguments if a != "--update"]
    root, program = Path(root).resolve(), Path(program).resolve()
    documents = [Path(f).resolve() for f in rest] or sorted(
        [*root.glob("*.md"), root / "src/README.md", *(root / "docs").rglob("*.md")])
    documents = [path for path in documents if path.exists()]
    complaints, total = [], 0
    for path in documents:
        name = path.relative_to(root) if path.is_relative_to(root) else path
        text = path.read_text()
        if update:
            path.write_text(updated(root, program, text))
            continue
        found, ran = check(root, program, name, text)
        complaints += found
        total += ran
    print("\n".join(complaints))
    if not update:
        print(f"{total} commands in {len(documents)} documents, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
