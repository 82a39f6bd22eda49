#include "strait/data/kinds.h"

namespace strait {

#define STRAIT_DATA_KIND(name) DataKind name##_kind();
#include "strait/data/data_list.def"
#undef STRAIT_DATA_KIND

const std::vector<DataKind>& data_kinds() {
  static const std::vector<DataKind> kKinds = {
#define STRAIT_DATA_KIND(name) name##_kind(),
#include "strait/data/data_list.def"
#undef STRAIT_DATA_KIND
  };
  return kKinds;
}

const DataKind& data_kind(std::string_view name) { return find_kind(data_kinds(), name, "data.kind"); }

DataOptions::DataOptions(std::string_view kind_name, const SettingList& others) : kind(kind_name) {
  const DataKind& known = data_kind(kind);
  batch_size = known.batch_size;
  settings = Settings(known.keys);
  for (const auto& [name, value] : others) settings.set(name, value);
}

DataSplits load_data(const DataOptions& options) { return data_kind(options.kind).load(options); }

}  // namespace strait
