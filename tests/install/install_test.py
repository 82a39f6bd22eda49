#!/usr/bin/env python3
"""Installs the build into a folder of its own and uses it as others would: every folder of examples/ with find_package,
codec_only with pkg-config alone and with strait as a part of another project.

    install_test.py SOURCE BUILD TORCH [ccache]

TORCH is the folder of the LibTorch that the build uses. Needs numpy: what codec_only prints is computed again with it.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import numpy

SOURCE, BUILD, TORCH = (pathlib.Path(word) for word in sys.argv[1:4])
WORK = BUILD / "install_test"
PREFIX = WORK / "prefix"
ENVIRONMENT = {**os.environ, "CMAKE_GENERATOR": "Ninja", "CMAKE_BUILD_TYPE": "Release"}
if len(sys.argv) > 4:
    ENVIRONMENT["CMAKE_CXX_COMPILER_LAUNCHER"] = sys.argv[4]

SPECS = ["none", "fp16", "quant:4", "topk:0.25,index=bitmap"]
HEADERS = ["codecs", "pipeline", "models", "train", "experiment", "planning", "report"]


def run(*words, fails=False, **options):
    """What a command prints; an AssertionError with all of it where it fails, or, where it is to fail, does not."""
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=ENVIRONMENT, check=False,
                            **options)
    output = result.stdout + result.stderr
    assert (result.returncode != 0) == fails, f"{' '.join(map(str, words))}: status {result.returncode}\n{output}"
    return output


def configure(source, build, *options, fails=False):
    return run("cmake", "-S", source, "-B", build, *options, fails=fails)


def expected_lines():
    """What codec_only prints, by numpy and the sizes that docs/wire_format.md gives."""
    i = numpy.arange(4096, dtype=numpy.int64)
    x = (((i * 7919) % 2003 - 1001).astype(numpy.float32) / numpy.float32(300)).reshape(8, 512).astype(numpy.float64)
    low, high = x.min(), x.max()
    codes = numpy.rint((x - low) / (high - low) * 15)
    kept = numpy.zeros_like(x)
    for row, out in zip(x, kept):
        places = numpy.argsort(-numpy.abs(row), kind="stable")[:128]
        out[places] = row[places]
    received = [x, x.astype(numpy.float16), low + codes / 15 * (high - low), kept]
    # quant: the ends of the range, and the codes. topk: of each row a code, a length, a bitmap and the values.
    sizes = [4 * 4096, 2 * 4096, 8 + 4096 // 2, 8 * (1 + 4 + 512 // 8 + 4 * 128)]
    lines = []
    for spec, y, size in zip(SPECS, received, sizes):
        error = x - y
        relative = numpy.sqrt((error**2).sum() / (x**2).sum())
        lines.append((spec, size, relative, numpy.abs(error).max()))
    return lines


def expected_losses():
    """The losses that own_codec prints: its network, its codec and their gradients by numpy."""
    i = numpy.arange
    x = ((i(256) * 37 % 101).astype(numpy.float32) / 50 - 1).reshape(32, 8).astype(numpy.float64)
    target = (x**2).mean(1, keepdims=True)
    a = ((i(128) * 29 % 83) / 83 - 0.5).reshape(8, 16)
    b = ((i(16) * 31 % 17) / 17 - 0.5).reshape(16, 1)

    def sent(message):
        return numpy.abs(message).mean(1, keepdims=True) * numpy.where(message < 0, -1, 1)

    losses = []
    for _ in range(41):
        hidden = numpy.tanh(x @ a)
        received = sent(hidden)
        error = received @ b - target
        losses.append((error**2).mean())
        gradient = 2 * error / error.size
        back = sent(gradient @ b.T)
        b = b - 0.2 * received.T @ gradient
        a = a - 0.2 * x.T @ (back * (1 - hidden**2))
    return losses[::10]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        run("cmake", "--install", BUILD, "--prefix", PREFIX)

    def check_codec_only(self, program):
        lines = run(program, *SPECS).splitlines()
        self.assertEqual(len(lines), len(SPECS))
        for line, (spec, size, relative, largest) in zip(lines, expected_lines()):
            found = re.fullmatch(r"(\S+): (\d+) of 16384 bytes, relative error (\S+), largest error (\S+)", line)
            self.assertTrue(found, line)
            self.assertEqual(found[1], spec)
            self.assertEqual(int(found[2]), size, line)
            self.assertAlmostEqual(float(found[3]), relative, delta=1e-6, msg=line)
            self.assertAlmostEqual(float(found[4]), largest, delta=1e-5, msg=line)

    def test_examples(self):
        examples = sorted(path.parent for path in SOURCE.glob("examples/*/CMakeLists.txt"))
        self.assertIn("codec_only", [example.name for example in examples])

        def try_out(example):
            build = WORK / "examples" / example.name
            configure(example, build, f"-DCMAKE_PREFIX_PATH={PREFIX}")
            run("cmake", "--build", build)
            run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # each has one file to compile
            tried = [(example.name, pool.submit(try_out, example)) for example in examples]
        for name, future in tried:
            with self.subTest(name):
                future.result()
        self.check_codec_only(WORK / "examples/codec_only/codec_only")
        lines = [line.split() for line in run(WORK / "examples/own_codec/own_codec").splitlines()]
        self.assertEqual([int(line[0]) for line in lines], [0, 10, 20, 30, 40])
        for line, loss in zip(lines, expected_losses()):
            self.assertAlmostEqual(float(line[1]), loss, delta=1e-4 * loss)
            # Two messages of 32 rows, each a header, and of each row a float32 and 16 bits.
            self.assertEqual(int(line[2]), 2 * (64 + 32 * (4 + 2)))

    def test_pkg_config(self):
        pkg_config = PREFIX / "lib/pkgconfig"
        ENVIRONMENT["PKG_CONFIG_PATH"] = str(pkg_config)
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "strait-codecs"))
        program = WORK / "codec_only"
        run("c++", "-std=c++20", SOURCE / "examples/codec_only/main.cpp", "-o", program, *flags)
        self.check_codec_only(program)
        # What a file names has all that its libraries call, whichever of them a program needs.
        empty = WORK / "empty.cpp"
        empty.write_text("int main() {}\n", encoding="utf-8")
        for name in HEADERS:
            words = shlex.split(run("pkg-config", "--libs", f"strait-{name}"))
            whole = [word for word in words if word.startswith(("-L", "-lstrait_"))]
            run("c++", empty, "-o", WORK / "empty", "-Wl,--whole-archive", *whole, "-Wl,--no-whole-archive", *words)
        # Each library stands before those that it uses.
        libraries = re.findall(r"-lstrait_(\w+)", run("pkg-config", "--libs", "strait-train"))
        self.assertEqual(len(libraries), len(set(libraries)))
        for first, second in [("train", "pipeline"), ("pipeline", "boundary"), ("boundary", "links"), ("links", "codecs"),
                              ("codecs", "kernels"), ("train", "data"), ("data", "tokenizer"), ("kernels", "base")]:
            self.assertLess(libraries.index(first), libraries.index(second))

    def test_subproject(self):
        parent = WORK / "parent"
        parent.mkdir(parents=True)
        (parent / "main.cpp").symlink_to(SOURCE / "examples/codec_only/main.cpp")
        (parent / "CMakeLists.txt").write_text(
            f"""cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
