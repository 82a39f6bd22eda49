#pragma once

#include <cstddef>

namespace strait {

/// What is used of NVIDIA's NCCL, https://docs.nvidia.com/deeplearning/nccl/user-guide: functions of its
/// library and what they take, which all versions 2.x from 2.14 on have alike. Tests have others in their
/// place.
struct NcclLibrary {
  /// Of a communicator.
  struct UniqueId {
    char bytes[128];  // NOLINT(*-avoid-c-arrays): as the library has it
  };
  /// Of a communicator whose calls do not wait: the fields of NCCL 2.14, which later versions take too.
  struct Config {
    size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
  };
  using Comm = void*;  ///< a communicator
  using Result = int;  ///< of a call

  static constexpr Result kSuccess = 0;     ///< it is done, or given to the stream
  static constexpr Result kInProgress = 7;  ///< it is being done
  static constexpr int kUint8 = 1;          ///< the type of bytes

  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*send)(const void* bytes, size_t count, int type, int peer, Comm comm, void* stream);
  Result (*receive)(void* bytes, size_t count, int type, int peer, Comm comm, void* stream);
  Result (*comm_get_async_error)(Comm comm, Result* error);
  Result (*comm_destroy)(Comm comm);  ///< waits for what it has to do
  Result (*comm_abort)(Comm comm);    ///< does not
  const char* (*get_error_string)(Result result);
};

/// That of this machine, which PyTorch with CUDA brings along. Throws InputError where there is none.
const NcclLibrary& nccl_library();

}  // namespace strait
