#pragma once

#include <memory>
#include <span>
#include <string>

#include "strait/transport/tcp/event_loop.h"
#include "strait/transport/tcp/stream.h"

namespace strait::tcp {

/// What reads and writes over a connection. Its members are called in the loop's thread.
class Speaker {
 public:
  virtual ~Speaker() = default;

  /// Where bytes are to go that come next; empty: none for now.
  virtual std::span<std::byte> space() = 0;

  /// So many of them have come.
  virtual void got(size_t bytes) = 0;

  /// What is to be written next; empty: nothing for now.
  virtual std::span<const std::byte> bytes() = 0;

  /// So many of them are written.
  virtual void wrote(size_t bytes) = 0;

  /// Both sides have proved what they know; before, nothing else is called.
  virtual void opened() {}

  /// The connection is closed, and nothing else is called.
  virtual void closed(const std::string& reason) = 0;
};

/// What carries one speaker's bytes to another: a connection, or several. All members are for the loop's
/// thread.
class Line {
 public:
  Line() = default;
  virtual ~Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Who speaks from now on; it must close the line before it goes.
  virtual void set_speaker(Speaker& speaker) = 0;

  /// Reads and writes what there is, and goes on whenever the sockets can. To be called at the beginning, and
  /// when the speaker has something new.
  virtual void pump() = 0;

  /// Closes; the speaker hears no more.
  virtual void close() = 0;
};

/// A stream and what speaks over it.
class Connection : public Line, public std::enable_shared_from_this<Connection> {
 public:
  Connection(EventLoop& loop, std::unique_ptr<Stream> stream)
      : loop_(loop), stream_(std::move(stream)), watch_(loop_.watch(stream_->socket().descriptor())) {}

  const Socket& socket() const { return stream_->socket(); }

  void set_speaker(Speaker& speaker) override {
    speaker_ = &speaker;
    is_new_speaker_ = true;
  }

  void pump() override;
  void close() override;

  bool is_open() const { return watch_ != nullptr; }

 private:
  bool prove();
  bool write(size_t& moved);
  bool read(size_t& moved);
  bool settle(const Progress& progress);
  void wait_for(Progress::State state);

  EventLoop& loop_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<EventLoop::Watch> watch_;  ///< null: closed
  Speaker* speaker_ = nullptr;
  bool is_new_speaker_ = false;
  bool proved_ = false;
  bool pumping_ = false;
  bool is_asked_again_ = false;  ///< to pump, while it did
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
};

}  // namespace strait::tcp
