"""Answers of every verb hold to data/schema/answer.schema.json, and their numbers to 9 digits."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

from json_schema import complaints

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = sys.argv.pop(1)
SCHEMA = json.loads((ROOT / "data/schema/answer.schema.json").read_text())
COMMANDS = [
    "fit llama-3.1-8b --on rtx-4090 --context 32k",
    "fit llama-3.1-405b --on rtx-4090",
    "fit llama-2-13b --quant q8_0 --on rtx-3060-12gb",
    "fit llama-3.1-8b --engine llama.cpp --on 2xrtx-4090 -sm row -mg 1 -ts 3,1",
    "fit llama-3.1-8b",
    "fit --on rtx-4090",
    "estimate llama-3.1-8b --on h100-sxm --concurrency 8 --isl 1000 --osl 300 --explain",
    "estimate llama-2-7b --on 8xa100-sxm-80gb --task train --tokens 10B --explain",
    "estimate resnet50 --on a100-sxm-80gb --task batch --explain",
    "estimate llama-3.1-8b --on h100-sxm --what-if bandwidth=2x --what-if quant=fp8",
    "compare h100-sxm 2x8xh100-sxm llama-3.1-8b --what-if network=2x,peak=2x",
    "recommend llama-3.1-8b --rate 2/s --vendor nvidia --max-gpus 4",
    "plan llama-3.1-8b --on 2x4xh100-sxm --task train --tokens 1B",
    "plan llama-3.1-70b --on 2xrtx-4090 --task train --tokens 1B",
    "plan llama-3.1-8b --on 4xh100-sxm --rate 20/s --isl 1000 --osl 300",
    "compare a100-sxm-80gb h100-sxm llama-3.1-8b",
    "inspect llama-3.1-8b",
    f"check {ROOT}/fuzz/corpus/oom_log/vllm-v1-length.log",
    f"check {ROOT}/fuzz/corpus/oom_log/deepspeed-estimate.log",
    f"check {ROOT}/fuzz/corpus/oom_log/llama-kv.log --model llama-3.1-8b --on rtx-4090",
    "catalog gpus --where vendor=amd",
    "catalog gpus h100-sxm",
    "catalog prices h100-sxm",
    "config",
    "version",
]


def ask(command):
    done = subprocess.run([PROGRAM, *command.split(), "--json"], capture_output=True, timeout=120)
    return done.stdout.decode()


class Schema(unittest.TestCase):
    def test_every_answer(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = ask(command)
                self.assertEqual(list(complaints(json.loads(text), SCHEMA)), [])
                for number in re.findall(r": (-?\d+\.\d+(?:e[+-]?\d+)?)", text):
                    digits = re.sub(r"e.*|[-.]", "", number).strip("0")
                    self.assertLessEqual(len(digits), 9, number)

    def test_inputs_state_every_default(self):
        inputs = json.loads(ask(COMMANDS[0]))["inputs"]
        self.assertEqual(inputs["job"]["input_tokens"] + inputs["job"]["output_tokens"], 32768)
        self.assertEqual(inputs["given"]["context"], {"value": "32k", "from": "--context"})
        self.assertTrue(inputs["assumptions"])

    def test_the_same_bytes_again(self):
        for command in (COMMANDS[6], COMMANDS[2]):
            self.assertEqual(ask(command), ask(command))

    def test_the_checker_finds_faults(self):
        answer = json.loads(ask("version"))
        answer["extra"] = 1
        answer["schema_version"] = 2
        answer["warnings"] = [{"id": "No Good", "args": [], "text": ""}]
        self.assertEqual(len(list(complaints(answer, SCHEMA))), 3)


if __name__ == "__main__":
    unittest.main()
