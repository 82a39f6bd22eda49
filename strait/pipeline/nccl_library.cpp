#include "strait/pipeline/nccl_library.h"

#include <dlfcn.h>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr const char* kFile = "libnccl.so.2";

NcclLibrary load() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw InputError("pipeline.transport: \"nccl\" needs NCCL: {}", dlerror());
  NcclLibrary all{};
  const auto find = [&](auto& function, const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) throw InputError("pipeline.transport: \"nccl\": {} has no {}", kFile, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(all.get_unique_id, "ncclGetUniqueId");
  find(all.comm_init_rank_config, "ncclCommInitRankConfig");
  find(all.send, "ncclSend");
  find(all.receive, "ncclRecv");
  find(all.comm_get_async_error, "ncclCommGetAsyncError");
  find(all.comm_destroy, "ncclCommDestroy");
  find(all.comm_abort, "ncclCommAbort");
  find(all.get_error_string, "ncclGetErrorString");
  return all;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace strait
