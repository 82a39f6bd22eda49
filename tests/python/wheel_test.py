#!/usr/bin/env python3
"""Builds the wheel and uses it in a virtual environment that has torch, what torch needs, and nothing else.

    wheel_test.py SOURCE BUILD

Runs with the Python whose torch the build uses, which has scikit-build-core besides.
"""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import venv
import zipfile

SOURCE, BUILD = (pathlib.Path(word).absolute() for word in sys.argv[1:3])
WORK = BUILD / "wheel_test"

FIRST_LINES = """
import torch
import strait

x = torch.randn(100, 64, 8, 8)
payload = strait.compress(x, "topk:0.1")
y = strait.decompress(payload, "topk:0.1", shape=x.shape)
assert payload.dtype == torch.uint8 and torch.equal(y, strait.reconstruct(x, "topk:0.1"))
kept = x.flatten(1).abs().topk(410, dim=1)  # ceil(0.1 * 4096)
assert torch.equal(y.flatten(1), torch.zeros(100, 4096).scatter(1, kept.indices, x.flatten(1).gather(1, kept.indices)))
assert strait.wire_bytes("quant:4", x.shape) == strait.compress(x, "quant:4").numel() == 8 + x.numel() // 2
model = torch.nn.Sequential(torch.nn.Linear(8, 8), strait.Boundary("quant:4", "topk:0.1", feedback="ef21", slots=100))
model(torch.randn(5, 8)).sum().backward()
assert model[1].bytes().messages == 2
try:
    import numpy
except ImportError:
    print("right, without numpy")
"""


def run(*words, fails=False, **options):
    """What a command prints; an AssertionError with all of it where it fails, or, where it is to fail, does not."""
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    output = result.stdout + result.stderr
    assert (result.returncode != 0) == fails, f"{' '.join(map(str, words))}: status {result.returncode}\n{output}"
    return output


def with_dependencies(name, found=None):
    """The installed packages that one needs, itself too."""
    found = {} if found is None else found
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:  # one that is needed elsewhere
        return found
    if package.name not in found:
        found[package.name] = package
        for line in package.requires or []:
            if "extra ==" not in line:
                with_dependencies(line.split(";")[0].strip().split(" ")[0].split("<")[0].split(">")[0].split("=")[0]
                                  .split("!")[0].split("~")[0].split("[")[0], found)
    return found


def make_environment(folder):
    """A virtual environment with links to torch and what it needs; gives its Python."""
    venv.create(folder, clear=True, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in with_dependencies("torch").values():
        for name in {file.parts[0] for file in package.files if file.parts[0] not in {"..", "__pycache__"}}:
            if not (site / name).exists():
                (site / name).symlink_to(package.locate_file(name))
    return folder / "bin" / "python3"


def make_wheel(folder, **definitions):
    """The wheel, alone in a folder, of a build with these variables of CMake."""
    shutil.rmtree(folder, ignore_errors=True)
    # Beside the build, with its compiler and warnings, so that ccache has most of it.
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    defined = {"STRAIT_WERROR": "ON", **definitions}
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder,
        f"--config-settings=build-dir={BUILD}-wheel",
        *(f"--config-settings=cmake.define.{name}={value}" for name, value in defined.items()), SOURCE,
        env={**os.environ, "CXX": compiler})
    (wheel,) = folder.iterdir()
    return wheel


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = make_wheel(WORK / "wheels")
        cls.python = make_environment(WORK / "environment")
        run(cls.python, "-m", "pip", "install", "--no-index", "--no-deps", cls.wheel)

    def test_the_first_lines_of_the_documentation_work(self):
        said = run(self.python, "-I", "-c", FIRST_LINES, cwd=WORK)
        self.assertIn("right, without numpy", said)

    def test_the_wheel_holds_the_package_and_no_more(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        ours = {path.name for path in (SOURCE / "python" / "strait").iterdir() if path.name != "__pycache__"}
        found = {pathlib.PurePosixPath(name).name for name in names if name.startswith("strait/")}
        (module,) = [name for name in found if name.startswith("_C.") and name.endswith(".so")]
        self.assertEqual(found, ours | {module, "_built_with.py"})
        self.assertTrue(all(name.startswith(("strait/", "strait-")) for name in names), names)
        self.assertTrue(any(name.endswith("LICENSE") for name in names), names)

    def test_the_program_comes_with_it_where_that_is_asked_for(self):
        wheel = make_wheel(WORK / "wheel_with_program", STRAIT_CLI="ON")
        python = make_environment(WORK / "environment_with_program")
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
        program = python.parent / "strait"
        self.assertRegex(run(program, "--version"), r"^strait 0\.1\.0.* \(LibTorch 2\.\d+")
        self.assertRegex(run(program, "--help"), r"\n  report ")
        loaded = run(program, env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"})
        self.assertRegex(loaded, rf"libtorch_cpu\.so => {python.parent}/\.\./lib/python3\.\d+/site-packages/torch/lib/")
        run(python, "-I", "-c", FIRST_LINES, cwd=WORK)

    def test_another_torch_is_named(self):
        built_with = next((WORK / "environment").glob("lib/python*/site-packages/strait/_built_with.py"))
        text = built_with.read_text()
        built_with.write_text('torch = "2.4.0"\n')
        try:
            said = run(self.python, "-I", "-c", "import strait", cwd=WORK, fails=True)
        finally:
            built_with.write_text(text)
        self.assertRegex(said.splitlines()[-1], r"^ImportError: strait was built with torch 2\.4\.0, found 2\.\d+")

    def test_a_build_finds_the_torch_that_isolation_hides(self):
        hiding = WORK / "hiding"  # as pip does it
        hiding.mkdir(exist_ok=True)
        (hiding / "sitecustomize.py").write_text(
            "import sys, sysconfig\nsys.path = [path for path in sys.path if path != sysconfig.get_path('purelib')]\n")
        environment = {**os.environ, "STRAIT_TORCH": sys.executable, "PYTHONPATH": str(hiding)}
        run(sys.executable, "-c", "import torch", env=environment, fails=True)
        said = run(SOURCE / "scripts" / "find_torch", env=environment).splitlines()
        self.assertTrue(pathlib.Path(said[0], "version.py").is_file(), said)
        bare = WORK / "bare"
        venv.create(bare, clear=True)
        environment["STRAIT_TORCH"] = str(bare / "bin" / "python3")
        self.assertRegex(run(SOURCE / "scripts" / "find_torch", env=environment, fails=True),
                         r"^find_torch: .* has no torch of 2.4 or later; [^\n]*\n$")


if __name__ == "__main__":
    WORK.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
