#!/usr/bin/env python3
"""A program is linked with the torch of a Python whose folder has a blank in its name.

    torch_folder_test.py SOURCE TORCH
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE, TORCH = map(pathlib.Path, sys.argv[1:3])


class TorchFolder(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="strait torch "))
        self.addCleanup(subprocess.run, ["rm", "-r", str(self.folder)], check=True)

    def test_a_blank_in_its_name(self):
        (self.folder / "torch").symlink_to(TORCH)
        (self.folder / "main.cpp").write_text("int main() {}\n", encoding="utf-8")
        (self.folder / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(one LANGUAGES CXX)
include({SOURCE}/cmake/torch_wheel.cmake)
strait_torch_wheel(${{PROJECT_SOURCE_DIR}}/torch)
add_executable(one main.cpp)
target_link_libraries(one PRIVATE ${{TORCH_LIBRARIES}})
""", encoding="utf-8")
        for words in ["-G", "Ninja", "-S", self.folder, "-B", self.folder / "build"], ["--build", self.folder / "build"]:
            done = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        needed = subprocess.run(["readelf", "-d", str(self.folder / "build/one")], capture_output=True, text=True, check=True)
        self.assertIn("[libtorch.so]", needed.stdout)  # which it uses nothing of


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
