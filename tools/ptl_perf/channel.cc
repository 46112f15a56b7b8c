// The two ends of the traffic. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/channel.h"

#include <algorithm>

namespace lintel::perf {
namespace {

unsigned report_options(Events events) {
  const unsigned common = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
  if (events == Events::full) return common;
  return common | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM;
}

}  // namespace

Exposure::Exposure(Endpoint& endpoint, Events events, std::uint64_t event_capacity,
                   ptl_pt_index_t index)
    : endpoint_(endpoint),
      queue_(events == Events::full ? allocate_event_queue(endpoint.interface, event_capacity)
                                    : EventQueue()),
      counter_(events == Events::counting ? allocate_counter(endpoint.interface) : Counter()),
      portal_(endpoint.interface, 0, queue_ ? queue_.get() : PTL_EQ_NONE, index) {}

void Exposure::append(const ptl_me_t& entry) {
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  if (endpoint_.matching) {
    require(PtlMEAppend(endpoint_.interface, portal_.index(), &entry, PTL_PRIORITY_LIST, nullptr,
                        &handle),
            "PtlMEAppend");
    match_entries_.emplace_back(handle);
  } else {
    const ptl_le_t list_entry{.start = entry.start,
                              .length = entry.length,
                              .ct_handle = entry.ct_handle,
                              .uid = entry.uid,
                              .options = entry.options};
    require(PtlLEAppend(endpoint_.interface, portal_.index(), &list_entry, PTL_PRIORITY_LIST,
                        nullptr, &handle),
            "PtlLEAppend");
    list_entries_.emplace_back(handle);
  }
}

void Exposure::expose(const Region& region, ptl_process_t peer) {
  ptl_me_t entry{};
  entry.start = region.start();
  entry.length = region.length_bytes();
  entry.ct_handle = counter_ ? counter_.get() : PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options =
      PTL_ME_OP_PUT | PTL_ME_OP_GET | report_options(queue_ ? Events::full : Events::counting);
  if (region.is_host()) entry.options |= PTL_ME_IS_ACCESSIBLE;
  entry.match_id = peer;
  entry.match_bits = data_match_bits;
  append(entry);
}

void Exposure::append_empty(ptl_process_t match_id, ptl_match_bits_t match_bits,
                            ptl_match_bits_t ignore_bits) {
  ptl_me_t entry{};
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | report_options(Events::full);
  entry.match_id = match_id;
  entry.match_bits = match_bits;
  entry.ignore_bits = ignore_bits;
  append(entry);
}

Completion completion_of(Ack ack) {
  switch (ack) {
    case Ack::none:
      return Completion::nothing;
    case Ack::full:
      return Completion::full;
    case Ack::counting:
    case Ack::operation_complete:
      return Completion::counting;
  }
  return Completion::nothing;
}

ptl_ack_req_t ack_request(Ack ack) {
  switch (ack) {
    case Ack::none:
      return PTL_NO_ACK_REQ;
    case Ack::full:
      return PTL_ACK_REQ;
    case Ack::counting:
      return PTL_CT_ACK_REQ;
    case Ack::operation_complete:
      return PTL_OC_ACK_REQ;
  }
  return PTL_NO_ACK_REQ;
}

Source::Source(Endpoint& endpoint, const Region& region, Completion completion, unsigned counted,
               std::uint64_t event_capacity)
    : queue_(completion == Completion::full
                 ? allocate_event_queue(endpoint.interface, event_capacity)
                 : EventQueue()),
      counter_(completion == Completion::counting ? allocate_counter(endpoint.interface)
                                                  : Counter()) {
  ptl_md_t descriptor{};
  descriptor.start = region.start();
  descriptor.length = region.length_bytes();
  descriptor.options = PTL_MD_EVENT_SEND_DISABLE;
  if (completion == Completion::counting) descriptor.options |= counted;
  descriptor.eq_handle = queue_ ? queue_.get() : PTL_EQ_NONE;
  descriptor.ct_handle = counter_ ? counter_.get() : PTL_CT_NONE;
  descriptor_ = bind_memory(endpoint.interface, descriptor);
}

Source::Source(Endpoint& endpoint, const Region& region, const Exposure& answers) {
  ptl_md_t descriptor{};
  descriptor.start = region.start();
  descriptor.length = region.length_bytes();
  descriptor.options = PTL_MD_EVENT_SUCCESS_DISABLE;
  if (!answers.has_queue()) descriptor.options |= PTL_MD_EVENT_CT_ACK;
  descriptor.eq_handle = answers.has_queue() ? answers.queue() : PTL_EQ_NONE;
  descriptor.ct_handle = answers.has_queue() ? PTL_CT_NONE : answers.counter();
  descriptor_ = bind_memory(endpoint.interface, descriptor);
}

Destination peer_of(Session& session, const Endpoint& endpoint, ptl_pt_index_t index) {
  return {endpoint.addresses[session.peer_rank()], index, data_match_bits};
}

EndMarker::EndMarker(Endpoint& endpoint, const Destination& to) : to_(to) {
  ptl_md_t nothing{};
  nothing.options = PTL_MD_EVENT_SEND_DISABLE;
  nothing.eq_handle = PTL_EQ_NONE;
  nothing.ct_handle = PTL_CT_NONE;
  descriptor_ = bind_memory(endpoint.interface, nothing);
}

void EndMarker::send() {
  ++sent_;
  require(PtlPut(descriptor_.get(), 0, 0, PTL_NO_ACK_REQ, to_.process, to_.index, to_.match_bits, 0,
                 nullptr, end_marker + sent_),
          "PtlPut");
}

}  // namespace lintel::perf
