#pragma once

// Two libraries read environment variables when they are loaded, before main() could set them. Where one is
// missing, the program sets it and starts itself again; whoever has set it is left alone.
//
// OMP_WAIT_POLICY and GOMP_SPINCOUNT: a thread of GNU's OpenMP that waits for the others runs in a loop for
// many milliseconds. Where another program wants the core, that takes the time from the very thread that is
// waited for. A loop of a millisecond or two and then sleep is as fast where the cores are free, and twice as
// fast where they are not (docs/performance.md). This happens before any library is initialised, so that it
// costs a twentieth of a second and not the second that LibTorch takes.

namespace strait::cli {

/// OPENBLAS_CORETYPE: Debian's OpenBLAS knows processors by their model, and gives one that is newer than
/// itself the kernels of a Pentium 4, a quarter as fast as those of the instructions it has. Only the library
/// itself can tell, so this is for main() to call.
void choose_blas_kernels(char** argv);

}  // namespace strait::cli
