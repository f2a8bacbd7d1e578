"""ONNX files that are cut, circular, impossible or of unknown make: a message that names the file
and the node, exit code 2, no hang.

usage: strange_onnx_test.py PROGRAM TOOLS_FOLDER
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = None
seeds = None


class StrangeOnnx(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name) / "m.onnx"

    def inspect(self, data, *more):
        self.path.write_bytes(data)
        return subprocess.run([PROGRAM, "inspect", str(self.path), *more], capture_output=True,
                              text=True, timeout=20, stdin=subprocess.DEVNULL,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder.name,
                                   "COLUMNS": "400"})

    def refused(self, data, *words, more=()):
        done = self.inspect(data, *more)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("trigon: "), done.stderr)
        for w in words:
            self.assertIn(w, done.stderr)

    def graph(self, nodes, tensors=(), shape=(1, 3, 8, 8), **kind):
        return seeds.model(seeds.graph(nodes, [seeds.value("x", list(shape))],
                                       [seeds.value("y", [])], tensors), **kind)

    def test_cut_anywhere(self):
        whole = seeds.conv_net()
        for n in list(range(0, 200)) + list(range(200, len(whole), 97)):
            done = self.inspect(whole[:n], "--image", "32")
            self.assertIn(done.returncode, (0, 2), n)
            if n < 40:
                self.assertEqual(done.returncode, 2, n)

    def test_not_onnx(self):
        self.refused(b"", "ONNX")
        self.refused(b"GGUF" + b"\0" * 64, "m.onnx")
        self.refused(b"\xff" * 4096, "m.onnx")
        self.refused(b"{}\n" * 100, "m.onnx")

    def test_circle(self):
        data = self.graph([seeds.node("Add", ["x", "b"], ["a"]), seeds.node("Relu", ["a"], ["b"]),
                           seeds.node("Relu", ["b"], ["y"])])
        self.refused(data, "m.onnx", "Add a", "b")

    def test_nothing_writes_it(self):
        self.refused(self.graph([seeds.node("Relu", ["lost"], ["y"])]), "lost", "Relu y")
        self.refused(self.graph([seeds.node("Relu", ["x"], ["z"])]), "y")
        self.refused(self.graph([seeds.node("Relu", ["x"], ["y"])] * 2), "y")

    def test_impossible_sizes(self):
        conv = [seeds.node("Conv", ["x", "w"], ["y"])]
        self.refused(self.graph(conv, [seeds.tensor("w", [8, 3, -3, 3])]), "'w'")
        self.refused(self.graph(conv, [seeds.tensor("w", [1 << 62, 3, 3, 3])]), "'w'")
        self.refused(self.graph(conv, [seeds.tensor("w", [1 << 40, 3, 3, 3])]), "w")
        self.refused(self.graph(conv, [seeds.weight("w", [8, 4, 3, 3])]), "1x3x8x8", "8x4x3x3")
        self.refused(self.graph(conv, [seeds.weight("w", [8, 3])]), "8x3")
        self.refused(self.graph(conv, [seeds.weight("w", [8, 3, 9, 9])]), "Conv y")
        self.refused(self.graph([seeds.node("Relu", ["x"], ["y"])], shape=(1, 3, -8, 8)))
        self.refused(self.graph([seeds.node("Relu", ["x"], ["y"])], shape=(1, 1 << 39, 1 << 39)))
        tile = [seeds.node("Tile", ["x", "n"], ["y"])]
        self.refused(self.graph(tile, [seeds.tensor("n", [4], 7, [1 << 62, 4, 4, 4])]), "Tile y")

    def test_shapes_that_data_decide(self):
        data = self.graph([seeds.node("Cast", ["x"], ["s"], to=7),
                           seeds.node("Reshape", ["x", "s"], ["y"])])
        self.refused(data, "Reshape y", "data")

    def test_unknown_operator(self):
        self.refused(self.graph([seeds.node("Frobnicate", ["x"], ["y"], domain="com.acme")]),
                     "Frobnicate", "com.acme", "y")

    def test_functions_that_call_themselves(self):
        def call(name, domain="local"):
            return seeds.node(name, ["a"], ["b"], domain=domain)

        data = self.graph([seeds.node("F", ["x"], ["y"], domain="local")],
                          functions=[seeds.function("F", [call("G")], ["a"], ["b"]),
                                     seeds.function("G", [call("F")], ["a"], ["b"])])
        self.refused(data, "F", "calls itself")

    def test_deep_graphs(self):
        inner = seeds.graph([seeds.node("Identity", ["x"], ["o"])], [], [seeds.value("o", [])])
        for _ in range(200):
            inner = seeds.graph([seeds.node("If", ["flag"], ["o"], then_branch=("graph", inner),
                                            else_branch=("graph", inner[:0]))], [],
                                [seeds.value("o", [])])
        self.refused(self.graph([seeds.node("If", ["x"], ["y"], then_branch=("graph", inner),
                                            else_branch=("graph", inner))]), "m.onnx")

    def test_branches_that_double(self):
        inner = seeds.graph([seeds.node("Relu", ["x"], ["o"])], [], [seeds.value("o", [])])
        for _ in range(12):
            inner = seeds.graph([seeds.node("If", ["x"], ["o"], then_branch=("graph", inner),
                                            else_branch=("graph", inner))], [],
                                [seeds.value("o", [])])
        done = self.inspect(self.graph([seeds.node("If", ["x"], ["y"], then_branch=("graph", inner),
                                                   else_branch=("graph", inner))]))
        self.assertIn(done.returncode, (0, 2))

    def test_loops(self):
        body = seeds.graph([seeds.node("Concat", ["a", "a"], ["b"], axis=0)],
                           [seeds.value("i", [], 7), seeds.value("c", [], 9),
                            seeds.value("a", [1])],
                           [seeds.value("c", [], 9), seeds.value("b", [])])
        loop = [seeds.node("Loop", ["n", "", "x"], ["y"], body=("graph", body))]
        self.refused(self.graph(loop, [seeds.tensor("n", [], 7, [3])]), "Loop y", "b")
        self.refused(self.graph(loop, [seeds.tensor("n", [], 7, [1 << 60])]), "Loop y")
        count = [seeds.node("Cast", ["x"], ["n"], to=7)] + loop
        self.refused(self.graph(count, shape=(1,)), "Loop y", "data")

    def test_open_dimensions(self):
        data = seeds.conv_net()
        self.refused(data, "x (1x3xheightxwidth)", "--shape x=1x3x224x224")
        self.assertEqual(self.inspect(data, "--shape", "x=1x3x64x64").returncode, 0)
        self.assertEqual(self.inspect(data, "--image", "64").returncode, 0)
        self.refused(data, "x", more=("--shape", "z=1x3x64x64"))
        self.refused(data, "batch", more=("--shape", "x=4x3x64x64"))
        self.refused(data, more=("--shape", "x=1x4x64x64"))
        self.refused(data, more=("--shape", "x=1x3x64"))
        self.refused(data, "--audio", more=("--audio", "3s"))
        self.refused(data, "--tokens-per-item", more=("--tokens-per-item", "3"))
        text = seeds.attention_net()
        self.refused(text, "--shape ids=1x128")
        self.assertEqual(self.inspect(text, "--tokens-per-item", "32").returncode, 0)
        self.refused(text, "--image", more=("--image", "32", "--tokens-per-item", "32"))

    def test_what_is_read(self):
        done = self.inspect(seeds.conv_net(), "--image", "32", "--json")
        self.assertEqual(done.returncode, 0, done)
        results = json.loads(done.stdout)["results"]
        # 8*3*9 + 8 of the convolution, 2 * 8 of the norm, 8 * 10 + 10 of the last layer.
        self.assertEqual(results["parameters"]["total"], 224 + 16 + 90)
        graph = results["components"][0]["graph"]
        # 16 x 16 positions of 216 products, and 80.
        self.assertEqual(graph["multiply_accumulates"], 256 * 216 + 80)
        self.assertEqual(results["item"], {"unit": "image", "size": [32, 32], "steps": 1,
                                           "audio_seconds": 0})
        for name, seed in seeds.SEEDS.items():
            more = {"conv": ["--image", "32"], "attention": ["--tokens-per-item", "8"]}
            done = self.inspect(seed(), *more.get(name, []))
            self.assertEqual(done.returncode, 0, (name, done.stderr))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    sys.path.insert(0, sys.argv.pop(1))
    sys.dont_write_bytecode = True
    import onnx_seeds as seeds
    unittest.main()
