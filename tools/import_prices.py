#!/usr/bin/env python3
"""data/prices/: what accelerators cost to rent and to buy, and the defaults of ownership.

One sheet per provider and source; each row is one text of the columns named in `columns`. Rows of
suspect.csv are dropped or corrected as it says. A price of a VM without its accelerator is never
taken over; a price of an accelerator without its VM is marked `accelerator_only`. Names are
resolved by data/aliases.csv, narrowed by what the instance is known to hold; where several cards
remain, the price applies to each of them.
"""
import csv
import os
import re
import sys

from catalogue_sheets import ROOT, Sheet, date_of, normal, number, rows, slug, suspects, tidy
from catalogue_sheets import write_tree

COLUMNS = "accelerators | kind | usd | count | region | date | includes | instance"
KINDS = {"on_demand": "on_demand", "on_demand (secure)": "on_demand",
         "on_demand (community)": "on_demand", "spot": "spot", "purchase": "purchase",
         "reserved (capacity_block, 1-14+ day)": "reserved",
         "marketplace median": "marketplace"}
# Instances and providers whose cards are of one kind, beyond what the row's name says.
NARROW = [
    (r"^(p4d|p4de|p5|p5e|p5en|p3|p3dn)\.", "-sxm-"), (r"^a[23]-", "-sxm-"),
    (r"^(Standard_)?ND\d", "-sxm-"), (r"^(Standard_)?NC.*A100", "-pcie-"),
    (r"^(Standard_)?NC.*H100", "-nvl-"), (r"^(Standard_)?NC\d+r?s[_ ]v3", "-pcie-"),
    (r"^BM\.GPU\.(A100|A4|H100|GPU4)", "-sxm-"), (r"sxm", "-sxm-"), (r"pcie", "-pcie-"),
]


def aliases():
    with open(os.path.join(ROOT, "data", "aliases.csv"), newline="", encoding="utf-8") as f:
        out = {}
        for r in csv.DictReader(f):
            if r["kind"] == "accelerator":
                out[normal(r["name"])] = (r["candidates"].split(";") if r["candidates"]
                                          else [r["target"]])
    for where, _, names in os.walk(os.path.join(ROOT, "data", "hardware")):
        if os.path.basename(where) == "families":
            continue
        for n in names:
            if n.endswith(".toml"):
                out.setdefault(normal(n[:-5]), [n[:-5]])
    return out


def price_date(text):
    m = re.match(r"(20\d\d(?:-(?:0[1-9]|1[0-2])\b(?:-\d\d)?)?)", text)
    return m.group(1) if m else ""  # unknown: counts as old


def treatments():
    """line number -> (drop?, {column: value}, reason)"""
    out = {}
    for s in suspects("prices/prices.csv"):
        text = s["id"]
        m = re.search(r"line (\d+)\|", text)
        if m and "|1202" not in text:
            lines = [int(m.group(1))]
        elif "lines 325-328" in text:
            lines = range(325, 329)  # accelerator-only rows of a machine that is priced whole
        else:
            continue  # an auction's range: both ends stay
        fixes = dict(f.split("=", 1) for f in s["suggestion"].removeprefix("fix:").split(";")
                     if s["suggestion"].startswith("fix:"))
        drop = s["suggestion"].startswith("exclude") or "lines 325-328" in text
        for n in lines:
            out[n] = (drop, fixes, s["reason"])
    return out


def main():
    known, suspect, sheets, dropped = aliases(), treatments(), {}, {}

    def drop(why):
        dropped[why] = dropped.get(why, 0) + 1

    for index, r in enumerate(rows("prices/prices.csv")):
        line = index + 2
        out, fixes, _ = suspect.get(line, (False, {}, ""))
        r.update(fixes)
        if out:
            drop("doubtful")
            continue
        if "VM ONLY" in r["note"] or r["gpu"] == "(none in row)":
            drop("VM without its accelerator")
            continue
        candidates = known.get(normal(r["gpu"]))
        if not candidates:
            drop("hardware outside the catalogue")
            continue
        for pattern, part in NARROW:
            if len(candidates) > 1 and re.search(pattern, r["instance"], re.I):
                fewer = [c for c in candidates if part in c]
                candidates = fewer or candidates
        # An undecorated name at these catalogues means the smaller memory.
        if normal(r["gpu"]) == "a100" and "skypilot" in r["source"]:
            candidates = [c for c in candidates if c.endswith("-40gb")] or candidates
        if normal(r["gpu"]) == "v100" and "skypilot" in r["source"]:
            candidates = [c for c in candidates if c.endswith("-16gb")] or candidates
        kind = KINDS[r["kind"]]
        count = number(r["gpu_count"]) or 1
        usd = number(r["usd_per_gpu_hour"])
        if kind == "purchase" or usd is None:
            total = number(r["price_usd_per_hour_or_unit"])
            if total is None:
                drop("no price")
                continue
            usd = tidy(total / count)
        bare = "attachable accelerator only" in r["instance"] and "tpu" not in r["gpu"].lower()
        fields = [",".join(candidates), kind, f"{usd:.6g}", f"{count:g}",
                  r["region"].replace("|", "/"), price_date(r["date"]),
                  "accelerator_only" if bare else "all",
                  "" if bare else r["instance"].replace("|", "/")]
        key = (r["provider"].replace(" (launch MSRP)", " at launch").lower().replace(" cloud", ""),
               r["source"] if not r["source"].startswith("gpus.csv") else "launch prices")
        sheets.setdefault(key, {"rows": [], "source": r["source"]})["rows"].append(
            " | ".join(fields))
    files, used = {}, {}
    for (provider, source), s in sorted(sheets.items()):
        used[provider] = used.get(provider, 0) + 1
        id = slug(provider) + ("" if used[provider] == 1 else f"-{used[provider]}")
        dates = [x.split(" | ")[5] for x in s["rows"]]
        text = ("launch prices of the gathered hardware table (Wikipedia lists and others)"
                if source == "launch prices" else s["source"])
        sheet = Sheet("prices", id, text, max(dates) or date_of(text))
        sheet.put("provider", provider)
        sheet.put("columns", COLUMNS)
        sheet.put("rows", s["rows"])
        files[id + ".toml"] = sheet.text("import_prices.py")
    own = Sheet("ownership", "default", "public averages, see each fact", "2025-04")
    own.put("pue", 1.58, "Uptime Institute survey 2023, average power usage effectiveness, as "
                         "quoted by upsite.com", "2023")
    own.put("usd_per_kwh", 0.0904, "US EIA, Electric Power Monthly, table 5.6.A: industrial, "
                                   "Middle Atlantic", "2025-04")
    own.put("service_life_years", 5, "Amazon 10-K for 2024: five years for a part of its servers, "
                                     "because of the pace of AI hardware", "2025-02")
    files["ownership.toml"] = own.text("import_prices.py")
    write_tree("prices", files)
    print(f"{sum(len(s['rows']) for s in sheets.values())} prices; dropped {dropped}",
          file=sys.stderr)


if __name__ == "__main__":
    main()
