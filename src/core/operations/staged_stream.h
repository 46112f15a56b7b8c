// The data of one long message on its way between memory of a device and the network, through
// buffers of the host: copies by the device run while the network moves other parts. Nobody waits
// for a copy: it is started, and a later round of polling finds out that it has ended.
// Message path. Belongs to the holder of the poll token.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/objects/memory_region.h"
#include "core/operations/device_import.h"
#include "core/operations/operation.h"
#include "core/operations/staging_buffers.h"
#include "portals4.h"
#include "transport/polling.h"

namespace lintel {

class StagedStream;

// The owner of a stream: it continues the message.
class StagingClient {
 public:
  // Copies have ended, with success or not, or there are buffers for a stream that lacked one.
  virtual void on_staged(StagedStream& stream) noexcept LINTEL_REQUIRES(polling) = 0;

 protected:
  ~StagingClient() = default;
};

// The part [begin, end) of a message, in blocks one behind the other, of which a few have a buffer
// at a time. With an import the other side is not the network, but memory of a device that this
// process reaches: if both sides are devices, one copies to the other without buffers; if the
// region is memory of the host, the client moves the data between it and the buffers.
class StagedStream {
 public:
  static constexpr unsigned most_blocks = 8;

  enum class Direction : uint8_t { to_device, from_device };
  struct Settings {
    Direction direction;
    const MemoryRegion* region;
    uint64_t region_offset;  // of the first byte of the message
    uint64_t begin;          // what lies before has been moved already
    uint64_t end;
    StagingClient* client;
    QueuedSend* owner;  // Operation or Transfer
    DeviceImport import{};
  };
  void open(const Settings& settings, StagingBuffers& buffers) noexcept;

  [[nodiscard]] StagingClient& client() const noexcept { return *settings_.client; }
  [[nodiscard]] QueuedSend& owner() const noexcept { return *settings_.owner; }
  [[nodiscard]] bool is_to_device() const noexcept {
    return settings_.direction == Direction::to_device;
  }
  [[nodiscard]] bool has_import() const noexcept { return settings_.import.is_open(); }
  // Copies between two devices; copy_directly() starts them.
  [[nodiscard]] bool is_direct() const noexcept { return is_direct_; }
  // A copy is under way that writes to other memory than the buffers.
  [[nodiscard]] bool is_writing() const noexcept {
    return copying_ != 0 && (is_to_device() || is_direct_);
  }

  // PTL_NI_OK, or why a copy failed; PTL_NI_UNDELIVERABLE: no memory for any buffer. After a
  // failure no copy is started.
  [[nodiscard]] ptl_ni_fail_t fail() const noexcept { return fail_; }
  [[nodiscard]] bool is_cancelled() const noexcept { return cancelled_; }
  [[nodiscard]] bool is_copying() const noexcept { return copying_ != 0; }
  // A block has no buffer, for want of one.
  [[nodiscard]] bool lacks_buffer() const noexcept { return lacks_buffer_; }
  // All bytes are in the device, or were taken.
  [[nodiscard]] bool is_complete() const noexcept {
    return fail_ == PTL_NI_OK && passed_ == settings_.end;
  }

  // Asks for the state of copies. True: something has changed for the client.
  [[nodiscard]] bool advance() noexcept;
  // Starts no more copies, and gives buffers back as soon as no copy uses them.
  void cancel() noexcept;
  // No copy is under way, and the client has gone.
  void close() noexcept { settings_.import.close(); }

  // --- between devices
  void copy_directly() noexcept;

  // --- to the device
  // Opens as many blocks as have buffers. Returns the offset in the message up to which they reach.
  [[nodiscard]] uint64_t open_blocks() noexcept;
  // Takes bytes of open blocks, in any order, each once. False: they are not expected.
  [[nodiscard]] bool put(uint64_t offset, const std::byte* data, uint64_t length) noexcept;
  // The room for the next bytes in order, of length 0 if there is none; filled() says how many were
  // written. Not together with put().
  [[nodiscard]] Piece room() noexcept;
  void filled(uint64_t bytes) noexcept;

  // --- from the device
  // Copies ahead, up to the offset `limit` in the message.
  void load(uint64_t limit) noexcept;
  // The next bytes in order, of length 0 if they are not there yet; taken() says how many are not
  // needed any more.
  [[nodiscard]] Piece ready() const noexcept;
  void taken(uint64_t bytes) noexcept;

 private:
  enum class Stage : uint8_t {
    filling,  // bytes arrive from the network
    copying,
    loaded,  // copied from the device
    done,    // copied to the device, or cancelled
  };
  struct Block {
    std::byte* buffer;  // nullptr between devices
    uint64_t begin;     // offset in the message
    uint32_t bytes;
    uint32_t moved;     // bytes that came from the network or went there
    uint32_t copied;    // bytes
    uint32_t running;   // bytes of the copy under way
    CopyTicket ticket;  // no_copy: the copy could not be started yet
    MemoryKind* kind;   // of the copy under way
    Stage stage;
  };
  [[nodiscard]] Block& block(unsigned place) noexcept {
    return blocks_[(first_ + place) % most_blocks];
  }
  [[nodiscard]] const Block& block(unsigned place) const noexcept {
    return blocks_[(first_ + place) % most_blocks];
  }
  [[nodiscard]] Block* block_at(uint64_t offset) noexcept;
  [[nodiscard]] bool add_block(uint64_t limit, Stage stage) noexcept;
  void remove_done() noexcept;
  void begin_copy(Block& block) noexcept;
  void copy_on(Block& block) noexcept;
  [[nodiscard]] bool start_piece(Block& block) noexcept;
  [[nodiscard]] KindPiece device_piece(uint64_t offset, uint64_t length) const noexcept;
  void end_copy(Block& block, ptl_ni_fail_t fail) noexcept;

  Settings settings_{};
  StagingBuffers* buffers_ = nullptr;
  MemoryKind* pinning_kind_ = nullptr;
  uint64_t opened_ = 0;  // offset in the message at which the last block ends
  uint64_t passed_ = 0;  // offset in the message before which all is complete
  std::array<Block, most_blocks> blocks_{};
  unsigned first_ = 0;
  unsigned count_ = 0;
  unsigned copying_ = 0;  // blocks whose stage is copying
  ptl_ni_fail_t fail_ = PTL_NI_OK;
  bool is_direct_ = false;
  bool cancelled_ = false;
  bool lacks_buffer_ = false;
};

}  // namespace lintel
