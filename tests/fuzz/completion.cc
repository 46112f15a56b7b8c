// Set-up path.
#include "fuzz/completion.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "fuzz/kinds.h"
#include "support/deadlines.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

// The events that a started operation posts for its descriptor with any result.
uint32_t sure_sends(const Message& m, const Descriptor& d) {
  return m.kind != Kind::get && d.has_queue &&
                 (d.options & (PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE)) == 0
             ? 1
             : 0;
}
bool end_is_sure(const Message& m, const Descriptor& d) {
  return d.has_queue && (replies(m.kind) || m.ack == PTL_ACK_REQ) &&
         (d.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0;
}

}  // namespace

std::string Completion::unfinished() {
  std::vector<Count> expected(phase_.program.descriptors.size());
  for (const Message& m : phase_.program.messages) {
    if (m.endpoint != phase_.endpoint || !m.starts) continue;
    const Descriptor& d = phase_.program.descriptors[m.descriptor];
    const MessageSeen& seen = phase_.shared.messages[m.id];
    if (seen.sends < sure_sends(m, d))
      return "message " + std::to_string(m.id) + " has no PTL_EVENT_SEND";
    if (end_is_sure(m, d) && seen.ends == 0)
      return "message " + std::to_string(m.id) + " has no PTL_EVENT_ACK or PTL_EVENT_REPLY";
    if (!d.has_counter) continue;
    const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
    Count& count = expected[m.descriptor];
    if (m.kind != Kind::get && (d.options & PTL_MD_EVENT_CT_SEND) != 0)
      count.success += bytes ? m.length : 1;
    const unsigned option = replies(m.kind) ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK;
    if ((!replies(m.kind) && m.ack == PTL_NO_ACK_REQ) || (d.options & option) == 0) continue;
    if (!bytes) {
      ++count.success;
    } else if (seen.end.ni_fail_type == PTL_NI_OK) {
      count.success += seen.end.mlength;
    } else {
      ++count.failure;
    }
  }
  for (uint32_t i = 0; i < expected.size(); ++i) {
    const Descriptor& d = phase_.program.descriptors[i];
    if (d.endpoint != phase_.endpoint || !d.has_counter) continue;
    const Count is = phase_.objects.read(descriptors_.counter_of(i));
    const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
    const bool there = bytes ? is == expected[i]
                             : is.success + is.failure == expected[i].success + expected[i].failure;
    if (!there)
      return "the counter of descriptor " + std::to_string(i) + " is " +
             std::to_string(is.success) + "/" + std::to_string(is.failure) + " instead of " +
             std::to_string(expected[i].success) + "/" + std::to_string(expected[i].failure);
  }
  return "";
}

void Completion::wait_until(const char* what, const std::function<std::string()>& missing) {
  const auto deadline = std::chrono::steady_clock::now() + test::wait_deadline;
  for (;;) {
    for (int i = 0; i < phase_.program.shape.threads; ++i) events_.take_of_thread(i);
    const std::string left = missing();
    if (left.empty()) return;
    if (phase_.shared.failed.load() != 0) throw OtherFailed{};
    if (std::chrono::steady_clock::now() > deadline)
      return phase_.problems.add(std::string(what) + left);
    phase_.objects.poll();
  }
}

// No triggered operation is pending, and the counters have the values that the triggered operations
// produced.
void Completion::finish_triggers() {
  const int threads = phase_.program.shape.threads;
  for (int i = 0; i < threads; ++i) {
    const ptl_handle_ct_t counter = phase_.objects.trigger_count(i);
    phase_.problems.expect_ok(PtlCTCancelTriggered(counter), "PtlCTCancelTriggered");
    const Count is = phase_.objects.read(counter);
    const uint64_t expected =
        phase_.program.final_counts[static_cast<std::size_t>(phase_.endpoint * threads + i)];
    if (is != Count{expected, 0})
      phase_.problems.add("the counter of triggered operations of thread " + std::to_string(i) +
                          " is " + std::to_string(is.success) + "/" + std::to_string(is.failure) +
                          " instead of " + std::to_string(expected));
  }
}

void Completion::finish_operations() {
  finish_triggers();
  wait_until("an operation does not end: ", [&] { return unfinished(); });
  descriptors_.for_each([&](uint32_t i) {
    wait_until("PtlMDRelease: ", [&]() -> std::string {
      const int code = PtlMDRelease(descriptors_.handle_of(i));
      return code == PTL_OK
                 ? ""
                 : "descriptor " + std::to_string(i) + ": " + test::return_code_name(code);
    });
    phase_.shared.descriptor_counts[i] = phase_.objects.read(descriptors_.counter_of(i));
  });
  for (const Message& m : phase_.program.messages) {
    if (m.endpoint != phase_.endpoint) continue;
    const Descriptor& d = phase_.program.descriptors[m.descriptor];
    MessageSeen& seen = phase_.shared.messages[m.id];
    const uint32_t sends = m.starts ? sure_sends(m, d) : 0;
    if (seen.sends != sends || seen.ends > (m.starts ? 1u : 0u))
      phase_.problems.add("message " + std::to_string(m.id) +
                          (m.starts ? "" : ", which never started,") + " has " +
                          std::to_string(seen.sends) + " PTL_EVENT_SEND and " +
                          std::to_string(seen.ends) + " PTL_EVENT_ACK or PTL_EVENT_REPLY");
    if (m.kind < Kind::fetch_atomic) continue;
    d.memory.for_each(m.result, m.length, [&](uint64_t start, uint64_t bytes, uint64_t done) {
      std::memcpy(seen.result + done, phase_.memory.sends.data() + start, bytes);
    });
  }
}

// When a message has been processed, all earlier ones have been, too.
void Completion::fence() {
  const CountingDescriptor& fence = phase_.objects.fence();
  ptl_size_t fences = phase_.objects.read(fence.count).success;
  for (const ptl_process_t& process : phase_.objects.processes()) {
    phase_.problems.expect_ok(
        PtlPut(fence.handle, 0, 0, PTL_ACK_REQ, process, fence_portal, 0, 0, nullptr, 0), "PtlPut");
    ++fences;
  }
  const auto deadline = std::chrono::steady_clock::now() + test::wait_deadline;
  for (;;) {
    ptl_ct_event_t value{};
    unsigned which = 0;
    if (PtlCTPoll(&fence.count, &fences, 1, 20, &value, &which) == PTL_OK) {
      if (value.failure != 0)
        phase_.problems.add("a message to a portal that is always there failed");
      return;
    }
    if (phase_.shared.failed.load() != 0) throw OtherFailed{};
    if (std::chrono::steady_clock::now() > deadline)
      return phase_.problems.add("a message is not acknowledged");
  }
}

}  // namespace lintel::fuzz
