#pragma once

namespace strait::cli {

/// Two libraries read environment variables when they are loaded, before the program can set them: where one of
/// these is missing, sets it and starts the program again. Whoever has set one is left alone.
///
/// OPENBLAS_CORETYPE: Debian's OpenBLAS knows processors by their model, and gives one that is newer than
/// itself the kernels of a Pentium 4, a quarter as fast as those of the instructions it has.
///
/// OMP_WAIT_POLICY and GOMP_SPINCOUNT: a thread of GNU's OpenMP that waits for the others runs in a loop for
/// milliseconds. Where another program wants the core, that takes the time from the very thread that is waited
/// for. A loop of ten microseconds and then sleep costs nothing where the cores are free.
void choose_library_variables(char** argv);

}  // namespace strait::cli
