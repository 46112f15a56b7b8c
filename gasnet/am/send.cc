/* send.cc: fills records from the arguments of calls. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/send.h"

#include <cstdlib>

#include "client/client.h"
#include "segment/segment.h"
#include "team/team.h"

namespace lintel::gasnet {
namespace {

MessageHeader header_for(const Message& message, MessageKind kind) {
  MessageHeader header;
  header.kind = kind;
  header.handler = message.handler;
  header.arguments = message.numargs;
  header.credits = message.is_reply ? 1 : 0;
  return header;
}

ptl_size_t offset_in_segment(gex_Rank_t target, const void* address, size_t bytes) {
  ptl_size_t offset = 0;
  if (!segment_table().offset_of(target, 0, address, bytes, &offset))
    gasnett_fatalerror_nopos("a Long to rank %u: the %zu bytes at %p are not in its segment",
                             target, bytes, address);
  return offset;
}

/** A reply must not wait for its data, so they are sent from a copy. */
void put_data_apart(const Message& message, const MessageHeader& header, const void* source,
                    ptl_size_t offset) {
  SendRecord* const record = message.record;
  record->operation = header.operation;
  record->data = source;
  record->data_bytes = header.data_bytes;
  record->data_offset = offset;
  if (message.is_reply) {
    record->data_copy = std::malloc(header.data_bytes);
    if (!record->data_copy)
      gasnett_fatalerror_nopos("no memory for the %zu bytes of a reply", header.data_bytes);
    std::memcpy(record->data_copy, source, header.data_bytes);
    record->data = record->data_copy;
    messages().post(record, message.target, header, message.args);
    return;
  }
  std::atomic<bool> source_is_free{false};
  record->source_is_free = &source_is_free;
  messages().post(record, message.target, header, message.args);
  messages().wait_for(source_is_free);
}

}  // namespace

char* place_for_data(const SendRecord& record, bool is_long, unsigned int numargs) {
  return record.buffer + header_bytes(is_long ? MessageKind::kLong : MessageKind::kMedium, numargs);
}

void send_short(const Message& message) {
  messages().post(message.record, message.target, header_for(message, MessageKind::kShort),
                  message.args);
}

void send_medium(const Message& message, const void* source, size_t bytes) {
  if (bytes > kLargestData)
    gasnett_fatalerror_nopos("a Medium has %zu bytes, at most %zu", bytes, kLargestData);
  MessageHeader header = header_for(message, MessageKind::kMedium);
  header.data_bytes = bytes;
  char* const place = place_for_data(*message.record, false, message.numargs);
  if (bytes != 0 && source != place) std::memcpy(place, source, bytes);
  messages().post(message.record, message.target, header, message.args);
}

void send_long(const Message& message, const void* source, size_t bytes, void* address) {
  if (bytes > kLargestLong)
    gasnett_fatalerror_nopos("a Long has %zu bytes, at most %zu", bytes, kLargestLong);
  MessageHeader header = header_for(message, MessageKind::kLong);
  header.address = address;
  header.data_bytes = bytes;
  if (bytes == 0) {
    messages().post(message.record, message.target, header, message.args);
    return;
  }
  const ptl_size_t offset = offset_in_segment(message.target, address, bytes);
  const std::optional<intptr_t> mapped = the_client()->team->mapped_offset_of(message.target);
  if (mapped) {
    std::memcpy(static_cast<char*>(address) + *mapped, source, bytes);
    header.kind = MessageKind::kLongPlaced;
    messages().post(message.record, message.target, header, message.args);
  } else if (bytes <= kLargestData) {
    char* const place = place_for_data(*message.record, true, message.numargs);
    if (source != place) std::memcpy(place, source, bytes);
    messages().post(message.record, message.target, header, message.args);
  } else {
    header.kind = MessageKind::kLongApart;
    header.operation = messages().next_operation();
    put_data_apart(message, header, source, offset);
  }
}

}  // namespace lintel::gasnet
