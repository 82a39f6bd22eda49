#pragma once

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strait/transport/gloo/store_client.h"

namespace strait {

/// The store of a group as LibTorch takes it; has what Gloo and Rendezvous ask for.
class RankStore : public c10d::Store {
 public:
  RankStore(const Membership& membership, std::chrono::milliseconds timeout,
            const std::function<void()>& waiting)
      : Store(timeout), client_(membership, timeout, waiting) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override { return client_.add(key, value); }
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  bool deleteKey(const std::string& key) override;
  int64_t getNumKeys() override;

 private:
  StoreClient client_;
};

}  // namespace strait
