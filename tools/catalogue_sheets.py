"""Reads the gathered tables under ../shared/data and writes fact sheets (TOML) under data/.

Shared by the import_*.py scripts. Standard library only; the scripts can be run again at any time
and write the same bytes for the same input.
"""
import csv
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("TRIGON_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
# Facts whose source states no date carry that of the newest dated row of the gathered data.
SNAPSHOT = "2026-10-19"


def rows(path):
    with open(os.path.join(SHARED, "data", path), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def suspects(path):
    return [r for r in rows("suspect.csv") if r["file"] == path]


def date_of(text):
    """The newest year or year-month that a source states, else the snapshot's date."""
    found = re.findall(r"\b(20[12]\d(?:-[01]\d(?:-[0-3]\d)?)?)\b", text)
    return max(found) if found else SNAPSHOT


def number(text):
    """A float when the text is a plain number, else None."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def tidy(value):
    """Rounds away the noise of binary arithmetic: 12 significant digits."""
    return float(f"{value:.12g}")


def toml_value(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        v = tidy(v)
        return str(int(v)) if v == int(v) and abs(v) < 1e15 else repr(v)
    if isinstance(v, list):
        return "[" + ", ".join(toml_value(x) for x in v) + "]"
    s = str(v).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\t", " ")
    return f'"{s}"'


class Sheet:
    """Facts by dotted key, in the order they are put; None is not put."""

    def __init__(self, kind, id, source, date):
        self.head = {"kind": kind, "id": id, "source": source, "date": date}
        self.facts = {}
        self.provenance = {}
        self.groups = []  # (name, dict)

    def put(self, key, value, source=None, date=None):
        if value is None or value == "" or value == []:
            return
        self.facts[key] = value
        if source and source != self.head["source"]:
            self.provenance[key] = {"source": source}
            if date and date != self.head["date"]:
                self.provenance[key]["date"] = date

    def text(self, generator):
        out = [f"# Written by tools/{generator}; change the script or its input, not this file."]
        out += [f"{k} = {toml_value(v)}" for k, v in self.head.items()]
        plain = [(k, v) for k, v in self.facts.items() if "." not in k]
        out += [f"{k} = {self._long(v)}" for k, v in plain]
        tables = {}
        for k, v in self.facts.items():
            if "." in k:
                table, key = k.split(".", 1)
                tables.setdefault(table, []).append((key, v))
        for table, facts in tables.items():
            out += ["", f"[{table}]"]
            for k, v in facts:
                k = k if re.fullmatch(r"[A-Za-z0-9_-]+", k) else f'"{k}"'
                out.append(f"{k} = {self._long(v)}")
        for name, facts in self.groups:
            out += ["", f"[[{name}]]"] + [f"{k} = {toml_value(v)}" for k, v in facts.items()
                                          if v is not None and v != ""]
        if self.provenance:
            out += ["", "[provenance]"]
            for k, p in self.provenance.items():
                inner = ", ".join(f"{a} = {toml_value(b)}" for a, b in p.items())
                out.append(f'"{k}" = {{ {inner} }}')
        return "\n".join(out) + "\n"

    @staticmethod
    def _long(v):
        if isinstance(v, list) and isinstance(v[0], str) and sum(map(len, v)) > 80:
            return "[\n" + "".join(f"  {toml_value(x)},\n" for x in v) + "]"
        return toml_value(v)


def write_tree(folder, files):
    """Makes data/FOLDER hold exactly these files ({relative path: text}) of *.toml."""
    base = os.path.join(ROOT, "data", folder)
    kept = set()
    for rel, text in sorted(files.items()):
        path = os.path.join(base, rel)
        kept.add(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    for where, _, names in os.walk(base):
        for n in names:
            path = os.path.join(where, n)
            if n.endswith(".toml") and path not in kept:
                os.remove(path)
    print(f"data/{folder}: {len(files)} files", file=sys.stderr)


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def normal(name):
    """The canonical form in which names are compared; mirrors normalised_name in src/hardware."""
    return "".join(c for c in name.lower() if c not in " \t_-")
