"""A table in a page that a script writes, between two comments."""
import re
import sys


def _pattern(opening, closing):
    return re.compile(rf"(<!-- {re.escape(opening)} -->\n).*?(<!-- {re.escape(closing)} -->)", re.S)


def find(page, opening, closing):
    """The match of the table in `page`, marks included; ends the program where they are missing."""
    found = _pattern(opening, closing).search(page.read_text())
    if not found:
        sys.exit(f"{page.name} has no <!-- {opening} --> markers")
    return found


def write_or_print(now, page, opening, closing, flags):
    """Puts the table `now` into `page` under --update, else prints it."""
    if "--update" not in flags:
        print(now, end="")
        return
    find(page, opening, closing)
    page.write_text(_pattern(opening, closing).sub(lambda m: m[1] + now + m[2], page.read_text()))
