#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strait/transport/tcp/connection.h"

namespace strait::tcp {

/// Several connections to one rank, which together carry what one would: where a link is long and fast, what a
/// system lets a single connection have under way does not fill it. The bytes of a direction are cut into
/// pieces, and each goes over whichever connection can take it first; at the other side they are in order
/// again. A piece is the place of its first byte (u64), its size (u32), and its bytes. Where one connection
/// breaks off, all do. All members are for the loop's thread.
class Bundle : public Line, public std::enable_shared_from_this<Bundle> {
 public:
  /// `id`: tells it from others between the two ranks.
  Bundle(EventLoop& loop, uint64_t id);
  ~Bundle() override;
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  uint64_t id() const { return id_; }

  /// Adds a connection, at the beginning or later. One that comes when the bundle is closed is closed too.
  void add(std::shared_ptr<Connection> connection);

  /// Connections that it has.
  int size() const;

  bool is_open() const { return open_; }

  void set_speaker(Speaker& speaker) override { speaker_ = &speaker; }
  void pump() override;
  void close() override;

 private:
  class Strand;

  void cut_piece(std::vector<std::byte>& piece);
  void deliver(std::span<const std::byte> bytes);
  void deliver_held();
  void wake();
  void fail(const std::string& reason);

  EventLoop& loop_;
  uint64_t id_;
  Speaker* speaker_ = nullptr;
  std::vector<std::unique_ptr<Strand>> strands_;
  bool open_ = true;
  bool woken_ = false;
  uint64_t out_ = 0;  ///< bytes cut into pieces
  uint64_t in_ = 0;   ///< bytes that the speaker has

  std::map<uint64_t, std::vector<std::byte>> held_;  ///< pieces that came before others, by their places
  size_t held_bytes_ = 0;                            ///< of these, and of those that are coming
};

}  // namespace strait::tcp
