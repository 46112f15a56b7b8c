// Memory descriptors (spec 3.10). Set-up path.
#include "api/in_use.h"
#include "api/resolve.h"
#include "core/objects/event_queue_use.h"
#include "portals4.h"

using namespace lintel;
using namespace lintel::api;

namespace {
constexpr unsigned descriptor_options =
    PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_SEND |
    PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES | PTL_MD_UNORDERED |
    PTL_MD_VOLATILE | PTL_MD_UNRELIABLE;
}

extern "C" {

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  EventQueueObject* event_queue = nullptr;
  CountingEvent* counter = nullptr;
  if (interface == nullptr || md == nullptr || md_handle == nullptr ||
      (md->options & ~descriptor_options) != 0 ||
      !resolve_optional_event_queue(*interface, md->eq_handle, &event_queue) ||
      !resolve_optional_counter(*interface, md->ct_handle, &counter))
    return code_of_bad_handle();
  const bool iovec = (md->options & PTL_IOVEC) != 0;
  if (iovec && md->length > static_cast<ptl_size_t>(interface->limits().max_iovecs))
    return PTL_ARG_INVALID;
  const uint32_t index = interface->descriptors().allocate();
  if (index == Arena<MemoryDescriptor>::no_index) return PTL_NO_SPACE;
  MemoryDescriptor& descriptor = interface->descriptors().at(index);
  if (!descriptor.region.open(md->start, md->length, iovec, false)) {
    interface->descriptors().release(index);
    return PTL_ARG_INVALID;
  }
  descriptor.options = md->options;
  descriptor.event_queue = event_queue;
  descriptor.counter = counter;
  descriptor.recent_peer.store(nullptr, std::memory_order_relaxed);
  if (event_queue != nullptr) use_event_queue(*event_queue);
  descriptor.generation.fetch_add(1, std::memory_order_release);  // alive
  *md_handle =
      interface->handle_of(HandleType::memory_descriptor, interface->descriptors(), descriptor);
  return PTL_OK;
}

int PtlMDRelease(ptl_handle_md_t md_handle) noexcept {
  const DescriptorOfInterface found = resolve_descriptor(md_handle);
  if (found.descriptor == nullptr) return code_of_bad_handle();
  MemoryDescriptor& descriptor = *found.descriptor;
  NetworkInterface& interface = *found.interface;
  const auto is_in_use = [&] {
    return descriptor.pending.load(std::memory_order_acquire) != 0 ? PTL_IN_USE : PTL_OK;
  };
  if (poll_before_refusal(interface.physical(), PTL_IN_USE, is_in_use) != PTL_OK) return PTL_IN_USE;
  // Of several releases of one handle only one may succeed.
  uint32_t generation = descriptor.generation.load(std::memory_order_relaxed);
  if (!generation_is_live(generation) || !descriptor.generation.compare_exchange_strong(
                                             generation, generation + 1, std::memory_order_acq_rel))
    return PTL_ARG_INVALID;
  interface.physical().poller().token().finish_round();
  descriptor.region.close();
  if (descriptor.event_queue != nullptr) unuse_event_queue(interface, *descriptor.event_queue);
  interface.descriptors().release(interface.descriptors().index_of(descriptor));
  return PTL_OK;
}

}  // extern "C"
