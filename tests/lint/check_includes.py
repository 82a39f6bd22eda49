#!/usr/bin/env python3
"""Checks what the compiler lets pass: which folder includes which, where torch may appear, #pragma once, the length
of files, and two types of one name, which the linker would take for one. Prints FILE:LINE: what is wrong, and exits with status 1 when there is anything.

    check_includes.py ROOT         checks a source tree
    check_includes.py --self-test  checks that planted violations are found and good files are not reported
"""

import pathlib
import re
import sys
import tempfile

# What a folder of strait/ may include from the others.
ALLOWED = {"base": set()}
ALLOWED["wire"] = {"base"}
ALLOWED["kernels"] = {"base"}
ALLOWED["codecs"] = {"base", "wire", "kernels"}
ALLOWED["links"] = ALLOWED["codecs"] | {"codecs"}
ALLOWED["boundary"] = ALLOWED["links"] | {"links"}
ALLOWED["run"] = {"base", "wire", "boundary"}
ALLOWED["transport"] = {"base", "wire"}
ALLOWED["pipeline"] = ALLOWED["boundary"] | {"boundary", "transport"}
ALLOWED["models"] = {"base", "kernels"}
ALLOWED["tokenizer"] = {"base"}
ALLOWED["download"] = {"base"}
ALLOWED["formats"] = {"base"}
ALLOWED["data"] = {"base", "tokenizer", "download", "formats"}
ALLOWED["checkpoint"] = ALLOWED["pipeline"] | {"pipeline", "models", "formats", "run"}
ALLOWED["train"] = ALLOWED["checkpoint"] | {"checkpoint", "data", "tokenizer", "download"}
ALLOWED["config"] = ALLOWED["train"] | {"train"}
ALLOWED["planning"] = ALLOWED["config"] | {"config"}
ALLOWED["experiment"] = ALLOWED["planning"] | {"planning"}
ALLOWED["doctor"] = ALLOWED["experiment"] | {"experiment"}
ALLOWED["report"] = {"base", "run", "formats"}

# Folders that may include all of strait/, but one another only as said.
ROOTS = {"cli": {"cli"}, "tests": {"tests", "cli", "fuzz"}, "bench": {"bench", "tests"}, "fuzz": {"fuzz"},
         "python": {"python"}}

# torch/torch.h takes 20 s to parse: it appears where modules are made.
TORCH_H = {"models", "tests"}
WITHOUT_TORCH = {"base", "wire", "kernels", "tokenizer", "download", "run", "report"}
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")

# CUDA's headers, and those that need nvcc: C++ files call the kernels through headers without either.
CUDA = re.compile(r"(cuda|cub/|thrust/)|.*\.cuh$")

MAX_LINES = 600
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def folder_of(path):
    """The folder that the tables speak of: `codecs` of strait/codecs/none.cpp and of strait/codecs.h, which includes what
    is public of it, `tests` of tests/base/a.cpp."""
    return path.parts[1].removesuffix(".h") if path.parts[0] == "strait" else path.parts[0]


def check_include(folder, suffix, target):
    """What is wrong with a file of `folder` with this suffix including `target`, or None."""
    if target == "torch/torch.h" and folder not in TORCH_H:
        return f"{folder} may not include torch/torch.h"
    if TORCH.match(target) and folder in WITHOUT_TORCH:
        return f"{folder} may not include torch ({target})"
    if CUDA.match(target) and suffix not in {".cu", ".cuh"} and folder not in {"bench", "tests"}:
        return f"only .cu and .cuh files may include {target}"
    parts = pathlib.PurePosixPath(target).parts
    if parts[0] == "strait" and len(parts) > 1:
        used = folder_of(pathlib.PurePosixPath(target))
        if used not in ALLOWED:
            return f"{used} is not in the table of {pathlib.Path(__file__).name}"
        if folder in ALLOWED and used != folder and used not in ALLOWED[folder]:
            return f"{folder} may not include {target}"
    elif parts[0] in ROOTS and len(parts) > 1 and parts[0] not in ROOTS.get(folder, set()):
        return f"{folder} may not include {target}"
    return None


def reaches_torch(root, target, seen=None):
    """Whether a header of strait/ includes torch, itself or through others of strait/."""
    seen = set() if seen is None else seen
    if target in seen or not target.startswith("strait/") or not (root / target).is_file():
        return False
    seen.add(target)
    includes = [found.group(1) for found in map(INCLUDE.match, (root / target).read_text(encoding="utf-8").splitlines())
                if found]
    return any(TORCH.match(include) or reaches_torch(root, include, seen) for include in includes)


