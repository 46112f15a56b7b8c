// Set-up path.
#include "fuzz/message_calls.h"

#include <cstring>

#include "fuzz/clock.h"
#include "fuzz/history.h"

namespace lintel::fuzz {

namespace {
void* user_pointer(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}
}  // namespace

void MessageCalls::send(const Message& m) {
  MessageSeen& seen = phase_.shared.messages[m.id];
  if (!m.triggered) seen.call_ns = now_ns();
  phase_.problems.expect_ok(start(m), "the call that starts a message");
  const Descriptor& d = phase_.program.descriptors[m.descriptor];
  if ((d.options & PTL_MD_VOLATILE) == 0 || m.triggered || m.kind == Kind::get ||
      m.length > phase_.objects.max_volatile_size())
    return;
  // The data have been copied (spec 3.10.1, PTL_MD_VOLATILE).
  d.memory.for_each(m.source, m.length, [&](uint64_t first, uint64_t bytes, uint64_t) {
    std::memset(phase_.memory.sends.data() + first, static_cast<int>(overwritten), bytes);
  });
}

int MessageCalls::start(const Message& m) {
  const ptl_handle_md_t md = descriptors_.handle_of(m.descriptor);
  const ptl_process_t target = phase_.objects.process(m.target);
  const ptl_pt_index_t index = first_portal + static_cast<ptl_pt_index_t>(m.portal);
  const ptl_match_bits_t bits = (uint64_t{m.id} + 1) << tag_bits | m.tag;
  void* const user = user_pointer(uint64_t{m.id} + 1);
  const ptl_hdr_data_t data = uint64_t{m.id} + 1;
  const ptl_handle_ct_t trigger = phase_.objects.trigger_count(m.thread);
  switch (m.kind) {
    case Kind::put:
      return m.triggered ? PtlTriggeredPut(md, m.source, m.length, m.ack, target, index, bits,
                                           m.remote_offset, user, data, trigger, m.threshold)
                         : PtlPut(md, m.source, m.length, m.ack, target, index, bits,
                                  m.remote_offset, user, data);
    case Kind::get:
      return m.triggered
                 ? PtlTriggeredGet(md, m.result, m.length, target, index, bits, m.remote_offset,
                                   user, trigger, m.threshold)
                 : PtlGet(md, m.result, m.length, target, index, bits, m.remote_offset, user);
    case Kind::atomic:
      return m.triggered ? PtlTriggeredAtomic(md, m.source, m.length, m.ack, target, index, bits,
                                              m.remote_offset, user, data, m.operation, m.datatype,
                                              trigger, m.threshold)
                         : PtlAtomic(md, m.source, m.length, m.ack, target, index, bits,
                                     m.remote_offset, user, data, m.operation, m.datatype);
    case Kind::fetch_atomic:
      return m.triggered ? PtlTriggeredFetchAtomic(md, m.result, md, m.source, m.length, target,
                                                   index, bits, m.remote_offset, user, data,
                                                   m.operation, m.datatype, trigger, m.threshold)
                         : PtlFetchAtomic(md, m.result, md, m.source, m.length, target, index, bits,
                                          m.remote_offset, user, data, m.operation, m.datatype);
    case Kind::swap:
      return m.triggered
                 ? PtlTriggeredSwap(md, m.result, md, m.source, m.length, target, index, bits,
                                    m.remote_offset, user, data, m.operand.data(), m.operation,
                                    m.datatype, trigger, m.threshold)
                 : PtlSwap(md, m.result, md, m.source, m.length, target, index, bits,
                           m.remote_offset, user, data, m.operand.data(), m.operation, m.datatype);
  }
  return PTL_FAIL;
}

}  // namespace lintel::fuzz
