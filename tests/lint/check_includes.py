#!/usr/bin/env python3
"""Checks what the compiler lets pass: which folder includes which, where torch may appear, a standard header of which
nothing is named, #pragma once, the length of files, and two types of one name, which the linker would take for one.
Prints FILE:LINE: what is wrong, and exits with status 1 when there is anything.

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

# What the standard's headers declare, of those whose use shows by names: in namespace std, or in one within it.
NAMES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp contains copy copy_backward copy_if copy_n count
        count_if ends_with equal equal_range fill fill_n find find_end find_first_of find_if find_if_not find_last
        find_last_if fold_left fold_right for_each for_each_n generate generate_n includes inplace_merge is_heap
        is_heap_until is_partitioned is_permutation is_sorted is_sorted_until iter_swap lexicographical_compare
        lexicographical_compare_three_way lower_bound make_heap max max_element merge min min_element minmax
        minmax_element mismatch move move_backward next_permutation none_of nth_element partial_sort
        partial_sort_copy partition partition_copy partition_point pop_heap prev_permutation push_heap remove
        remove_copy remove_copy_if remove_if replace replace_copy replace_copy_if replace_if reverse reverse_copy
        rotate rotate_copy sample search search_n set_difference set_intersection set_symmetric_difference set_union
        shift_left shift_right shuffle sort sort_heap stable_partition stable_sort starts_with swap_ranges transform
        unique unique_copy upper_bound""",
    "array": "array to_array get tuple_size tuple_size_v",
    "atomic": r"atomic\w* memory_order\w* kill_dependency",
    "bit": r"bit_(cast|ceil|floor|width) byteswap countl_\w+ countr_\w+ endian has_single_bit popcount rotl rotr",
    "charconv": r"\w+_chars chars_format \w+_chars_result",
    "chrono": r"chrono \w*literals",
    "concepts": r"""\w+_with \w+_from constructible_from convertible_to copy_constructible copyable
        default_initializable destructible equality_comparable\w* floating_point integral invocable
        move_constructible movable predicate regular regular_invocable relation same_as semiregular signed_integral
        swap swappable totally_ordered\w* unsigned_integral""",
    "condition_variable": r"condition_variable\w* cv_status notify_all_at_thread_exit",
    "deque": "deque erase erase_if",
    "exception": r"""exception\w* current_exception make_exception_ptr nested_exception rethrow\w* terminate\w*
        throw_with_nested uncaught_exceptions get_terminate set_terminate bad_exception""",
    "filesystem": "filesystem",
    "fstream": r"\w*fstream \w*filebuf",
    "functional": r"""\w*function bad_function_call bind\w* bit_\w+ cref divides equal_to greater greater_equal hash
        identity invoke\w* is_bind_expression less less_equal logical_\w+ mem_fn minus modulus multiplies negate
        not_equal_to not_fn placeholders plus ref reference_wrapper \w+_searcher unwrap_\w+""",
    "future": r"\w*future\w* async launch packaged_task promise",
    "initializer_list": "initializer_list",
    "iostream": r"w?cin w?cout w?cerr w?clog ios\w* endl flush [io]+stream streamsize hex dec",
    "latch": "latch",
    "limits": "numeric_limits float_denorm_style float_round_style",
    "list": "list erase erase_if",
    "map": "map multimap erase_if",
    "memory": r"""\w+_ptr \w+_ptr_for_overwrite make_\w+ allocate_shared\w* \w*allocator\w* addressof align
        assume_aligned \w+_pointer_cast construct_at default_delete destroy\w* enable_shared_from_this owner_less
        pointer_traits to_address uninitialized_\w+ bad_weak_ptr hash""",
    "mutex": r"\w*mutex lock try_lock lock_guard \w+_lock \w+_lock_t call_once once_flag",
    "numbers": "numbers",
    "numeric": """accumulate adjacent_difference exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint
        partial_sum reduce transform_exclusive_scan transform_inclusive_scan transform_reduce""",
    "optional": r"\w*optional\w* nullopt\w* in_place\w*",
    "queue": "queue priority_queue",
    "random": r"""\w+_distribution \w+_engine mt19937\w* minstd_rand\w* random_device seed_seq generate_canonical
        ranlux\w+ knuth_b""",
    "regex": r"\w*regex\w* [csw]+match \w+_match",
    "set": "set multiset erase_if",
    "span": r"\w*span as_bytes as_writable_bytes dynamic_extent",
    "sstream": r"\w*stringstream \w*stringbuf",
    "stdexcept": r"\w+_error invalid_argument out_of_range",
    "stop_token": r"stop_\w+ nostopstate\w*",
    "string": r"\w*string to_\w*string sto\w+ getline char_traits \w*literals erase erase_if hash",
    "string_view": r"\w*string_view \w*literals hash",
    "system_error": r"system_\w+ err\w+ generic_category make_error_\w+ is_error_\w+ iostream_category",
    "thread": "j?thread this_thread",
    "tuple": r"\w*tuple\w* tie ignore apply make_from_tuple get",
    "type_traits": r"""is_\w+ \w+_t \w+_v \w+_type \w+_constant add_\w+ remove_\w+ conditional conjunction decay
        disjunction negation enable_if extent common_\w+ invoke_result\w* void_t alignment_of rank has_\w+
        make_signed make_unsigned""",
    "unordered_map": "unordered_map unordered_multimap erase_if",
    "unordered_set": "unordered_set unordered_multiset erase_if",
    "utility": r"""move forward\w* swap exchange \w*pair declval \w*index_sequence\w* \w*integer_sequence in_place\w*
        as_const cmp_\w+ in_range to_underlying unreachable piecewise_construct\w* tuple_\w+ get rel_ops""",
    "variant": r"variant\w* visit holds_alternative get get_if monostate bad_variant_access in_place\w*",
    "vector": "vector erase erase_if",
}

