#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/transport/tcp/secret.h"

namespace strait::cli {
namespace {

/// Never replaces a file: the secret in it may be in use.
void write_secret(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    throw InputError("{}: {}", file, errno == EEXIST ? "is there already" : std::strerror(errno));
  }
  const std::string line = random_secret() + "\n";
  const bool written = write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const bool lasts = written && fsync(descriptor) == 0;
  close(descriptor);
  if (lasts) return;
  const int error = errno;
  unlink(file.c_str());
  throw Error("{}: cannot be written: {}", file, std::strerror(error));
}

/// The text as a shell reads it as one word.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' || c == '_' || c == '-';
  };
  if (std::ranges::all_of(text, is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + '\'';
}

int run_keys(const std::string& file) {
  write_secret(file);
  print(fmt::format(
      "{} holds a new secret. Copy it to every machine, readable by you alone, and start each rank with\n"
      "    export {}={}\n",
      file, kSecretFileVariable, shell_word(file)));
  return 0;
}

}  // namespace

void add_keys(CLI::App& app, Action& action) {
  auto* verb =
      app.add_subcommand("keys", "Make the secret that lets the ranks of a run on several machines in");
  const auto file = std::make_shared<std::string>();
  verb->add_option("file", *file, "The file to make; one that is there is left alone")
      ->required()
      ->type_name("FILE");
  verb->footer(
      "\nRanks prove to each other that they know the secret, and encrypt with keys that they derive from it. "
      "It is\n"
      "what STRAIT_SECRET holds, or the file that STRAIT_SECRET_FILE names. On one machine none is needed.");
  verb->callback([&action, file] { action = [file] { return run_keys(*file); }; });
}

}  // namespace strait::cli
