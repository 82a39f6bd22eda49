#include "strait/experiment/published_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/config/published.h"
#include "strait/data/text_data.h"
#include "strait/models/kinds.h"
#include "strait/tokenizer/tokenizer.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kNetwork = "config.json";
constexpr const char* kTokenizer = "tokenizer_config.json";

/// The files of a folder that are there, in order.
void add_those_there(const fs::path& folder, std::initializer_list<const char*> names,
                     std::vector<NamedText>& files) {
  for (const char* name : names) {
    if (has_file(folder / name)) files.push_back({name, read_whole(folder / name, kJsonBytesMost)});
  }
}

NamedText json_file(const char* name, const json& content) { return {name, content.dump(2) + "\n"}; }

json read_object(const fs::path& path) {
  json content = parse_json(read_whole(path, kJsonBytesMost), path.string());
  if (!content.is_object())
    throw InputError("{}: is a JSON {}, expected an object", path.string(), content.type_name());
  return content;
}

/// The files of the tokenizer. Gives what its tokens are to a config.json. Without the class transformers would
/// take the architecture's own way to cut texts for the tokenizer's.
json add_tokenizer(const fs::path& folder, std::vector<NamedText>& files) {
  const auto own = read_tokenizer_files(folder);
  const std::string end = end_of_text_of(folder);
  const Tokenizer known(parse_tokenizer_files(own));
  const auto end_id = known.added_token(end);
  files.push_back({"tokenizer.json", to_tokenizer_json(own, known.added_tokens())});
  add_those_there(folder, {"special_tokens_map.json", "chat_template.jinja"}, files);
  json tokenizer = json::object();
  json network = {{"bos_token_id", nullptr}, {"eos_token_id", nullptr}};  // and not some that others have
  if (end_id) {
    tokenizer["bos_token"] = tokenizer["eos_token"] = end;
    network["bos_token_id"] = network["eos_token_id"] = *end_id;
  }
  if (has_file(folder / kTokenizer)) tokenizer = read_object(folder / kTokenizer);
  if (!tokenizer.contains("tokenizer_class")) tokenizer["tokenizer_class"] = "PreTrainedTokenizerFast";
  files.push_back(json_file(kTokenizer, tokenizer));
  return network;
}

}  // namespace

std::vector<NamedText> published_files(const Config& config) {
  json own = publish(config.model);
  if (own.is_null() || !config.data.settings.has("tokenizer")) return {};
  std::vector<NamedText> files;
  json content = add_tokenizer(tokenizer_folder(config.data), files);
  const auto weights = find_initial(initial_file(config.model), config.data.root);
  const fs::path before = weights ? weights->parent_path() : fs::path();
  if (weights && has_file(before / kNetwork)) {
    content = read_object(before / kNetwork);
    add_those_there(before, {"generation_config.json"}, files);
  }
  if (content.contains("model_type")) {  // it may be another name of the same network
    own.erase("model_type");
    own.erase("architectures");
  }
  content.merge_patch(own);
  files.push_back(json_file(kNetwork, content));
  return files;
}

}  // namespace strait
