// Gathering and sending the payload of a request. Message path.
#include "core/operations/initiator_payload.h"

#include "core/operations/device_import.h"

namespace lintel {

namespace {

constexpr unsigned gather_pieces = 32;

// Describes the memory that the target reads or writes. With too many pieces, or a transport
// without remote access, it describes none, and the data follow in messages.
Exposure expose_memory(Peer& peer, const MessageHeader& header, const MemoryRegion& region,
                       uint64_t offset, RemoteMemory* out) noexcept {
  Piece pieces[transfer_remote_pieces];
  uint64_t covered = 0;
  if (!peer.route.transport->capabilities().remote_access) return {SendStatus::sent};
  const unsigned count =
      region.pieces(offset, header.length(), pieces, transfer_remote_pieces, &covered);
  if (covered != header.length()) return {SendStatus::sent};
  return peer.route.transport->expose(*peer.route.link, pieces, count,
                                      header.kind != MessageKind::put, header.cookie, out);
}

// Names memory of a device to a peer on this node, which has the device copy if it can.
[[gnu::noinline]] SendStatus send_device_description(DeviceExports& exports, Peer& peer,
                                                     const MessageHeader& header,
                                                     const MemoryRegion& region,
                                                     uint64_t offset) noexcept
    LINTEL_REQUIRES(peer.send_lock) {
  DeviceDescription description{};
  if (peer.route.transport->process_of(*peer.route.link) == 0 ||
      !describe_device(exports, region, offset, header.length(), &description))
    return peer.route.transport->send(*peer.route.link, header, nullptr, 0);
  MessageHeader names = header;
  names.modes |= names_device;
  peer.route.knows_memory = true;
  const Piece piece{reinterpret_cast<std::byte*>(&description), sizeof description};
  return peer.route.transport->send(*peer.route.link, names, &piece, 1);
}

SendStatus send_description(DeviceExports& exports, Peer& peer, const MessageHeader& header,
                            const MemoryRegion& region, uint64_t offset,
                            Operation& operation) noexcept LINTEL_REQUIRES(peer.send_lock) {
  if (!region.is_host(offset, header.length()) &&
      !peer.route.transport->capabilities().accesses_accelerators) [[unlikely]]
    return send_device_description(exports, peer, header, region, offset);
  RemoteMemory memory[transfer_remote_pieces];
  const Exposure exposure = expose_memory(peer, header, region, offset, memory);
  if (exposure.status != SendStatus::sent) return exposure.status;
  operation.exposure.store(exposure.number, std::memory_order_relaxed);
  const Piece piece{reinterpret_cast<std::byte*>(memory), exposure.count * sizeof(RemoteMemory)};
  const SendStatus status =
      peer.route.transport->send(*peer.route.link, header, &piece, exposure.count != 0 ? 1 : 0);
  if (status != SendStatus::sent && exposure.number != Exposure::none) {
    operation.exposure.store(Exposure::none, std::memory_order_relaxed);
    peer.route.transport->withdraw(*peer.route.link, exposure.number, false);
  }
  return status;
}

// Many small iovec elements, and memory of a device, are gathered first, behind `count` pieces. At
// most one eager message long.
[[gnu::noinline]] SendStatus send_gathered(ScratchPool& pool, Peer& peer, const Request& request,
                                           Piece* pieces, unsigned count) noexcept {
  const uint64_t length = request.header.length();
  const Loan<ScratchBlock> block(pool);
  std::byte* const gathered = block.get().bytes;
  if (length > sizeof block.get().bytes ||
      !request.put.descriptor->region.read(request.put_offset, gathered, length))
    return SendStatus::inaccessible;
  pieces[count] = {gathered, length};
  return peer.route.transport->send(*peer.route.link, request.header, pieces, count + 1);
}

}  // namespace

SendStatus send_payload(ScratchPool& scratch, DeviceExports& exports, Peer& peer,
                        const Request& request, Operation* operation,
                        const std::byte* copy) noexcept {
  const MessageHeader& header = request.header;
  const MemoryDescriptor* put = request.put.descriptor;
  if ((header.flags & flag_remote_memory) != 0) {
    return put != nullptr ? send_description(exports, peer, header, put->region, request.put_offset,
                                             *operation)
                          : send_description(exports, peer, header, request.get.descriptor->region,
                                             request.get_offset, *operation);
  }
  if (put == nullptr) return peer.route.transport->send(*peer.route.link, header, nullptr, 0);

  const uint64_t length = header.length();
  Piece pieces[gather_pieces + 1];
  unsigned count = 0;
  if (request.operand_bytes != 0)
    pieces[count++] = {const_cast<std::byte*>(request.operand), request.operand_bytes};
  if (copy != nullptr) {
    pieces[count++] = {const_cast<std::byte*>(copy), length};
    return peer.route.transport->send(*peer.route.link, header, pieces, count);
  }
  uint64_t covered = 0;
  const MemoryRegion& region = put->region;
  if (!region.is_host(request.put_offset, length)) [[unlikely]]
    return send_gathered(scratch, peer, request, pieces, count);
  const unsigned described =
      region.pieces(request.put_offset, length, pieces + count, gather_pieces, &covered);
  if (covered == length) [[likely]]
    return peer.route.transport->send(*peer.route.link, header, pieces, count + described);
  return send_gathered(scratch, peer, request, pieces, count);
}

}  // namespace lintel