add_subdirectory("{SOURCE}" strait)
add_executable(codec_only main.cpp)
target_link_libraries(codec_only PRIVATE strait::codecs)
add_library(other STATIC main.cpp)
""", encoding="utf-8")
        build = WORK / "parent_build"
        without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("CLI11", "GTest", "rapidcheck", "benchmark")]
        configure(parent, build, f"-DCMAKE_PREFIX_PATH={TORCH}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *without)
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        for needless in ("STRAIT_CHART_LIBRARY", "STRAIT_BROWSER"):
            self.assertFalse(needless in cache, needless)
        entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
        commands = {re.search(r" -o (\S+)", entry["command"])[1]: entry["command"] for entry in entries}
        words = commands["CMakeFiles/other.dir/main.cpp.o"].split()
        self.assertEqual([word for word in words if word.startswith(("-W", "-f", "-std", "-I", "-isystem", "-g"))], [])
        ours = next(command for output, command in commands.items() if "strait_codecs.dir" in output)
        self.assertIn(" -ffp-contract=off ", ours)
        self.assertNotIn(" -Werror ", ours)
        run("cmake", "--build", build, "--target", "codec_only")
        self.check_codec_only(build / "codec_only")
        self.assertEqual([path.name for path in build.rglob("*.a") if "strait_" in path.name and "codecs" not in path.name
                          and path.name not in ("libstrait_base.a", "libstrait_wire.a", "libstrait_kernels.a")], [])

    def test_options_that_do_not_fit(self):
        for option, needed in [("TESTS", "CLI"), ("TESTS", "REPORT"), ("FUZZ", "TESTS")]:
            output = configure(SOURCE, WORK / "refused", f"-DSTRAIT_{option}=ON", f"-DSTRAIT_{needed}=OFF", fails=True)
            self.assertIn(f"STRAIT_{option}=ON needs STRAIT_{needed}=ON: ", output)
            shutil.rmtree(WORK / "refused")

    def test_the_program_runs(self):
        self.assertIn("topk", run(PREFIX / "bin/strait", "codec", "list"))

    def test_std_filesystem_is_the_compilers(self):
        """PyTorch's wheels show functions of it that are those of another compiler."""
        done = subprocess.run([PREFIX / "bin/strait", "codec", "list"], env={**os.environ, "LD_DEBUG": "bindings"},
                              capture_output=True, text=True, check=True)
        bound = [line for line in done.stderr.splitlines() if "symbol" in line and "St10filesystem" in line]
        self.assertTrue(bound)
        self.assertEqual([line for line in bound if re.search(r" to \S*/libtorch\S* ", line)], [])

    def test_no_path_of_the_source_tree(self):
        torch = str(TORCH).encode()
        for path in PREFIX.rglob("*"):
            if path.is_file():
                self.assertFalse(str(SOURCE).encode() + b"/" in path.read_bytes().replace(torch, b""), str(path))

    def test_headers_are_complete(self):
        include = PREFIX / "include"
        for name in HEADERS:
            self.assertTrue((include / f"strait/{name}.h").is_file(), name)
        for path in include.rglob("*.h"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if found := re.match(r'\s*#\s*include\s*["<](strait/[^">]+)', line):
                    self.assertTrue((include / found[1]).is_file(), f"{path}: {line}")
        self.assertFalse((include / "strait/kernels").exists(), "kernels are no part of the public headers")

    def test_find_package_names_what_is_wrong(self):
        user = WORK / "user"
        user.mkdir()
        text = "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\nfind_package(strait REQUIRED {})\n"
        (user / "CMakeLists.txt").write_text(text.format("COMPONENTS codec"), encoding="utf-8")
        output = configure(user, WORK / "user_build", f"-DCMAKE_PREFIX_PATH={PREFIX}", fails=True)
        self.assertIn("strait has no component codec; expected one of: codecs, pipeline", " ".join(output.split()))
        # All components, each with what it needs.
        (user / "CMakeLists.txt").write_text(text.format(""), encoding="utf-8")
        configure(user, WORK / "user_build", f"-DCMAKE_PREFIX_PATH={PREFIX}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
