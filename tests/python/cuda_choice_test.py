#!/usr/bin/env python3
"""Which nvcc cmake/cuda.cmake takes for the CUDA kernels, and what it says of others: scripts stand for compilers of several
versions, so that this needs none."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Stands for an nvcc: its version, what it compiles for, and what it says when it compiles.
NVCC = """#!/bin/sh
case "$1" in
  --version) echo "Cuda compilation tools, release {version}, V{version}.89" ;;
  --list-gpu-arch) printf '{architectures}' ;;
  *) echo "$*" >> "$(dirname "$0")/calls"; {compiles} ;;
esac
"""
CURRENT = r"compute_75\ncompute_80\ncompute_86\ncompute_89\ncompute_90\ncompute_100\ncompute_120\n"
OLD = r"compute_35\ncompute_75\ncompute_80\ncompute_86\ncompute_89\ncompute_90\n"


class CudaChoice(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="strait-cuda-"))
        self.addCleanup(subprocess.run, ["rm", "-r", str(self.folder)], check=True)

    def nvcc(self, version="13.0", architectures=CURRENT, compiles="exit 0"):
        path = self.folder / "nvcc"
        path.write_text(NVCC.format(version=version, architectures=architectures, compiles=compiles), encoding="utf-8")
        path.chmod(0o755)
        return path

    def configure(self, nvcc, **variables):
        """Exit status and what was said."""
        variables = {"PROJECT_SOURCE_DIR": ROOT, "PROJECT_BINARY_DIR": self.folder, "STRAIT_NVCC_PROGRAM": nvcc,
                     "STRAIT_TESTS": "ON", "STRAIT_TORCH_HAS_CUDA": "TRUE", "STRAIT_TORCH_HAS_STREAM_HANDLES": "TRUE",
                     "Torch_VERSION": "2.13.0", **variables}
        done = subprocess.run(["cmake", *(f"-D{name}={value}" for name, value in variables.items()), "-P",
                               ROOT / "cmake/cuda.cmake"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, " ".join(done.stdout.split())

    def refused(self, nvcc, reason, **variables):
        """AUTO says why nothing is compiled and goes on; ON ends there."""
        status, said = self.configure(nvcc, **variables)
        self.assertEqual((status, said), (0, f"-- CUDA kernels: not compiled, as {reason}"))
        status, said = self.configure(nvcc, STRAIT_CUDA="ON", **variables)
        self.assertNotEqual(status, 0)
        self.assertIn(f"cannot be compiled: {reason}", said)

    def calls(self):
        return (self.folder / "calls").read_text(encoding="utf-8")

    def test_a_current_one_compiles_for_all(self):
        status, said = self.configure(self.nvcc())
        self.assertEqual((status, said),
                         (0, "-- CUDA kernels: compiled by nvcc 13.0 for sm_75, sm_80, sm_86, sm_89, sm_90, sm_100"))
        self.assertIn("-gencode arch=compute_100,code=compute_100", self.calls())
        self.assertNotIn("-Werror", self.calls())

    def test_one_that_does_not_know_the_newest_compiles_for_the_others(self):
        status, said = self.configure(self.nvcc("12.4", OLD), STRAIT_WERROR="ON")
        self.assertEqual((status, said), (0, "-- CUDA kernels: compiled by nvcc 12.4 for sm_75, sm_80, sm_86, sm_89, sm_90"))
        self.assertIn("-gencode arch=compute_90,code=compute_90", self.calls())
        self.assertIn("-Werror all-warnings -Xcompiler=-Werror", self.calls())

    def test_an_architecture_with_features_counts_as_its_number(self):
        status, said = self.configure(self.nvcc(), STRAIT_CUDA_ARCHITECTURES="90a;10")
        self.assertEqual((status, said), (0, "-- CUDA kernels: compiled by nvcc 13.0 for sm_90a"))

    def test_one_that_cannot_compile_is_refused(self):
        says = "echo \"nvcc fatal : Value 'c++20' is not defined for option 'std'\" >&2; echo more >&2; exit 1"
        self.refused(self.nvcc("11.8", OLD, says), "nvcc 11.8 cannot compile with the C++ compiler and the options that they take: "
                     "nvcc fatal : Value 'c++20' is not defined for option 'std'")

    def test_one_for_other_cards_is_refused(self):
        self.refused(self.nvcc("9.0", r"compute_35\n"), "nvcc 9.0 compiles for none of STRAIT_CUDA_ARCHITECTURES")

    def test_one_of_another_cuda_than_torch_is_refused(self):
        self.refused(self.nvcc(), "nvcc 13.0 is not of the CUDA 12.8 that this LibTorch has", STRAIT_TORCH_CUDA_VERSION="12.8")
        for version in "13.0", "13.2":
            self.assertIn("compiled by nvcc 13.0", self.configure(self.nvcc(), STRAIT_TORCH_CUDA_VERSION=version)[1])
        self.assertIn("not of the CUDA 1.3", self.configure(self.nvcc(), STRAIT_TORCH_CUDA_VERSION="1.3")[1])

    def test_a_libtorch_without_handles_of_streams_has_no_kernels(self):
        self.refused(self.nvcc(), "LibTorch 2.10.0 does not give them its streams, which 2.11 and later do",
                     STRAIT_TORCH_HAS_STREAM_HANDLES="FALSE", Torch_VERSION="2.10.0")
        status, said = self.configure(self.nvcc(), STRAIT_TORCH_HAS_STREAM_HANDLES="FALSE", STRAIT_TORCH_HAS_CUDA="FALSE")
        self.assertEqual(status, 0)
        self.assertTrue(said.endswith("by the tests alone: this LibTorch has no CUDA"), said)

    def test_without_a_use_or_where_it_is_off_there_are_none(self):
        self.assertIn("not compiled, as STRAIT_CUDA is OFF", self.configure(self.nvcc(), STRAIT_CUDA="OFF")[1])
        self.assertIn("not compiled, as there is a sanitizer", self.configure(self.nvcc(), STRAIT_SANITIZE="address")[1])
        self.refused(self.nvcc(), "this LibTorch has no CUDA and there are no tests", STRAIT_TESTS="OFF",
                     STRAIT_TORCH_HAS_CUDA="FALSE")

    def test_an_object_is_compiled_once_in_a_folder_whose_name_has_a_blank(self):
        """It says in a list what it has read, and of which object."""
        lists = ('for word; do case $before in -MT) of=$word ;; -MF) into=$word ;; -c) from=$word ;; -o) out=$word ;; esac; '
                 'before=$word; done; : > "$out"; '
                 '[ -z "$into" ] || printf \'%s: %s\\n\' "$of" "$(echo "$from" | sed "s/ /\\\\\\\\ /g")" > "$into"')
        nvcc = self.nvcc(compiles=lists)
        source, build = self.folder / "a source", self.folder / "a build"
        (source / "strait/kernels/cuda").mkdir(parents=True)
        (source / "strait/kernels/cuda/nvcc_options").touch()
        (source / "one.cu").touch()
        (source / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(one LANGUAGES NONE)
set(STRAIT_TESTS ON)
include({ROOT}/cmake/cuda.cmake)
strait_cuda_objects(objects ${{PROJECT_SOURCE_DIR}}/one.cu)
add_custom_target(one ALL DEPENDS ${{objects}})
""", encoding="utf-8")
        for words in (["-G", "Ninja", "-S", source, "-B", build, f"-DSTRAIT_NVCC_PROGRAM={nvcc}"], ["--build", build],
                      ["--build", build]):
            subprocess.run(["cmake", *map(str, words)], check=True, capture_output=True)
        self.assertEqual(self.calls().count("one.cu.o.d"), 1)


if __name__ == "__main__":
    unittest.main()