# The same of the headers of C, whose names may stand without std::.
C_NAMES = {
    "cctype": "is[a-z]+ to(upper|lower)",
    "cerrno": r"errno E[A-Z0-9]+ program_invocation_\w+",
    "climits": r"\w+_(MAX|MIN|BIT)",
    "cmath": r"""f?abs[fl]? a?(sin|cos|tan)h?[fl]? atan2[fl]? ceil[fl]? floor[fl]? round[fl]? l*round[fl]?
        l*rint[fl]? nearbyint[fl]? trunc[fl]? exp2?[fl]? expm1[fl]? log(2|10|1p|b)?[fl]? ilogb[fl]? ldexp[fl]?
        frexp[fl]? scalbl?n[fl]? modf[fl]? fmod[fl]? remainder[fl]? remquo[fl]? pow[fl]? sqrt[fl]? cbrt[fl]?
        hypot[fl]? erfc?[fl]? [lt]gamma[fl]? copysign[fl]? nextafter[fl]? nexttoward[fl]? nan[fl]? fmax[fl]?
        fmin[fl]? fdim[fl]? fma[fl]? lerp isnan isinf isfinite isnormal signbit fpclassify isgreater\w* isless\w*
        isunordered INFINITY NAN HUGE_VAL\w* M_\w+ FP_\w+ MATH_\w+ math_errhandling float_t double_t beta
        \w*legendre\w* \w*hermite \w*laguerre \w+_bessel\w* \w*ellint\w* expint riemann_zeta""",
    "csetjmp": r"\w*jmp\w*",
    "csignal": r"""SIG\w* SA_\w+ sig\w+ raise kill\w* psignal pthread_sigmask pthread_kill SI_\w+ BUS_\w+ MINSIGSTKSZ
        stack_t""",
    "cstddef": "size_t ptrdiff_t nullptr_t byte max_align_t offsetof NULL to_integer",
    "cstdint": r"u?int\w*_t u?intmax_t U?INT\w+ SIZE_MAX PTRDIFF_\w+",
    "cstdio": r"""FILE EOF BUFSIZ SEEK_\w+ std(in|out|err) \w*printf \w*scanf f[a-z]+ get[a-z]+ put[a-z]+ perror
        remove rename setv?buf\w* tmpfile tmpnam ungetc rewind clearerr pclose popen open_memstream""",
    "cstdlib": r"""EXIT_\w+ RAND_MAX MB_CUR_MAX NULL l*div\w* ato[a-z]+ strto[a-z]+ s?rand\w* [mc]alloc realloc free
        aligned_alloc posix_memalign abort at_quick_exit atexit _?exit _Exit quick_exit \w*getenv \w*setenv unsetenv
        putenv system bsearch qsort l*abs mb\w+ wc\w+ mk[a-z]*temp\w* realpath getloadavg ptsname grantpt unlockpt
        posix_openpt""",
    "cstring": r"""mem(c?cpy|move|set|cmp|r?chr|pcpy|mem)
        str(n?cpy|n?cat|n?cmp|n?casecmp|coll|xfrm|r?chr|r?str|c?spn|pbrk|tok|tok_r|n?len|sep)
        str(error\w*|n?dup|signal) sig(abbrev|descr)_np basename NULL""",
}

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

