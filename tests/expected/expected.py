"""Holds the program's answers to the ranges of a document: docs/expected.md, docs/claims.md.

Each section of the document shows one command and a table `| what | where | from | to | source |`.
`where` leads to a value in the answer's `results`: names and [index] or [accelerator] for a list,
[key] for a key with dots, joined by dots; `cards` counts the cards of a report's hardware. An estimate counts by its value.
`from` and `to` are numbers; a `from` that starts with `=` is compared as text. A row whose source
begins with `outside:` is known to miss its range; it complains when the answer has come inside.

usage: expected.py ROOT PROGRAM [DOCUMENT]     DOCUMENT: docs/expected.md unless given
"""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import llama_gguf  # noqa: E402

GGUF = "Llama-3.1-8B-Q4_K_M.gguf"


@dataclass
class Row:
    what: str
    where: str
    low: str
    high: str
    source: str


def sections(document):
    """(command, rows) of each section that has both."""
    for part in re.split(r"^## ", document, flags=re.M)[1:]:
        command = re.search(r"^\$ trigon ((?:.*\\\n)*.*)$", part, re.M)
        rows = [Row(*(cell.strip().strip("`") for cell in line.strip("|").split("|")))
                for line in part.splitlines()
                if line.startswith("|") and line.count("|") == 6
                and not re.match(r"\|\s*(what\s*\||-)", line)]
        if command and rows:
            yield re.sub(r"\\\n\s*", "", command.group(1)), rows


def value_at(results, where):
    """The value that a path leads to; raises LookupError with the step that leads nowhere."""
    here = results
    for step in re.findall(r"[^.\[\]]+|\[[^\]]+\]", where):
        if step == "cards":
            here = here["report"]["hardware"]
            return here["nodes"] * here["per_node"]
        if step.startswith("["):
            name = step[1:-1]
            if isinstance(here, dict):  # a key with dots in it
                here = here.get(name)
            elif name.isdigit():
                here = here[int(name)]
            else:
                here = next((x for x in here
                             if x["report"]["hardware"]["accelerator"] == name), None)
        else:
            here = here.get(step) if isinstance(here, dict) else None
        if here is None:
            raise LookupError(f"nothing at '{step}' of {where}")
    return here["value"] if isinstance(here, dict) and "value" in here else here


def judge(row, results):
    """A complaint about one row, or None."""
    try:
        value = value_at(results, row.where)
    except (LookupError, TypeError, KeyError) as error:
        return f"{row.what}: {error}"
    if row.low.startswith("="):
        shown = str(value).lower()
        inside = shown == row.low[1:].strip()
    else:
        shown = f"{value:.6g}"
        inside = float(row.low) <= value <= float(row.high)
    known = row.source.startswith("outside:")
    if inside and known:
        return f"{row.what}: {shown} has come inside {row.low} to {row.high}: drop `outside:`"
    if not inside and not known:
        return f"{row.what}: {shown} is not within {row.low} to {row.high} ({row.source})"
    return None


def main(root, program, document="docs/expected.md"):
    complaints, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        gguf = Path(folder) / GGUF
        llama_gguf.write(gguf)
        for command, rows in sections((Path(root) / document).read_text()):
            words = [str(gguf) if word == GGUF else word for word in command.split()]
            run = subprocess.run([program, *words, "--json", "--top", "0"], cwd=root,
                                 capture_output=True, text=True, timeout=400)
            if run.returncode > 1:
                complaints.append(f"$ trigon {command}\n  exits with {run.returncode}: {run.stderr}")
                continue
            found = [judge(row, json.loads(run.stdout)["results"]) for row in rows]
            found = [f"  {complaint}" for complaint in found if complaint]
            checked += len(rows)
            if found:
                complaints += [f"$ trigon {command}", *found]
    print("\n".join(complaints))
    print(f"{checked} values held to their ranges, {len(complaints)} lines of complaint")
    return 1 if complaints or not checked else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
