#!/usr/bin/env python3
"""data/aliases.csv: what each name of hardware means.

Columns: name, kind (accelerator, system or unknown), target (an id, `ambiguous` or `unknown`),
candidates (separated by ;) and note. Names come from the catalogue itself, from alias_rules.py
and from Debian's pci.ids (as pci:VENDOR:DEVICE). The run fails when a name that occurs in the
gathered data is covered by none of them.
"""
import csv
import json
import os
import re
import sys

import alias_rules as rules
import processor_facts
from catalogue_sheets import ROOT, SHARED, normal, rows

PCI_IDS = "/usr/share/misc/pci.ids"
MEASURED = ["train", "infer", "memory", "serving", "comm", "matmul", "mlperf_time_to_train"]


def sheets(folder):
    out = {}
    for where, _, names in sorted(os.walk(os.path.join(ROOT, "data", folder))):
        for n in sorted(names):
            if not n.endswith(".toml"):
                continue
            text = open(os.path.join(where, n), encoding="utf-8").read()
            facts = dict(re.findall(r'^(\w+) = "?([^"\n]*)"?$', text, re.M))
            facts["text"] = text
            if facts["kind"] in ("accelerator", "system"):
                out[facts["id"]] = facts
    return out


class Table:
    def __init__(self, ids):
        self.ids, self.entries = ids, {}

    def put(self, name, targets, note="", kind="accelerator", replace=False):
        targets = [targets] if isinstance(targets, str) else list(targets)
        for t in targets:
            if kind != "unknown" and t.split(":")[0] not in self.ids:
                raise SystemExit(f"alias {name}: no {kind} {t}")
        key = normal(name)
        old = self.entries.get(key)
        if old and not replace:
            if old[2] == targets:
                return
            raise SystemExit(f"alias {name}: {targets} but also {old[2]}")
        self.entries[key] = (name, kind, targets, note)

    def offer(self, name, targets, note=""):
        """A name made by rule: it never overrides one that was written out."""
        if normal(name) not in self.entries:
            self.put(name, targets, note)

    def get(self, name):
        return self.entries.get(normal(name))


def written_out(table):
    for name, targets in {**rules.GROUPS, **rules.DRIVER}.items():
        table.put(name, targets)
    for name, t in rules.WORLD.items():
        targets, note = t if isinstance(t, tuple) else (t, "")
        table.put(name, targets, note)
    for name, why in rules.UNKNOWN.items():
        table.put(name, [], why, "unknown")
    for name, targets in rules.SYSTEM_GROUPS.items():
        table.put(name, targets, "", "system")


def from_catalogue(table, accelerators):
    groups = {}
    for id, f in accelerators.items():
        key = normal(id)
        if key not in table.entries:
            table.entries[key] = (id, "accelerator", [id], "")
    for id, f in accelerators.items():
        name, vendor = f["name"], f["vendor"]
        brand = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "google": "Google",
                 "apple": "Apple", "aws": "AWS"}.get(vendor, vendor)
        names = {name, f"{brand} {name}", f"{brand} {id}"}
        if name.startswith("GeForce "):
            names.add(name.removeprefix("GeForce "))
        memory = re.search(r"-(\d+)gb$", id)
        size = re.search(r"nominal_gb = ([\d.]+)", f["text"]).group(1)
        if f["device_kind"] == "cpu":
            # Whoever writes "CPU " before a name means the processor, whatever else has that name.
            for n in sorted({name, f"{brand} {name}", f"{brand} {id}", id} | set(
                    processor_facts.NAMES.get(id, []))):
                table.offer(n, id)
                table.offer("CPU " + n, id)
            continue
        if not memory:
            for base in (id, f"{brand} {name}", name):
                names |= {f"{base}-{size}gb", f"{base} ({size} GB)", f"{base} ({size}GB)"}
        else:
            groups.setdefault(id[:memory.start()], []).append(id)
            base = id[:memory.start()]
            names |= {f"{base} ({size} GB)", f"{base} ({size}GB)"}
            if "-sxm-" in id:
                for g in {"a100": "4", "a800": "4", "h100": "5", "h200": "5", "v100": "2",
                          "p100": "2"}.items():
                    if id.startswith(g[0] + "-"):
                        names.add(id.replace("-sxm-", f"-sxm{g[1]}-"))
        for n in sorted(names):
            table.offer(n, id)
    cores = {}
    for base, ids in groups.items():
        m = re.match(r"(.*)-\d+core$", base)
        if m:
            cores.setdefault(m.group(1), []).extend(ids)
    for base, ids in {**groups, **{b: sorted(i) for b, i in cores.items()}}.items():
        table.offer(base, ids)
        brand = {"m": "Apple", "g": "NVIDIA", "r": "NVIDIA"}.get(base[0])
        if base.startswith(("gtx", "rtx-2", "rtx-3", "rtx-4", "rtx-5")):
            table.offer("NVIDIA GeForce " + base, ids)
            table.offer("GeForce " + base, ids)
        elif brand:
            table.offer(f"{brand} {base}", ids)
    # "A100 (80 GB)" and the like are the group's name with a bracketed size.
    for name in list(rules.GROUPS):
        m = re.fullmatch(r"(.*)-(\d+gb)", name)
        targets = table.get(name)[2]
        if m:
            table.offer(f"{m.group(1)} ({m.group(2)[:-2]} GB)", targets)
        table.offer("NVIDIA " + name if not name.startswith(("m", "g", "t", "s")) else name,
                    targets)
    for base in ("a6000", "a5000", "a4000"):
        id = table.get(base)[2][0]
        size = re.search(r"nominal_gb = ([\d.]+)", accelerators[id]["text"]).group(1)
        table.offer(f"{base} ({size} GB)", id)


