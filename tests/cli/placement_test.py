"""How llama.cpp's flags deal a model to cards and host memory."""

import json
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


class Placement(unittest.TestCase):
    def run_it(self, *words):
        done = subprocess.run([PROGRAM, *words], capture_output=True, timeout=120, text=True)
        return done.returncode, done.stdout, done.stderr

    def report(self, *words):
        code, out, err = self.run_it("fit", "llama-3.1-8b", "--engine", "llama.cpp", "--json", *words)
        self.assertIn(code, (0, 1), err)
        answer = json.loads(out)
        return answer["inputs"]["plan"], answer["results"]["rows"][0]["report"]

    def test_names_of_both_lengths(self):
        two = ["--on", "2xrtx-4090", "--quant", "q8_0"]
        _, short = self.report(*two, "-sm", "row", "-mg", "1", "-ts", "3,1")
        asked, full = self.report(*two, "--split-mode", "row", "--main-gpu", "1", "--tensor-split=3,1")
        self.assertEqual(short, full)
        self.assertEqual((asked["split_mode"], asked["main_gpu"], asked["tensor_split"]),
                         ("row", 1, [3, 1]))
        self.assertEqual(full["plan"]["text"], "pp2 split-row main-gpu1 shares3,1")
        _, slashes = self.report(*two, "-ts", "3/1", "-sm", "row", "-mg", "1")
        self.assertEqual(slashes, full)

    def test_rows_are_not_timed(self):
        _, rows = self.report("--on", "2xrtx-4090", "-sm", "row")
        _, layers = self.report("--on", "2xrtx-4090", "--pp", "2")
        self.assertNotIn("decode_tokens_per_second_user", rows["metrics"])
        self.assertIn("decode_tokens_per_second_user", layers["metrics"])

    def test_shares_move_layers(self):
        _, even = self.report("--on", "2xrtx-4090", "-ts", "1,1")
        _, uneven = self.report("--on", "2xrtx-4090", "-ts", "3,1")
        first, last = (r["memory_per_stage"] for r in (even, uneven))
        self.assertLess(first[0]["kv_cache_bytes"], last[0]["kv_cache_bytes"])
        self.assertEqual(sum(c["kv_cache_bytes"] for c in first),
                         sum(c["kv_cache_bytes"] for c in last))
        self.assertEqual(uneven["fullest_stage"], 0)

    def test_one_card_of_two(self):
        _, one = self.report("--on", "rtx-4090")
        _, none = self.report("--on", "2xrtx-4090", "-sm", "none")
        self.assertEqual(one["memory_per_rank"], none["memory_per_rank"])

    def test_refusals(self):
        cases = [
            (["-ts", "1,1,1"], "3 shares for 2 cards"),
            (["-ts", "0,0"], "does not say how much"),
            (["-ts", "1,-1"], "does not say how much"),
            (["-ts", "1,x"], "does not say how much"),
            (["-ts", "1,,1"], "does not say how much"),
            (["-ts", "inf,1"], "does not say how much"),
            (["-ts", ",".join(["1"] * 17)], "does not say how much"),
            (["-sm", "column"], "layer, row, none"),
            (["-sm", "row", "-mg", "2"], "card 2 of 2"),
            (["-mg", "1"], "none of them is the main one"),
            (["-sm", "none", "-ts", "1,1"], "one card takes everything"),
        ]
        for words, said in cases:
            code, out, err = self.run_it("fit", "llama-3.1-8b", "--engine", "llama.cpp", "--on",
                                         "2xrtx-4090", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(said, err, words)
        for words in (["-ngl", "8"], ["-ncmoe", "8"], ["-sm", "row"], ["-ts", "1,1"]):
            code, out, err = self.run_it("fit", "llama-3.1-8b", "--engine", "vllm", "--on",
                                         "2xrtx-4090", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn("vllm", err)
            self.assertIn("--engine llama.cpp", err)

    def test_what_does_not_fit_whole_fits_in_part(self):
        words = ["fit", "llama-2-13b", "--quant", "q8_0", "--on", "rtx-3060-12gb"]
        code, out, _ = self.run_it(*words, "--one-line")
        self.assertEqual(code, 1)
        offered = re.search(r"It fits with --engine llama.cpp --gpu-layers (\d+):", out)
        self.assertTrue(offered, out)
        n = offered[1]
        again = [*words, "--engine", "llama.cpp", "--one-line", "--gpu-layers"]
        self.assertEqual(self.run_it(*again, n)[0], 0)
        self.assertEqual(self.run_it(*again, str(int(n) + 1))[0], 1)
        code, out, _ = self.run_it(*words, "--json")
        nearest = json.loads(out)["results"]["in_part"]
        self.assertEqual(nearest["flags"], "--engine llama.cpp --gpu-layers " + n)
        self.assertEqual(nearest["report"]["plan"]["gpu_layers"], int(n))
        self.assertGreater(nearest["report"]["host_memory_bytes"], 0)
        code, out, _ = self.run_it(*words, "--one-line", "--lang", "zh")
        self.assertIn("--gpu-layers " + n, out)


if __name__ == "__main__":
    unittest.main()
