// Memory descriptors (spec 3.10). Set-up path.
#include <atomic>

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/objects/event_queue_use.h"
#include "memory_kind/memory_kind.h"
#include "portals4.h"
#include "util/log.h"

using namespace lintel;
using namespace lintel::api;

namespace {
constexpr unsigned descriptor_options =
    PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_SEND |
    PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES | PTL_MD_UNORDERED |
    PTL_MD_VOLATILE | PTL_MD_UNRELIABLE;
constexpr Call md_bind{"PtlMDBind", "spec 3.10.3"};
constexpr Call md_release{"PtlMDRelease", "spec 3.10.4"};

// Legal, and probably not meant.
void warn_of_counting(unsigned options, bool has_counter) noexcept {
  const bool counts =
      (options & (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK)) != 0;
  static std::atomic<bool> said_uncounted{false};
  static std::atomic<bool> said_no_counter{false};
  if (has_counter && !counts)
    log_once(
        said_uncounted, LogLevel::warn,
        "a memory descriptor has a ct_handle, but none of PTL_MD_EVENT_CT_SEND, "
        "PTL_MD_EVENT_CT_REPLY and PTL_MD_EVENT_CT_ACK (spec 3.10.1): nothing will be counted");
  if (!has_counter && counts)
    log_once(said_no_counter, LogLevel::warn,
             "a memory descriptor has a PTL_MD_EVENT_CT_ option, but its ct_handle is PTL_CT_NONE "
             "(spec 3.10.1): nothing will be counted");
}
}  // namespace

extern "C" {

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(md_bind, ni_handle);
  if (md == nullptr) return refuse_null(md_bind, "md");
  if (md_handle == nullptr) return refuse_null(md_bind, "md_handle");
  look_for_drivers();
  if ((md->options & ~descriptor_options) != 0)
    return refuse_bits(PTL_ARG_INVALID, md_bind, "md->options", md->options,
                       "must consist of options of memory descriptors, see 3.10.1");
  EventQueueObject* event_queue = nullptr;
  if (!resolve_optional_event_queue(*interface, md->eq_handle, &event_queue))
    return refuse_handle(md_bind, "md->eq_handle", md->eq_handle, HandleType::event_queue);
  CountingEvent* counter = nullptr;
  if (!resolve_optional_counter(*interface, md->ct_handle, &counter))
    return refuse_handle(md_bind, "md->ct_handle", md->ct_handle, HandleType::counter);
  warn_of_counting(md->options, counter != nullptr);
  const bool iovec = (md->options & PTL_IOVEC) != 0;
  if (iovec && md->length > static_cast<ptl_size_t>(interface->limits().max_iovecs))
    return refuse(PTL_ARG_INVALID, md_bind, "md->length", md->length,
                  "must be at most max_iovecs with PTL_IOVEC, see 3.6.1");
  const uint32_t index = interface->descriptors().allocate();
  if (index == Arena<MemoryDescriptor>::no_index)
    return refuse(PTL_NO_SPACE, md_bind, "max_mds",
                  static_cast<uint64_t>(interface->limits().max_mds),
                  "that many memory descriptors exist, or there is no memory");
  MemoryDescriptor& descriptor = interface->descriptors().at(index);
  if (!descriptor.region.open(md->start, md->length, iovec, false)) {
    interface->descriptors().release(index);
    return refuse_bits(PTL_ARG_INVALID, md_bind, "md->start",
                       reinterpret_cast<uintptr_t>(md->start),
                       "must point to readable memory of that many elements with PTL_IOVEC");
  }
  descriptor.options = md->options;
  descriptor.event_queue = event_queue;
  descriptor.counter = counter;
  descriptor.dropped = &interface->status.dropped;
  descriptor.recent_peer.store(nullptr, std::memory_order_relaxed);
  if (event_queue != nullptr) use_event_queue(*event_queue);
  *md_handle = descriptor.handle.begin(interface->handle_family(
      HandleType::memory_descriptor, interface->descriptors(), descriptor));
  return PTL_OK;
}

int PtlMDRelease(ptl_handle_md_t md_handle) noexcept {
  const LongCall call(interface_index_of(md_handle));
  const DescriptorOfInterface found = resolve_descriptor(md_handle);
  if (found.descriptor == nullptr)
    return refuse_handle(md_release, "md_handle", md_handle, HandleType::memory_descriptor);
  MemoryDescriptor& descriptor = *found.descriptor;
  NetworkInterface& interface = *found.interface;
  const auto is_in_use = [&] {
    return descriptor.pending.load(std::memory_order_acquire) != 0 ? PTL_IN_USE : PTL_OK;
  };
  if (poll_before_refusal(interface.physical(), PTL_IN_USE, is_in_use) != PTL_OK)
    return refuse(PTL_IN_USE, md_release, "operations",
                  descriptor.pending.load(std::memory_order_relaxed),
                  "the descriptor must have no operations that are not complete");
  // Only one of several releases of a handle may succeed.
  if (!descriptor.handle.end(md_handle))
    return refuse_handle(md_release, "md_handle", md_handle, HandleType::memory_descriptor);
  interface.physical().poller().token().finish_round();
  descriptor.region.close();
  if (descriptor.event_queue != nullptr) unuse_event_queue(interface, *descriptor.event_queue);
  interface.descriptors().release(descriptor);
  return PTL_OK;
}

}  // extern "C"
