#pragma once

#include <cstddef>

namespace strait {

/// What is used of NVIDIA's NCCL, https://docs.nvidia.com/deeplearning/nccl/user-guide: functions of its
/// library and what they take, which all versions 2.x from 2.14 on have alike. Tests have others in their
/// place.
struct NcclLibrary {
  using Comm = void*;  ///< a communicator
  using Result = int;  ///< of a call

  static constexpr Result kSuccess = 0;     ///< it is done, or given to the stream
  static constexpr Result kInProgress = 7;  ///< it is being done
  static constexpr int kUint8 = 1;          ///< the type of bytes

  /// What the ends of a communicator know each other by.
  struct UniqueId {
    char bytes[128];  ///< opaque; NOLINT(*-avoid-c-arrays): as the library has it
  };

  /// Of a communicator whose calls do not wait: the fields of NCCL 2.14, which later versions take too.
  struct Config {
    size_t size = sizeof(Config);  ///< of this structure
    unsigned magic = 0xcafebeef;   ///< says that it is one
    unsigned version = 21400;      ///< of NCCL that has these fields
    int blocking = 0;              ///< whether calls wait
  };

  /// ncclGetUniqueId.
  using GetUniqueId = Result (*)(UniqueId* id);

  /// ncclCommInitRankConfig.
  using CommInitRankConfig = Result (*)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);

  /// ncclSend.
  using Send = Result (*)(const void* bytes, size_t count, int type, int peer, Comm comm, void* stream);

  /// ncclRecv.
  using Receive = Result (*)(void* bytes, size_t count, int type, int peer, Comm comm, void* stream);

  /// ncclCommGetAsyncError.
  using CommGetAsyncError = Result (*)(Comm comm, Result* error);

  /// ncclCommDestroy and ncclCommAbort.
  using EndComm = Result (*)(Comm comm);

  /// ncclGetErrorString.
  using GetErrorString = const char* (*)(Result result);

  GetUniqueId get_unique_id;                 ///< makes an id
  CommInitRankConfig comm_init_rank_config;  ///< begins to connect one end
  Send send;                                 ///< gives the stream a send
  Receive receive;                           ///< gives the stream a receive
  CommGetAsyncError comm_get_async_error;    ///< how a communicator is
  EndComm comm_destroy;                      ///< waits for what it has to do
  EndComm comm_abort;                        ///< does not
  GetErrorString get_error_string;           ///< for people
};

/// That of this machine, which PyTorch with CUDA brings along. Throws InputError where there is none.
const NcclLibrary& nccl_library();

}  // namespace strait
