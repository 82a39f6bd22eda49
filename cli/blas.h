#pragma once

namespace strait::cli {

/// Debian's OpenBLAS knows processors by their model, and gives one that is newer than itself the kernels of a
/// Pentium 4, a quarter as fast as those of the instructions it has. Where that has happened, starts the
/// program again with OPENBLAS_CORETYPE, which is read when the library is loaded. Whoever has set it is left
/// alone.
void choose_blas_kernels(char** argv);

}  // namespace strait::cli
