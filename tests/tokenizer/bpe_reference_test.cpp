#include "tests/tokenizer/bpe_reference.h"

#include <random>

#include "fuzz/tokenizer_input.h"

namespace strait {
namespace {

/// vocab.json and merges.txt of the sample tokenizer.
void write_sample(const test::TempDir& folder) {
  for (const auto& file : fuzz::small_tokenizer(fuzz::sample_merges())) {
    test::write_file(folder / file.name, file.text);
  }
}

TEST(BpeReference, HostileTextGivesTheSameIds) {
  const test::TempDir folder;
  write_sample(folder);
  test::expect_ids_of_reference(folder.path(), test::hostile_texts());
}

TEST(BpeReference, RandomBytesGiveTheSameIds) {
  const test::TempDir folder;
  write_sample(folder);
  std::mt19937 random(7);
  std::vector<std::string> texts(300);
  for (auto& text : texts) {
    const bool wild = random() % 2 == 0;
    const std::string letters = "thexyzaain g'sr0919 \n\r";
    for (size_t left = random() % 80; left > 0; --left) {
      text += wild ? static_cast<char>(random() % 256) : letters[random() % letters.size()];
    }
  }
  test::expect_ids_of_reference(folder.path(), texts);
}

}  // namespace
}  // namespace strait
