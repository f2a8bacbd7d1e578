"""The house rules themselves: each must complain about a tree that breaks it, and only then."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import rules

GOOD = {
    "src/ROOMS": "base\nplan\ncost\n",
    "src/base/message.hpp": "#pragma once\nenum class Room : int { base, plan, cost, app };\n",
    "src/base/messages.def": 'TRIGON_MESSAGE(a, "{0} of {1}")\nTRIGON_MESSAGE(b, "none")\n',
    "src/plan/plan.hpp": '#pragma once\n#include <vector>\n#include "base/message.hpp"\n',
    "src/cost/cost.cpp": '#include "cost/cost.hpp"\n#include "plan/plan.hpp"\n'
                         '// std::cout << exit(1); is only a comment\n'
                         'const char* s = "printf(std::format)";\n',
    "src/cost/cost.hpp": '#pragma once\n#include "base/message.hpp"\n',
    "app/cli/main.cpp": '#include "cost/cost.hpp"\n#include <cstdio>\nint main() { puts(""); }\n',
}


class Rules(unittest.TestCase):
    def complaints(self, rule, tree=()):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {**GOOD, **dict(tree)}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as notes:
                found = list(rules.RULES[rule](root))
            self.notes = notes.getvalue()
            return found

    def breaks(self, rule, name, text, part):
        found = self.complaints(rule, tree={name: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])
        self.assertIn(name, found[0])

    def test_a_good_tree_has_no_complaints(self):
        for rule in rules.RULES:
            self.assertEqual(self.complaints(rule), [], rule)

    def test_include_order(self):
        self.breaks("include_order", "src/base/x.cpp", '#include "plan/plan.hpp"\n', "comes after")
        self.breaks("include_order", "src/base/x.cpp", '#include <cost/cost.hpp>\n', "comes after")
        self.breaks("include_order", "src/base/x.cpp", '#include "../plan/plan.hpp"\n', "relative")
        self.breaks("include_order", "src/plan/x.cpp", '#include "plan.hpp"\n', "write the room")
        self.breaks("include_order", "src/extra/x.cpp", "", "not in src/ROOMS")
        found = self.complaints("include_order",
                                tree={"src/plan/x.cpp": '\n\n#include "cost/cost.hpp"\n'})
        self.assertIn("src/plan/x.cpp:3:", found[0])

    def test_own_header_first(self):
        late = '#include <vector>\n\n#include "plan/plan.hpp"\n'
        self.breaks("own_header_first", "src/plan/plan.cpp", late, "plan/plan.hpp first")
        self.assertEqual(self.complaints("own_header_first", tree={"src/plan/other.cpp": late}), [])

    def test_file_length(self):
        self.breaks("file_length", "src/plan/x.cpp", "\n" * 801, "801 lines")
        self.assertEqual(self.complaints("file_length", tree={"src/plan/x.cpp": "\n" * 401}), [])
        self.assertIn("src/plan/x.cpp", self.notes)

    def test_names(self):
        for name in ("src/plan/utils.cpp", "src/plan/plan_helpers.hpp", "src/common/x.cpp",
                     "app/cli/manager.cpp"):
            self.breaks("names", name, "", "says nothing")
        self.assertEqual(self.complaints("names", tree={"src/plan/commonality.cpp": ""}), [])

    def test_headers(self):
        self.breaks("headers", "src/plan/x.hpp", "\n", "#pragma once")
        for heavy in ("nlohmann/json.hpp", "toml++/toml.h", "CLI/CLI.hpp"):
            self.breaks("headers", "src/plan/x.hpp", f"#pragma once\n#include <{heavy}>\n", heavy)

    def test_quiet_library(self):
        for code in ("std::cout << 1;", 'printf("x");', 'std::fprintf(stderr, "x");', "exit(2);",
                     "std::exit(2);"):
            self.breaks("quiet_library", "src/plan/x.cpp", code, "prints or exits")
        for code in ("on_exit(2);", "snprintf(b, 3, f);", "state.exit(2);"):
            self.assertEqual(self.complaints("quiet_library", tree={"src/plan/x.cpp": code}), [])

    def test_language(self):
        for code in ('#include <format>\n', "auto s = std::format(x);\n",
                     "std::expected<int, int> e;\n"):
            self.breaks("language", "src/plan/x.cpp", code, "not in both compilers")

    def test_messages(self):
        def breaks(text, part):
            found = self.complaints("messages", tree={"src/base/messages.def": text})
            self.assertEqual(len(found), 1, found)
            self.assertIn(part, found[0])
        breaks('TRIGON_MESSAGE(a, "x")\nTRIGON_MESSAGE(a, "y")\n', "second message")
        breaks('TRIGON_MESSAGE(a, "{1} only")\n', "gap")
        breaks('TRIGON_MESSAGE(a, kText)\n', "an entry that is not")
        two_lines = 'TRIGON_MESSAGE(a,\n               "{0} "\n               "and {1}")\n'
        self.assertEqual(
            self.complaints("messages", tree={"src/base/messages.def": two_lines}), [])

    def test_formulas(self):
        code = 'inline constexpr Formula kv{"memory.kv_cache",\n "a * b"};\n'
        self.breaks("formulas", "src/plan/x.hpp", code, "docs/memory.md has no section on")
        for heading, complaints in (("## KV cache: `memory.kv_cache`", 0), ("## kv_cache", 0),
                                    ("text on kv_cache", 1), ("## kv_cache_of", 1)):
            found = self.complaints("formulas", tree={"src/plan/x.hpp": code,
                                                      "docs/memory.md": heading + "\n"})
            self.assertEqual(len(found), complaints, heading)

    def test_room_list(self):
        found = self.complaints("room_list", tree={"src/extra/x.cpp": ""})
        self.assertEqual(found, ["src/extra: not in src/ROOMS"])
        swapped = "#pragma once\nenum class Room : int { plan, base, cost, app };\n"
        self.assertEqual(len(self.complaints("room_list",
                                             tree={"src/base/message.hpp": swapped})), 1)


if __name__ == "__main__":
    unittest.main()