# Comments, and literals, in which no name stands. A literal counts first where both begin.
NO_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\']+|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
STANDARD = re.compile(r"\s*#\s*include\s*<([a-z_]+)>")


def pattern_of(header):
    """What matches a use of what a standard header declares, or None for a header that is not in the tables."""
    names = "|".join((NAMES.get(header) or C_NAMES.get(header) or "").split())
    if header in NAMES:
        return re.compile(rf"\bstd::(?:\w+::)*(?:{names})\b")
    # Not a member, nor a function of the same name in a namespace of its own.
    return re.compile(rf"(?<![\w.:])(?<!->)(?:std::|::)?(?:{names})\b") if names else None


def check_standard(text):
    """Yields (line, what is wrong) for the standard's headers of which a file names nothing."""
    lines = text.splitlines()
    headers = [(number, found.group(1)) for number, line in enumerate(lines, 1) if (found := STANDARD.match(line))]
    # What is included here and has no #include lines of its own may use them.
    if not headers or any(line.lstrip().startswith("#include") and ".def\"" in line for line in lines):
        return
    code = NO_CODE.sub('""', "\n".join(line for line in lines if not INCLUDE.match(line)))
    for number, header in headers:
        pattern = pattern_of(header)
        if pattern and not pattern.search(code):
            yield number, f"nothing of <{header}> is named"


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
    text = (root / path).read_text(encoding="utf-8")
    lines = text.splitlines()
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
    yield from check_standard(text)


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
    ("strait/base/good.h", "#pragma once\n#include <vector>\nstd::vector<int> all();\n", 0),
    ("strait/kernels/good-inl.h", "#include <vector>\nusing std::vector;\n", 0),
    ("strait/base/unnamed.h", "#pragma once\n#include <map>\n#include <vector>\nstd::vector<int> all();\n", 2),
    ("strait/base/comment.cpp", '#include <map>\n// A std::map.\nauto text = "std::map"; /* std::map */\n', 1),
    ("strait/base/literal.cpp", '#include <map>\nauto text = "//\\\""; char c = \'"\'; std::map<int, int> all;  // "\n', 0),
    ("strait/base/within.cpp", "#include <algorithm>\n#include <bit>\nauto x = std::ranges::max(a);\n", 2),
    ("strait/base/member.cpp", "#include <cmath>\nauto x = a.abs() + a->log() + at::sqrt(a);\n", 1),
    ("strait/base/function.cpp", "#include <cmath>\n#include <cstring>\nauto x = abs(std::strlen(a));\n", 0),
    ("strait/base/list.cpp", '#include <map>\n#include "strait/base/list.def"\n', 0),
    ("strait/base/other.cpp", "#include <unistd.h>\n#include <version>\n", 0),
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
