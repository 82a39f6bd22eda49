#pragma once

#include <string>

namespace strait {

/// Where and how aq-sgd keeps its buffer for every sample.
struct StoreOptions {
  std::string place = "memory";  ///< memory | file: memory-mapped, without a name, gone with the process
  std::string format = "fp32";   ///< fp32 | bf16 | quant:8 (of each sample's range); both endpoints round alike
  std::string folder;            ///< of the file; empty: the run's folder
  std::string fill =
      "first_visit";  ///< first_visit: by a sample's first message; warmup: by the epochs before too

  bool operator==(const StoreOptions&) const = default;
};

}  // namespace strait
