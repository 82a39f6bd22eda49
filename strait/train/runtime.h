#pragma once

#include <c10/core/Device.h>

#include <string>
#include <string_view>

namespace strait {

/// Threads of a process whose train.threads is that, one of `processes` on this machine. 0 means what
/// OMP_NUM_THREADS says, and where it is not set one for each of usable_cores(), shared by the processes.
/// Throws InputError for an OMP_NUM_THREADS of more than kMostThreads.
int thread_count(int threads, int processes);

/// Says in one line that training will be slow because its threads are more than the cores or because others
/// keep most of these busy: a step waits for the slowest thread of each operation. Empty where neither is so,
/// and where the `processes` of this machine have one thread each already. `others` is load_of_others().
std::string crowding_note(int threads, int processes, int cores, double others);

/// Prepares the process for training: LibTorch's number of threads, thread_count(), and an allocator that keeps
/// what it has, however large the blocks, because a step frees and takes the same ones again and fresh pages
/// from the operating system cost more than many an operation that fills them.
void configure_runtime(int threads, int processes = 1);

/// The device of a name (auto, cpu, cuda, cuda:N), with its number. Throws InputError, which names what the
/// name was given for, when it is not there.
c10::Device device_of(const std::string& name, std::string_view given_for = "train.device");

/// The processor, the number of threads, the machine's cards where the device is one, and LibTorch's version,
/// for the record.
std::string machine_description(c10::Device device);

/// The version of LibTorch that the program was built with.
std::string library_version();

}  // namespace strait