def from_pci_ids(table):
    """Device names in brackets that are names of the catalogue, exactly."""
    if not os.path.exists(PCI_IDS):
        raise SystemExit(f"{PCI_IDS} is missing: apt install pci.ids")
    vendor = None
    for line in open(PCI_IDS, encoding="utf-8", errors="replace"):
        if m := re.match(r"([0-9a-f]{4})  ", line):
            vendor = m.group(1)
        m = re.match(r"\t([0-9a-f]{4})  (.*)$", line)
        if not m or vendor not in ("10de", "1002", "8086"):
            continue
        bracket = re.search(r"\[([^\]]+)\]\s*$", m.group(2))
        if not bracket:
            continue
        found = []
        parts = [p.strip() for p in bracket.group(1).split("/")]
        for p in parts:
            # "Radeon RX 7900 XT/7900 XTX": later parts drop the series.
            tries = [p] + [h + " " + p for h in ("Radeon RX", "Radeon Instinct", "Instinct", "Arc")]
            for t in tries:
                e = table.get(t.replace("Radeon Instinct", "Instinct"))
                if e and e[1] == "accelerator":
                    found += [x for x in e[2] if x not in found]
                    break
        if found:
            note = bracket.group(1) if len(parts) == 1 else bracket.group(1) + " share this id"
            table.put(f"pci:{vendor}:{m.group(1)}", found, note)


def names_in_the_world():
    out = {}

    def add(name, where):
        if name:
            out.setdefault(name, set()).add(where)

    for f in MEASURED:
        for r in rows(f"measured/{f}.csv"):
            add(r["gpu"], f"measured/{f}.csv")
    for r in rows("prices/prices.csv"):
        add(r["gpu"], "prices/prices.csv")
    for r in rows("ops/summary.csv"):
        add(r["gpu"], "ops/summary.csv")
    for r in rows("hardware/systems.csv"):
        add(r["gpu"], "hardware/systems.csv")
    runs = os.path.join(SHARED, "data", "measured", "runs")
    for n in sorted(os.listdir(runs)):
        if n.endswith(".json"):
            with open(os.path.join(runs, n), encoding="utf-8") as f:
                add(json.load(f)["gpu"], "measured/runs")
    return out


def main():
    accelerators = {i: f for i, f in sheets("hardware").items()}
    systems = sheets("systems")
    table = Table(set(accelerators) | set(systems))
    written_out(table)
    from_catalogue(table, accelerators)
    from_pci_ids(table)
    missing = []
    for name, where in sorted(names_in_the_world().items()):
        if not table.get(name):
            if name.startswith("CPU "):
                table.put(name, [], rules.PROCESSOR, "unknown")
            else:
                missing.append(f"{name}  ({', '.join(sorted(where))})")
    if missing:
        raise SystemExit("names that no rule covers:\n  " + "\n  ".join(missing))
    path = os.path.join(ROOT, "data", "aliases.csv")
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["name", "kind", "target", "candidates", "note"])
        for key, (name, kind, targets, note) in sorted(table.entries.items()):
            if kind == "accelerator" and targets == [name]:
                continue  # the id itself
            target = targets[0] if len(targets) == 1 else "ambiguous" if targets else "unknown"
            w.writerow([name, kind, target, ";".join(targets) if len(targets) > 1 else "", note])
    print(f"data/aliases.csv: {len(table.entries)} names", file=sys.stderr)


if __name__ == "__main__":
    main()
