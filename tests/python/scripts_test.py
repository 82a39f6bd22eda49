#!/usr/bin/env python3
"""What scripts/configure, fuzz/run, scripts/findings_figures and scripts/device/tests.sh do before they call anything that takes
long, what scripts/device/paper.sh does where something fails, and that fuzz/README.md names every target. Scripts stand for CMake
and others."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Scripts(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="strait scripts "))
        self.addCleanup(shutil.rmtree, self.folder)

    def stand_in(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def copy(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path)
        return path

    def run_script(self, script, *words, path="/usr/bin:/bin"):
        """Exit status and what was said."""
        done = subprocess.run([script, *words], env={"PATH": f"{self.folder}/bin:{path}"}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def test_the_python_package_is_configured_with_the_torch_of_a_python_alone(self):
        script = self.copy("scripts/configure")
        self.stand_in("bin/cmake", 'echo "-- LibTorch $*"')
        both = "-DSTRAIT_TESTS={0} -DSTRAIT_BENCH={0} "
        for torch, found, package in (("", False, "OFF"), ("/torch", False, "ON"), ("", True, "OFF"), ("/torch", True, None)):
            self.stand_in("scripts/find_torch", f"echo {torch}")
            (self.folder / "build").mkdir(exist_ok=True)
            (self.folder / "build/CMakeCache.txt").touch()
            said = self.run_script(script, *["program"] * found)
            words = ("" if found else both.format("ON")) + (f"-DSTRAIT_PYTHON={package}" if package else "")
            self.assertEqual(said[0], 0)
            self.assertEqual(said[1].split(), f"configure: LibTorch --preset release {words}".split())
        shutil.rmtree(self.folder / "build")
        self.assertEqual(self.run_script(script, "program")[1].split(),
                         f"configure: LibTorch --preset release {both.format('OFF')}".split())

    def test_fuzz_run_takes_a_number_of_seconds(self):
        for words in (["codec"], ["0"], ["-1", "codec"], ["1.5"]):
            self.assertEqual(self.run_script(ROOT / "fuzz/run", *words),
                             (2, f"fuzz/run: expected a number of seconds, found {words[0]}\n"))

    def test_findings_figures_says_that_it_has_nothing_to_draw(self):
        status, said = self.run_script(sys.executable, ROOT / "scripts/findings_figures", str(self.folder))
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"^findings_figures: {re.escape(str(self.folder))}: expected one of recipes.jsonl, [^\n]+, found none\n$")

    def test_what_the_device_tests_lack_is_a_line(self):
        script = self.copy("scripts/device/tests.sh")
        for program, does in (("nvidia-smi", "echo 9.0"), ("python3", "echo OFF"), ("cmake", "exit 1"), ("ctest", "exit 1")):
            self.stand_in(f"bin/{program}", does)
        status, said = self.run_script(script, str(self.folder / "device"))
        self.assertEqual((status, said), (1, f"tests.sh: CMake failed, see {self.folder}/device/build.txt\n"))
        (self.folder / "bin/nvidia-smi").unlink()
        self.stand_in("bin/dirname", f'echo "{script.parent}"')
        status, said = self.run_script("/bin/sh", script, path="")
        self.assertEqual((status, said), (1, "tests.sh: there is no nvidia-smi in PATH\n"))

    def test_a_table_of_the_paper_that_fails_is_named_and_does_not_keep_the_others_from_being_trained(self):
        script = self.copy("scripts/device/paper.sh")
        self.stand_in("scripts/collect_runs", 'echo "collected $2"; case $1 in *table3) exit 2;; esac')

        def said(status, *tables):
            """Where the sweep of table 2 ends with this status."""
            self.stand_in("build/strait", f'echo "trained $2"; case $2 in *table2.toml) exit {status};; esac')
            return self.run_script(script, *tables)

        def did(*tables):
            return "".join(f"trained experiments/paper/table{table}.toml\ncollected docs/results/paper/table{table}.jsonl\n" for table in tables)

        self.assertEqual(said(0, "1", "2"), (0, did(1, 2)))
        self.assertEqual(said(1), (1, did(1, 2, 3, 4, 5) + "paper.sh: failed, as said above: table2 table3\n"))
        self.assertEqual(said(130), (130, did(1) + "trained experiments/paper/table2.toml\n"))

    def test_every_fuzz_target_is_described_and_has_seeds(self):
        targets = {path.name.removesuffix("_fuzz.cpp") for path in (ROOT / "fuzz").glob("*_fuzz.cpp")}
        page = (ROOT / "fuzz/README.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)), targets)
        self.assertEqual({path.name for path in (ROOT / "fuzz/corpus").iterdir() if any(path.iterdir())}, targets)


if __name__ == "__main__":
    unittest.main()
