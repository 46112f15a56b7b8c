// How much of the caller's stack the message path takes: threads of run-time systems have 16 KiB.
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr std::size_t longest = 300'000;
constexpr std::size_t short_parts = 2000;  // of an iovec, too many for one message
constexpr std::size_t most_stack_bytes = 8192;

// Runs calls on a stack of its own, and finds out how much of it they took.
class MeasuredStack {
 public:
  std::size_t bytes_of(const std::function<void()>& call) {
    std::fill(memory_.begin(), memory_.end(), paint);
    current = this;
    call_ = &call;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = memory_.data();
    context.uc_stack.ss_size = memory_.size();
    context.uc_link = &caller_;
    makecontext(&context, &MeasuredStack::run, 0);
    swapcontext(&caller_, &context);
    const auto touched = std::find_if(memory_.begin(), memory_.end(),
                                      [](std::byte value) { return value != paint; });
    return static_cast<std::size_t>(memory_.end() - touched);
  }

 private:
  static void run() { (*current->call_)(); }

  static constexpr std::byte paint{0xa5};
  static inline MeasuredStack* current = nullptr;
  std::vector<std::byte> memory_ = std::vector<std::byte>(256 << 10);
  ucontext_t caller_{};
  const std::function<void()>* call_ = nullptr;
};

// Everything that a rank does with its peer. Each call is measured after some rounds, when
// connections exist.
class Traffic {
 public:
  explicit Traffic(Rank& rank)
      : rank_(rank), interface_(rank, matching_physical), events_(interface_.handle(), 4096) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface_.handle(), 0, PTL_EQ_NONE, pt_index, &index));
    interface_.append(pt_index, {.start = target_.data(),
                                 .length = target_.size(),
                                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET});
    for (std::size_t i = 0; i < short_parts; ++i) parts_.push_back({source_.data() + 2 * i, 1});
    whole_ = Descriptor(interface_.handle(), source_, 0, events_.handle());
    scattered_ = Descriptor(interface_.handle(), ptl_md_t{.start = parts_.data(),
                                                          .length = parts_.size(),
                                                          .options = PTL_IOVEC,
                                                          .eq_handle = events_.handle(),
                                                          .ct_handle = PTL_CT_NONE});
    rank_.barrier();
  }

  // Returns what the call that takes most took.
  std::size_t round() {
    const ptl_process_t peer = interface_.address(1 - rank_.index());
    std::size_t most = 0;
    const auto measure = [&](const std::function<void()>& call) {
      most = std::max(most, stack_.bytes_of(call));
    };
    for (const std::size_t length :
         {std::size_t{8}, std::size_t{4000}, std::size_t{8192}, longest}) {
      measure([&] {
        must(PtlPut(whole_.handle(), 0, length, PTL_ACK_REQ, peer, pt_index, 0, 0, nullptr, 0));
      });
      wait_for(2, measure);
      measure([&] { must(PtlGet(whole_.handle(), 0, length, peer, pt_index, 0, 0, nullptr)); });
      wait_for(1, measure);
    }
    measure([&] {
      must(PtlPut(scattered_.handle(), 0, short_parts, PTL_ACK_REQ, peer, pt_index, 0, 0, nullptr,
                  0));
    });
    wait_for(2, measure);
    measure([&] {
      must(PtlFetchAtomic(whole_.handle(), 0, whole_.handle(), 4096, 2048, peer, pt_index, 0, 0,
                          nullptr, 0, PTL_SUM, PTL_INT32_T));
    });
    wait_for(2, measure);
    rank_.barrier();
    return most;
  }

 private:
  template <typename Measure>
  void wait_for(unsigned count, const Measure& measure) {
    while (count != 0) {
      int code = PTL_EQ_EMPTY;
      ptl_event_t event;
      measure([&] { code = PtlEQGet(events_.handle(), &event); });
      if (code == PTL_EQ_EMPTY) continue;
      must(code);
      EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
      --count;
    }
  }

  Rank& rank_;
  std::vector<std::byte> source_ = std::vector<std::byte>(longest);
  std::vector<std::byte> target_ = std::vector<std::byte>(longest);
  std::vector<ptl_iovec_t> parts_;
  Interface interface_;
  EventQueue events_;
  Descriptor whole_;
  Descriptor scattered_;
  MeasuredStack stack_;
};

// spec 2.9
TEST(StackTest, MessagesTakeEightKibibytesOfIt) {
  run_ranks(2, [](Rank& rank) {
    rank.initialise();
    Traffic traffic(rank);
    static_cast<void>(traffic.round());
    for (unsigned i = 0; i < 20; ++i) EXPECT_LE(traffic.round(), most_stack_bytes);
  });
}

}  // namespace
}  // namespace lintel::test
#endif
