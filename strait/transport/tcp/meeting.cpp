#include "strait/transport/tcp/meeting.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "strait/base/error.h"
#include "strait/transport/tcp/secret.h"

namespace strait::tcp {
namespace {

/// Makes the folder, or takes it where it is the user's and nobody else's.
void make_private_folder(const std::string& folder) {
  struct stat found {};
  int error = ENOENT;
  while (error == ENOENT) {  // the last to leave it may take it away meanwhile
    if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      throw Error("{}: cannot be made: {}", folder, std::strerror(errno));
    }
    error = lstat(folder.c_str(), &found) == 0 ? 0 : errno;
  }
  if (error != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
      (found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw Error("{}: expected a folder that only user {} can open", folder, geteuid());
  }
}

/// That of all the user's meetings.
std::string folder_of_user() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool has_runtime = runtime != nullptr && *runtime == '/' && access(runtime, W_OK) == 0;
  return has_runtime ? fmt::format("{}/strait", runtime) : fmt::format("/tmp/strait-{}", geteuid());
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// Whether the path still leads to the file that is open.
bool is_at(const Socket& file, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return fstat(file.descriptor(), &open) == 0 && stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

/// Opens a file of the folder, or makes it, and the folder again where the last to leave it has taken it away.
Socket open_in(const std::string& folder, const std::string& path) {
  while (true) {
    Socket file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file) return file;
    if (errno != ENOENT) throw Error("{}: {}", path, std::strerror(errno));
    make_private_folder(folder);
  }
}

}  // namespace

RankPlace::RankPlace(std::string folder, int rank)
    : folder_(std::move(folder)), path_(fmt::format("{}/{}", folder_, rank)) {
  const std::string lock = path_ + ".lock";
  do {
    lock_ = open_in(folder_, lock);
    if (flock(lock_.descriptor(), LOCK_EX | LOCK_NB) != 0) throw PlaceTaken("{}: another process has it", lock);
  } while (!is_at(lock_, lock));  // its last owner has just taken it away
}

RankPlace::~RankPlace() {
  unlink(path_.c_str());
  unlink((path_ + ".lock").c_str());
  rmdir(folder_.c_str());  // fails while others are there
}

std::string folder_of(uint16_t port, const std::string& attempt) {
  const std::string name = attempt.empty() ? "" : "-" + digest(attempt).substr(0, 16);
  return fmt::format("{}/{}{}", folder_of_user(), port, name);
}

Meeting meeting_of(const Membership& membership) {
  Meeting meeting;
  if (const auto secret = secret_of_process()) {
    meeting.tls = std::make_unique<Tls>(*secret);
    meeting.first = {.host = membership.master_address, .port = membership.master_port};
    return meeting;
  }
  if (membership.local_size != membership.size && !is_loopback(membership.master_address)) {
    throw InputError(
        "{0}: not set, and ranks of several machines need one secret; make it with `strait keys`, and give it "
        "to every rank as {0}, or as a file whose name is in {1}",
        kSecretVariable, kSecretFileVariable);
  }
  meeting.folder = folder_of(membership.master_port, membership.attempt);
  make_private_folder(folder_of_user());
  make_private_folder(meeting.folder);
  meeting.first = meeting.at_path(0);
  return meeting;
}

}  // namespace strait::tcp
