#!/usr/bin/env python3
"""Brings po/zh_CN.po in line with the messages.def files: new messages get an empty entry, gone
ones are dropped, translations are kept. An entry whose English changed is marked fuzzy.

    tools/update_po.py            rewrite po/zh_CN.po
    tools/update_po.py --missing  print what has no translation
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PO = ROOT / "po" / "zh_CN.po"
ENTRY = re.compile(r'TRIGON_MESSAGE\(\s*(\w+)\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
HEADER = '''msgid ""
msgstr ""
"Project-Id-Version: trigon\\n"
"PO-Revision-Date: 2026-11-30 00:00+0000\\n"
"Last-Translator: the Trigon project\\n"
"Language-Team: Chinese\\n"
"Language: zh_CN\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
'''


def messages():
    rooms = (ROOT / "src" / "ROOMS").read_text().split()
    files = [(r, ROOT / "src" / r / "messages.def") for r in rooms]
    files.append(("app", ROOT / "src" / "present" / "app_messages.def"))
    for room, path in files:
        if path.exists():
            for name, text in ENTRY.findall(path.read_text()):
                yield f"{room}.{name}", "".join(QUOTED.findall(text))


def known():
    """msgctxt -> (msgid, msgstr), as escaped text."""
    out = {}
    if not PO.exists():
        return out
    for block in PO.read_text().split("\n\n"):
        fields, field = {}, None
        for line in block.splitlines():
            match = re.match(r"(msgctxt|msgid|msgstr)\b", line)
            field = match.group(1) if match else field
            if field and not line.startswith("#"):
                fields[field] = fields.get(field, "") + "".join(QUOTED.findall(line))
        if fields.get("msgctxt"):
            out[fields["msgctxt"]] = (fields["msgid"], fields.get("msgstr", ""))
    return out


def main():
    old = known()
    entries = list(messages())
    if "--missing" in sys.argv:
        for name, english in entries:
            if not old.get(name, ("", ""))[1] or old[name][0] != english:
                print(f"{name}\t{english}")
        return
    blocks = [HEADER]
    for name, english in entries:
        was, translated = old.get(name, (english, ""))
        fuzzy = "#, fuzzy\n" if translated and was != english else ""
        blocks.append(f'{fuzzy}msgctxt "{name}"\nmsgid "{english}"\nmsgstr "{translated}"\n')
    PO.parent.mkdir(exist_ok=True)
    PO.write_text("\n".join(blocks))


if __name__ == "__main__":
    main()
