#include "strait/data/registry.h"

#include <array>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

constexpr uint64_t kCifarBytes = 30'730'000;

Checksum md5(const char* hex) { return {DigestKind::md5, hex}; }
Checksum sha1(const char* hex) { return {DigestKind::sha1, hex}; }
Checksum sha256(const char* hex) { return {DigestKind::sha256, hex}; }

/// The sums of the six files are those that MXNet Gluon publishes for the content of the archive.
OfficialData cifar10() {
  OfficialData data;
  data.name = "cifar10";
  data.title = "CIFAR-10: 60,000 colour pictures of 32x32 pixels in ten classes, 10,000 of them for testing";
  data.source =
      "Alex Krizhevsky, Vinod Nair, Geoffrey Hinton, https://www.cs.toronto.edu/~kriz/cifar.html (binary "
      "version)";
  data.terms =
      "no formal licence; cite Krizhevsky, \"Learning Multiple Layers of Features from Tiny Images\", 2009";
  constexpr std::array<std::pair<const char*, const char*>, 6> kFiles = {
      {{"data_batch_1.bin", "aadd24acce27caa71bf4b10992e9e7b2d74c2540"},
       {"data_batch_2.bin", "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795"},
       {"data_batch_3.bin", "1dd00a74ab1d17a6e7d73e185b69dbf31242f295"},
       {"data_batch_4.bin", "aab85764eb3584312d3c7f65fd2fd016e36a258e"},
       {"data_batch_5.bin", "26e2849e66a845b7f1e4614ae70f4889ae604628"},
       {"test_batch.bin", "67eb016db431130d61cd03c7ad570b013799c88c"}}};
  for (const auto& [file, sum] : kFiles) {
    const std::string path = std::string("cifar-10-batches-bin/") + file;
    data.files.push_back({path, kCifarBytes, sha1(sum), FileContent::cifar10});
  }
  data.downloads.push_back({"https://www.cs.toronto.edu/~kriz/", "cifar-10-binary.tar.gz",
                            md5("c32a1d4ab5d03f1284b67883e8d87530"), ""});
  return data;
}

OfficialData wikitext2() {
  OfficialData data;
  data.name = "wikitext2";
  data.title = "WikiText-2, raw version: Wikipedia articles as training, validation and test text";
  data.source =
      "Merity, Xiong, Bradbury, Socher, \"Pointer Sentinel Mixture Models\", 2016, "
      "https://huggingface.co/datasets/Salesforce/wikitext (wikitext-2-raw-v1)";
  data.terms = "Creative Commons Attribution-ShareAlike 3.0 and GNU Free Documentation License";
  data.files = {
      {"wikitext-2-raw/wiki.train.raw", 10'940'747, md5("fee9fa25ed4483d65f4938783fa07168"), FileContent::text},
      {"wikitext-2-raw/wiki.valid.raw", 1'146'846, md5("4fbeb433dc75b3d1d8c57d207eececc2"), FileContent::text},
      {"wikitext-2-raw/wiki.test.raw", 1'290'590, md5("7c0137fc034ddbc56a296bce31b4f7fb"), FileContent::text}};
  data.hint =
      "its raw files have no address any more; write the splits of Salesforce/wikitext (wikitext-2-raw-v1) at "
      "Hugging Face to wikitext-2-raw/wiki.train.raw, wiki.valid.raw and wiki.test.raw under data.root, an "
      "empty row as \" \\n\", and see strait data check wikitext2";
  return data;
}

OfficialData gpt2_tokenizer() {
  const auto vocab = sha256("196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783");
  const auto merges = sha256("1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5");
  const std::string base = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/";
  OfficialData data;
  data.name = "gpt2-tokenizer";
  data.title = "the byte-level byte-pair encoding of GPT-2: 50,257 tokens, 50,000 merges";
  data.source = "OpenAI, https://github.com/openai/gpt-2 (encoder.json and vocab.bpe there)";
  data.terms = "modified MIT licence";
  data.files = {{"gpt2/vocab.json", 1'042'301, vocab, FileContent::text},
                {"gpt2/merges.txt", 456'318, merges, FileContent::text}};
  data.downloads = {{base, "encoder.json", vocab, "gpt2/vocab.json"},
                    {base, "vocab.bpe", merges, "gpt2/merges.txt"}};
  return data;
}

OfficialData gpt2() {
  const auto sum = sha256("248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707");
  OfficialData data;
  data.name = "gpt2";
  data.title = "the pretrained weights of GPT-2 small (124M parameters)";
  data.source = "OpenAI, https://huggingface.co/openai-community/gpt2 (revision 607a30d)";
  data.terms = "MIT licence";
  data.files = {{"gpt2/model.safetensors", 548'105'171, sum, FileContent::opaque}};
  data.downloads = {
      {"https://huggingface.co/openai-community/gpt2/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e/",
       "model.safetensors", sum, "gpt2/model.safetensors"}};
  return data;
}

}  // namespace

const std::vector<OfficialData>& official_data() {
  static const std::vector<OfficialData> kTable = {cifar10(), wikitext2(), gpt2_tokenizer(), gpt2()};
  return kTable;
}

const OfficialData& data_info(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& data : official_data()) {
    if (data.name == name) return data;
    names.push_back(data.name);
  }
  throw InputError("there is no data set \"{}\", expected one of {}{}", name, list_of(names),
                   suggestion(name, names));
}

}  // namespace strait
