#pragma once

// Two libraries read environment variables when they are loaded, before main() could set them. These functions
// set what is missing and start the program again, with the same words. Whoever has set a variable is left
// alone. A program of one's own calls both first in main():
//
//     strait::let_waiting_threads_sleep(argc, argv, environ);
//     strait::choose_blas_kernels(argv);

namespace strait {

/// OMP_WAIT_POLICY and GOMP_SPINCOUNT: a thread of GNU's OpenMP that waits for the others runs in a loop for
/// many milliseconds. Where another program wants the core, that takes the time from the very thread that is
/// waited for. A loop of a millisecond or two and then sleep is as fast where the cores are free, and twice as
/// fast where they are not (docs/performance.md).
///
/// It needs nothing of the C library, so it may stand in the program's .preinit_array, as it does in strait's:
/// before any library is initialised another start costs a twentieth of a second, and not the second that
/// LibTorch takes.
void let_waiting_threads_sleep(int argc, char** argv, char** variables);

/// OPENBLAS_CORETYPE: Debian's OpenBLAS knows processors by their model, and gives one that is newer than
/// itself the kernels of a Pentium 4, a quarter as fast as those of the instructions it has. Only the library
/// itself can tell, so this is for main() to call.
void choose_blas_kernels(char** argv);

}  // namespace strait