def check_file(root, path):
    """Yields (line, what is wrong) for one file."""
    folder = folder_of(path)
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if path.parts[0] == "strait" and len(path.parts) > 2 and folder not in ALLOWED:
        yield 1, f"{folder} is not in the table of {pathlib.Path(__file__).name}"
        return
    # NAME-inl.h is read once for each instruction set (Highway).
    if path.suffix in {".h", ".cuh"} and not path.stem.endswith("-inl") and "#pragma once" not in lines:
        yield 1, "the header has no #pragma once"
    if len(lines) > MAX_LINES:
        yield MAX_LINES + 1, f"the file has {len(lines)} lines, at most {MAX_LINES} are allowed"
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        wrong = check_include(folder, path.suffix, include.group(1)) if include else None
        if include and not wrong and folder in WITHOUT_TORCH and reaches_torch(root, include.group(1)):
            wrong = f"{folder} may not include torch, which {include.group(1)} brings"
        if wrong:
            yield number, wrong


# A type that is defined here, not only declared; one within another is indented.
TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?) (\w+)\b(?!::)(?:[^;]*$|[^;]*\{)")
NAMESPACE = re.compile(r"namespace ?([\w:]*) \{")
NAMESPACE_END = re.compile(r"\}  // namespace")


def types_of(root, path):
    """Yields (line, full name) of the types that a file defines for the linker to see."""
    scopes = []
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        if begin := NAMESPACE.match(line):
            scopes.append(begin.group(1))
        elif NAMESPACE_END.match(line) and scopes:
            scopes.pop()
        elif (found := TYPE.match(line)) and "" not in scopes:
            yield number, "::".join([*scopes, found.group(1)])


def check_types(root, files):
    """Yields what is wrong with types that several files define."""
    places = {}
    for path in files:
        if path.parts[0] not in {"strait", "cli", "python"}:
            continue
        for line, name in types_of(root, path):
            first = places.setdefault(name, f"{path}:{line}")
            if first != f"{path}:{line}":
                yield f"{path}:{line}: {name} is also a type of {first}"


def check_tree(root):
    """All that is wrong with a source tree, and how many files were read."""
    problems = []
    files = []
    for top in ["strait", *ROOTS]:
        for suffix in ("h", "cpp", "cu", "cuh", "def"):
            files += [path.relative_to(root) for path in sorted((root / top).rglob(f"*.{suffix}"))]
    for path in files:
        problems += [f"{path}:{line}: {wrong}" for line, wrong in check_file(root, path)]
    problems += check_types(root, files)
    return problems, len(files)


# Path, content, and the line that must be reported (0: none).
PLANTED = [
    ("strait/base/good.h", "#pragma once\n#include <vector>\n", 0),
    ("strait/kernels/good-inl.h", "#include <vector>\n", 0),
    ("strait/base/up.cpp", '\n#include "strait/wire/frame.h"\n', 2),
    ("strait/wire/good.cpp", '#include "strait/base/a.h"\n#include "strait/wire/b.h"\n', 0),
    ("strait/wire/side.cpp", '#include "strait/kernels/copy.h"\n', 1),
    ("strait/wire/torch.h", "#pragma once\n\n#include <ATen/core/Tensor.h>\n", 3),
    ("strait/kernels/torch.cpp", "#include <c10/util/Half.h>\n", 1),
    ("strait/kernels/cuda/good.cu", '#include <cub/a.cuh>\n#include "strait/kernels/cuda/a.cuh"\n', 0),
    ("strait/kernels/cuda/torch.cu", "#include <ATen/core/Tensor.h>\n", 1),
    ("strait/kernels/cuda/guard.cuh", "#include <cuda_runtime.h>\n", 1),
    ("strait/kernels/cuda/cuda.h", "#pragma once\n#include <cuda_runtime.h>\n", 2),
    ("strait/codecs/device.cpp", '#include "strait/kernels/cuda/a.cuh"\n', 1),
    ("strait/base/torch.cpp", "#include <torch/torch.h>\n", 1),
    ("strait/codecs/good.cpp", '#include <ATen/core/Tensor.h>\n#include "strait/kernels/copy.h"\n', 0),
    ("strait/codecs/heavy.cpp", "#include <ATen/ATen.h>\n#include <torch/torch.h>\n", 2),
    ("strait/codecs/up.cpp", '#include "strait/codecs/codec.h"\n  #  include "strait/links/link.h"\n', 2),
    ("strait/links/up.cpp", '#include "strait/boundary/boundary.h"\n', 1),
    ("strait/boundary/good.cpp", '#include "strait/links/a.h"\n#include "strait/wire/b.h"\n', 0),
    ("strait/transport/side.cpp", '#include "strait/boundary/boundary.h"\n', 1),
    ("strait/pipeline/good.cpp", '#include "strait/transport/a.h"\n', 0),
    ("strait/pipeline/side.cpp", '#include "strait/models/model.h"\n', 1),
    ("strait/models/side.cpp", '#include "strait/data/dataset.h"\n', 1),
    ("strait/data/heavy.cpp", "#include <torch/torch.h>\n", 1),
    ("strait/models/good.cpp", "#include <torch/torch.h>\n", 0),
    ("strait/train/heavy.cpp", "#include <torch/torch.h>\n", 1),
    ("strait/train/good.cpp", '#include "strait/pipeline/a.h"\n#include "strait/data/b.h"\n', 0),
    ("strait/checkpoint/good.cpp", '#include "strait/models/a.h"\n#include "strait/run/b.h"\n', 0),
    ("strait/checkpoint/up.cpp", '#include "strait/train/optimizer.h"\n', 1),
    ("strait/train/up.cpp", '#include "strait/experiment/sweep.h"\n', 1),
    ("strait/experiment/good.cpp", '#include "strait/train/trainer.h"\n', 0),
    ("strait/experiment/root.cpp", '#include "cli/verbs.h"\n', 1),
    ("strait/experiment/test.cpp", '#include "tests/support/temp_dir.h"\n', 1),
    ("strait/report/good.cpp", '#include "strait/report/run.h"\n#include "strait/base/a.h"\n', 0),
    ("strait/report/side.cpp", '#include "strait/train/task.h"\n', 1),
    ("strait/report/torch.cpp", "#include <ATen/core/Tensor.h>\n", 1),
    ("strait/boundary/heavy.h", '#pragma once\n#include "strait/links/heavy.h"\n', 0),
    ("strait/links/heavy.h", "#pragma once\n#include <ATen/core/Tensor.h>\n", 0),
    ("strait/boundary/light.h", '#pragma once\n#include "strait/wire/frame.h"\n', 0),
    ("strait/run/good.cpp", '#include "strait/boundary/light.h"\n#include "strait/boundary/missing.h"\n', 0),
    ("strait/run/deep.cpp", '#include "strait/boundary/light.h"\n#include "strait/boundary/heavy.h"\n', 2),
    ("strait/report/reads.cpp", '#include "strait/run/reader.h"\n', 0),
    ("strait/extra/unknown.cpp", "", 1),
    ("strait/codecs.h", '#pragma once\n#include "strait/codecs/codec.h"\n#include "strait/wire/frame.h"\n', 0),
    ("strait/links.h", '#pragma once\n#include "strait/codecs.h"\n#include "strait/boundary/boundary.h"\n', 3),
    ("strait/boundary.h", "#pragma once\n#include <torch/torch.h>\n", 2),
    ("strait/codecs/all.cpp", '#include "strait/pipeline.h"\n', 1),
    ("strait/train/unknown.cpp", '#include "strait/extra/a.h"\n', 1),
    ("strait/data/a_type.h", "#pragma once\nnamespace strait {\nstruct Twice {\n};\n}  // namespace strait\n", 0),
    ("strait/links/type.h", "#pragma once\nnamespace strait {\nclass Twice;\nclass Twice : A {\n};\n}\n", 4),
    ("cli/type.h", "#pragma once\nnamespace strait::cli {\nclass Twice {};\n}  // namespace strait::cli\n", 0),
    ("strait/wire/type.cpp", "namespace strait {\nnamespace {\nenum class Twice { a };\n}  // namespace\n}\n", 0),
    ("python/src/good.cpp", '#include <torch/library.h>\n#include "python/src/a.h"\n#include "strait/links/b.h"\n', 0),
    ("python/src/heavy.cpp", "#include <torch/torch.h>\n", 1),
    ("strait/train/python.cpp", '#include "python/src/a.h"\n', 1),
    ("strait/codecs/guard.h", "#ifndef A\n#define A\n#endif\n", 1),
    ("strait/codecs/long.cpp", "\n" * 601, 601),
    ("strait/codecs/full.cpp", "\n" * 600, 0),
    ("cli/good.cpp", '#include "strait/experiment/sweep.h"\n#include "cli/verbs.h"\n', 0),
    ("cli/heavy.cpp", "#include <torch/torch.h>\n", 1),
    ("cli/test.cpp", '#include "tests/support/temp_dir.h"\n', 1),
    ("tests/a/good_test.cpp", '#include <torch/torch.h>\n#include "tests/b.h"\n#include "strait/wire/frame.h"\n', 0),
    ("fuzz/good.cpp", '#include "fuzz/input.h"\n#include "strait/codecs/codec.h"\n', 0),
]


def self_test():
    """What the checks should have said about PLANTED and have not, or the other way round."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, content, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")
        reported = {tuple(problem.split(":")[:2]) for problem in check_tree(root)[0]}
    expected = {(name, str(line)) for name, _, line in PLANTED if line}
    problems = [f"self-test: {name}:{line} is wrong and was not reported" for name, line in expected - reported]
    return problems + [f"self-test: {name}:{line} was reported" for name, line in reported - expected]


def main(arguments):
    if arguments == ["--self-test"]:
        problems, count = self_test(), len(PLANTED)
    elif len(arguments) == 1:
        problems, count = check_tree(pathlib.Path(arguments[0]))
        if count == 0:
            problems = [f"{arguments[0]}: there is no source file"]
    else:
        problems, count = [__doc__.strip()], 0
    print("\n".join(problems) if problems else f"includes: {count} files are clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
