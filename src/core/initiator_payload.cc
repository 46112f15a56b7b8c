// Gathering and sending the payload of a request. Message path.
#include "core/initiator_payload.h"

#include <algorithm>

#include "core/atomics.h"
#include "core/operation.h"

namespace lintel {

namespace {

constexpr unsigned gather_pieces = 32;

// Where the target finds, or is to put, the data. More pieces than fit, or a transport without remote
// access: none, and the data follow in messages.
unsigned describe_memory(const MemoryRegion& region, uint64_t offset, const MessageHeader& header,
                         RemoteMemory* out) noexcept {
  Piece pieces[transfer_remote_pieces];
  uint64_t covered = 0;
  const unsigned count =
      region.pieces(offset, header.length(), pieces, transfer_remote_pieces, &covered);
  if (covered != header.length()) return 0;
  for (unsigned i = 0; i < count; ++i)
    out[i] = {reinterpret_cast<uint64_t>(pieces[i].base), pieces[i].length, header.cookie};
  return count;
}

SendStatus send_description(Peer& peer, const MessageHeader& header, const MemoryRegion& region,
                            uint64_t offset) noexcept {
  RemoteMemory memory[transfer_remote_pieces];
  const unsigned count = peer.transport->capabilities().remote_access
                             ? describe_memory(region, offset, header, memory)
                             : 0;
  const Piece piece{reinterpret_cast<std::byte*>(memory), count * sizeof(RemoteMemory)};
  return peer.transport->send(*peer.link, header, &piece, count != 0 ? 1 : 0);
}

}  // namespace

SendStatus send_payload(Peer& peer, const MessageHeader& header, const Request& request,
                        const std::byte* copy) noexcept {
  if ((header.flags & flag_remote_memory) != 0) {
    return request.put != nullptr
               ? send_description(peer, header, request.put->region, request.put_offset)
               : send_description(peer, header, request.get->region, request.get_offset);
  }
  if (request.put == nullptr) return peer.transport->send(*peer.link, header, nullptr, 0);

  Piece pieces[gather_pieces + 1];
  unsigned count = 0;
  if (request.operand != nullptr)
    pieces[count++] = {const_cast<std::byte*>(request.operand), datatype_size(request.datatype)};
  if (copy != nullptr) {
    pieces[count++] = {const_cast<std::byte*>(copy), request.length};
    return peer.transport->send(*peer.link, header, pieces, count);
  }
  uint64_t covered = 0;
  const MemoryRegion& region = request.put->region;
  const unsigned described = region.pieces(request.put_offset, request.length, pieces + count,
                                           gather_pieces, &covered);
  if (covered == request.length) [[likely]]
    return peer.transport->send(*peer.link, header, pieces, count + described);
  // Many small iovec elements: gather them first. At most one eager message long.
  std::byte gathered[16384];
  if (request.length > sizeof gathered ||
      !region.read(request.put_offset, gathered, request.length))
    return SendStatus::inaccessible;
  pieces[count] = {gathered, request.length};
  return peer.transport->send(*peer.link, header, pieces, count + 1);
}

}  // namespace lintel
