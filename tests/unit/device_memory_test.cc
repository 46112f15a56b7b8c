// Messages from and to memory that the processor cannot access, of a process to itself.
#include <portals4.h>
#include <portals4_lintel.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/staging_buffers.h"
#include "support/memory.h"
#include "test_memory_kind.h"
#include "util/log.h"

namespace lintel {
namespace {

using test::expect_pattern;
using test::must;
using test::TestMemoryKind;

// Lines of the log.
std::string said;
bool take_line(LogLevel, const char* text) noexcept {
  said += text;
  return false;
}
void take_lines() {
  said.clear();
  set_log_listener(take_line);
}
void expect_said(const char* text) {
  set_log_listener(nullptr);
  EXPECT_NE(said.find(text), std::string::npos) << said;
}

// The parameter: the device copies between the two sides; otherwise through buffers of the host.
class DeviceMemoryTest : public test::BareTargetTest, public testing::WithParamInterface<bool> {
 protected:
  static void TearDownTestSuite() { TestMemoryKind::leave(); }
  static constexpr size_t bytes = 3 << 20;

  void SetUp() override {
    BareTargetTest::SetUp();
    kind_.reset();
    kind_.exports = GetParam();
    must(PtlGetPhysId(ni_, &self_));
    must(PtlEQAlloc(ni_, 64, &arrived_));
    must(PtlEQAlloc(ni_, 64, &started_));
    must(PtlPTAlloc(ni_, 0, arrived_, PTL_PT_ANY, &index_));
    source_ = kind_.allocate(bytes);
    destination_ = kind_.allocate(bytes);
    test::fill({kind_.inside(source_), bytes}, 1);
    md_ = bind(source_, bytes);
  }
  void TearDown() override {
    BareTargetTest::TearDown();
    kind_.free(source_);
    kind_.free(destination_);
  }
  ptl_handle_md_t bind(void* start, size_t length) {
    const ptl_md_t description{start, length, 0, started_, PTL_CT_NONE};
    ptl_handle_md_t md;
    must(PtlMDBind(ni_, &description, &md));
    return md;
  }
  void append(void* start, size_t length, unsigned options = 0,
              ptl_list_t list = PTL_PRIORITY_LIST) {
    ptl_me_t entry{};
    entry.start = start;
    entry.length = length;
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.match_id = self_;
    entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options;
    must(PtlMEAppend(ni_, index_, &entry, list, nullptr, &entry_));
  }
  // A free address, another one for each parameter: a fault at an address is said once in ten
  // seconds.
  [[nodiscard]] static std::byte* at_hundred_tebibytes() {
    return reinterpret_cast<std::byte*>((uintptr_t{100} << 40) + (uintptr_t{GetParam()} << 30));
  }
  ptl_event_t expect(ptl_handle_eq_t queue, ptl_event_kind_t kind, ptl_ni_fail_t fail = PTL_NI_OK) {
    return test::expect_event(queue, kind, fail);
  }
  void put(ptl_handle_md_t md, size_t length, ptl_size_t offset = 0) {
    must(PtlPut(md, 0, length, PTL_ACK_REQ, self_, index_, 0, offset, nullptr, 0));
  }
  void expect_put(size_t length) {
    EXPECT_EQ(expect(arrived_, PTL_EVENT_PUT).mlength, length);
    // In either order: a long put is sent when the target has it.
    ptl_event_t send = expect(started_, PTL_EVENT_SEND);
    EXPECT_EQ(send.mlength, length);
    EXPECT_EQ(expect(started_, PTL_EVENT_ACK).mlength, length);
  }

  TestMemoryKind& kind_ = TestMemoryKind::in_use();
  ptl_process_t self_{};
  ptl_handle_eq_t arrived_{};
  ptl_handle_eq_t started_{};
  ptl_pt_index_t index_ = 0;
  ptl_handle_md_t md_{};
  ptl_handle_me_t entry_{};
  std::byte* source_ = nullptr;
  std::byte* destination_ = nullptr;
};

constexpr size_t lengths[] = {1, 8, 64, 65, 1000, 8192, 8193, 100'000, 262'144, 3 << 20};

TEST_P(DeviceMemoryTest, PutsOfAllLengthsBetweenDevices) {
  append(destination_, bytes);
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    std::memset(kind_.inside(destination_), 0, bytes);
    put(md_, length);
    expect_put(length);
    expect_pattern({kind_.inside(destination_), length}, 1);
    if (length < bytes) {
      EXPECT_EQ(kind_.inside(destination_)[length], std::byte{0});
    }
  }
}

TEST_P(DeviceMemoryTest, PutsBetweenHostAndDevice) {
  std::vector<std::byte> host(bytes);
  test::fill(host, 2);
  const ptl_handle_md_t from_host = bind(host.data(), bytes);
  append(destination_, bytes, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    put(from_host, length);
    expect_put(length);
    expect_pattern({kind_.inside(destination_), length}, 2);
    append(host.data(), bytes, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
    put(md_, length);
    expect_put(length);
    expect_pattern({host.data(), length}, 1);
    test::fill(host, 2);
    append(destination_, bytes, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  }
}

TEST_P(DeviceMemoryTest, GetsOfAllLengths) {
  std::vector<std::byte> host(bytes);
  const ptl_handle_md_t to_host = bind(host.data(), bytes);
  const ptl_handle_md_t to_device = bind(destination_, bytes);
  append(source_, bytes);
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    std::fill(host.begin(), host.end(), std::byte{0});
    std::memset(kind_.inside(destination_), 0, bytes);
    for (const ptl_handle_md_t md : {to_host, to_device}) {
      must(PtlGet(md, 0, length, self_, index_, 0, 0, nullptr));
      EXPECT_EQ(expect(started_, PTL_EVENT_REPLY).mlength, length);
      EXPECT_EQ(expect(arrived_, PTL_EVENT_GET).mlength, length);
    }
    expect_pattern({host.data(), length}, 1);
    expect_pattern({kind_.inside(destination_), length}, 1);
  }
}

TEST_P(DeviceMemoryTest, AGetFromTheHostIntoTheDevice) {
  std::vector<std::byte> host(bytes);
  test::fill({host.data(), host.size()}, 3);
  const ptl_handle_md_t to_device = bind(destination_, bytes);
  append(host.data(), bytes);
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    must(PtlGet(to_device, 0, length, self_, index_, 0, 0, nullptr));
    EXPECT_EQ(expect(started_, PTL_EVENT_REPLY).mlength, length);
    expect(arrived_, PTL_EVENT_GET);
    expect_pattern({kind_.inside(destination_), length}, 3);
  }
}

TEST_P(DeviceMemoryTest, LongMessagesAreTruncated) {
  append(destination_, 1'000'000);
  put(md_, bytes);
  EXPECT_EQ(expect(arrived_, PTL_EVENT_PUT).mlength, 1'000'000u);
  expect(started_, PTL_EVENT_SEND);
  EXPECT_EQ(expect(started_, PTL_EVENT_ACK).mlength, 1'000'000u);
  expect_pattern({kind_.inside(destination_), 1'000'000}, 1);
  EXPECT_EQ(kind_.inside(destination_)[1'000'000], std::byte{0});

  const ptl_handle_md_t other = bind(source_, bytes);
  must(PtlGet(other, 0, bytes, self_, index_, 0, 0, nullptr));
  EXPECT_EQ(expect(started_, PTL_EVENT_REPLY).mlength, 1'000'000u);
}

TEST_P(DeviceMemoryTest, AnEntryOverAllMemoryAsksForEachMessage) {
  append(nullptr, PTL_SIZE_MAX);
  std::vector<std::byte> host(bytes);
  for (const size_t length : {size_t{8}, size_t{100'000}}) {
    put(md_, length, reinterpret_cast<ptl_size_t>(destination_));
    expect_put(length);
    expect_pattern({kind_.inside(destination_), length}, 1);
    put(md_, length, reinterpret_cast<ptl_size_t>(host.data()));
    expect_put(length);
    expect_pattern({host.data(), length}, 1);
  }
}

TEST_P(DeviceMemoryTest, ElementsOfAnIovecMayBeOfSeveralKinds) {
  std::vector<std::byte> host(bytes);
  const ptl_iovec_t parts[] = {
      {destination_, 1000}, {host.data(), 200'000}, {destination_ + 5000, 500'000}};
  append(const_cast<ptl_iovec_t*>(parts), 3, PTL_IOVEC);
  for (const size_t length : {size_t{1500}, size_t{700'000}}) {
    put(md_, length);
    expect_put(length);
    expect_pattern({kind_.inside(destination_), 1000}, 1);
    expect_pattern({host.data(), std::min<size_t>(length - 1000, 200'000)}, 1, 1000);
  }
  expect_pattern({kind_.inside(destination_) + 5000, 499'000}, 1, 201'000);
}

TEST_P(DeviceMemoryTest, AtomicsWorkOnCopies) {
  auto* const target = reinterpret_cast<uint64_t*>(kind_.inside(destination_));
  auto* const operands = reinterpret_cast<uint64_t*>(kind_.inside(source_));
  append(destination_, bytes);
  constexpr unsigned items = 200;
  for (unsigned i = 0; i < items; ++i) {
    target[i] = 10 * i;
    operands[i] = i;
  }
  must(PtlAtomic(md_, 0, items * 8, PTL_ACK_REQ, self_, index_, 0, 0, nullptr, 0, PTL_SUM,
                 PTL_UINT64_T));
  expect(arrived_, PTL_EVENT_ATOMIC);
  expect(started_, PTL_EVENT_SEND);
  expect(started_, PTL_EVENT_ACK);
  for (unsigned i = 0; i < items; ++i) ASSERT_EQ(target[i], 11 * i);

  must(PtlFetchAtomic(md_, 4096, md_, 0, 80, self_, index_, 0, 0, nullptr, 0, PTL_SUM,
                      PTL_UINT64_T));
  expect(arrived_, PTL_EVENT_FETCH_ATOMIC);
  expect(started_, PTL_EVENT_SEND);
  expect(started_, PTL_EVENT_REPLY);
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(target[i], 12 * i);
    EXPECT_EQ(operands[512 + i], 11 * i);
  }

  // The operand of a swap is in memory of the device, too.
  target[0] = 5;
  operands[0] = 77;
  operands[1] = 5;
  must(PtlSwap(md_, 4096, md_, 0, 8, self_, index_, 0, 0, nullptr, 0, source_ + 8, PTL_CSWAP,
               PTL_UINT64_T));
  expect(arrived_, PTL_EVENT_FETCH_ATOMIC);
  expect(started_, PTL_EVENT_SEND);
  expect(started_, PTL_EVENT_REPLY);
  EXPECT_EQ(target[0], 77u);
  EXPECT_EQ(operands[512], 5u);
}

TEST_P(DeviceMemoryTest, AFailedCopyEndsItsMessageOnly) {
  append(destination_, bytes);
  for (const size_t length : {size_t{100'000}, bytes}) {
    SCOPED_TRACE(length);
    kind_.fails = true;
    put(md_, length);
    expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
    if (GetParam()) {
      expect(started_, PTL_EVENT_SEND);
      expect(started_, PTL_EVENT_ACK, PTL_NI_SEGV);
    } else {
      expect(started_, PTL_EVENT_SEND, PTL_NI_SEGV);
    }
    kind_.fails = false;
    put(md_, length);
    expect_put(length);
  }
  // Copies to the device fail, from a source that is memory of the host.
  std::vector<std::byte> host(bytes);
  const ptl_handle_md_t from_host = bind(host.data(), bytes);
  kind_.fails = true;
  put(from_host, bytes);
  expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
  expect(started_, PTL_EVENT_SEND);
  expect(started_, PTL_EVENT_ACK, PTL_NI_SEGV);
  kind_.fails = false;
}

TEST_P(DeviceMemoryTest, AReplyThatCannotBeCopiedFails) {
  std::vector<std::byte> host(bytes);
  append(host.data(), bytes);
  const ptl_handle_md_t to_device = bind(destination_, bytes);
  kind_.fails = true;
  must(PtlGet(to_device, 0, bytes, self_, index_, 0, 0, nullptr));
  expect(started_, PTL_EVENT_REPLY, PTL_NI_SEGV);
  expect(arrived_, PTL_EVENT_GET, GetParam() ? PTL_NI_SEGV : PTL_NI_OK);
  kind_.fails = false;
  must(PtlGet(to_device, 0, bytes, self_, index_, 0, 0, nullptr));
  expect(started_, PTL_EVENT_REPLY);
  expect(arrived_, PTL_EVENT_GET);
}

// The device copies all of it at once, and the processor nothing. A short message costs two waits
// for the driver.
TEST_P(DeviceMemoryTest, CopiesBetweenDevicesAreFew) {
  append(destination_, bytes);
  put(md_, bytes);
  expect_put(bytes);
  EXPECT_EQ(kind_.started, GetParam() ? 1 : 2 * bytes / StagingBuffers::buffer_bytes);
  EXPECT_EQ(kind_.synchronous, 0u);
  put(md_, 8);
  expect_put(8);
  EXPECT_EQ(kind_.synchronous, 2u);
}

TEST_P(DeviceMemoryTest, FreedMemoryIsAFault) {
  std::byte* const freed = kind_.allocate(bytes, at_hundred_tebibytes());
  const ptl_handle_md_t md = bind(freed, bytes);
  append(destination_, bytes);
  kind_.free(freed);
  take_lines();
  for (const size_t length : {size_t{8}, bytes}) {
    put(md, length);
    if (length > 8) expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
    expect(started_, PTL_EVENT_SEND, PTL_NI_SEGV);
  }
  expect_said("are no memory of a device, or no more");
}

// Each fault says in one line which memory it was.
TEST_P(DeviceMemoryTest, MemoryThatIsNotThereIsNamed) {
  const ptl_handle_md_t beyond = bind(source_ + 4096 * (1 + GetParam()), bytes);
  const ptl_handle_md_t unmapped = bind(at_hundred_tebibytes() + 10 * bytes, bytes);
  append(destination_, bytes);
  std::vector<std::byte> host(bytes);
  for (const size_t length : {size_t{1000}, bytes}) {
    take_lines();
    put(unmapped, length);
    if (length > 1000) expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
    expect(started_, PTL_EVENT_SEND, PTL_NI_SEGV);
    if (length == 1000) expect_said("are not mapped, or belong to a device whose driver is not");
  }
  take_lines();
  put(beyond, bytes);
  expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
  expect(started_, PTL_EVENT_SEND, PTL_NI_SEGV);
  expect_said("reach beyond their allocation of a device");
  // Memory of an entry.
  must(PtlMEUnlink(entry_));
  append(destination_ + 4096 * (1 + GetParam()), bytes);
  take_lines();
  const ptl_handle_md_t from_host = bind(host.data(), bytes);
  put(from_host, bytes);
  expect(arrived_, PTL_EVENT_PUT, PTL_NI_SEGV);
  expect(started_, PTL_EVENT_SEND);
  expect(started_, PTL_EVENT_ACK, PTL_NI_SEGV);
  expect_said("reach beyond their allocation of a device");
}

// What refers to the memory is in use as long as a copy is under way.
TEST_P(DeviceMemoryTest, EntriesAndDescriptorsStayUntilCopiesHaveEnded) {
  std::vector<std::byte> host(100'000);
  append(destination_, bytes);
  const ptl_handle_md_t from_host = bind(host.data(), host.size());
  kind_.holds = true;
  put(from_host, host.size());
  EXPECT_TRUE(test::wait_until([&] {
    ptl_event_t event;
    EXPECT_EQ(PtlEQGet(arrived_, &event), PTL_EQ_EMPTY);
    return kind_.under_way() != 0;
  }));
  EXPECT_EQ(PtlMEUnlink(entry_), PTL_IN_USE);
  kind_.end_all();
  expect_put(host.size());
  EXPECT_EQ(PtlMEUnlink(entry_), PTL_OK);

  append(host.data(), host.size());
  const ptl_handle_md_t to_device = bind(destination_, host.size());
  must(PtlGet(to_device, 0, host.size(), self_, index_, 0, 0, nullptr));
  EXPECT_TRUE(test::wait_until([&] {
    ptl_event_t event;
    static_cast<void>(PtlEQGet(started_, &event));
    return kind_.under_way() != 0;
  }));
  EXPECT_EQ(PtlMDRelease(to_device), PTL_IN_USE);
  kind_.end_all();
  expect(started_, PTL_EVENT_REPLY);
  EXPECT_EQ(PtlMDRelease(to_device), PTL_OK);
}

TEST_P(DeviceMemoryTest, CopiesOutsideOfMessages) {
  std::vector<std::byte> host(1000);
  std::vector<std::byte> back(1000);
  test::fill({host.data(), host.size()}, 3);
  must(PtlLintelDeviceCopy(back.data(), host.data(), 1000));
  EXPECT_EQ(back, host);
  std::fill(back.begin(), back.end(), std::byte{});
  must(PtlLintelDeviceCopy(destination_, host.data(), 1000));
  must(PtlLintelDeviceCopy(source_, destination_, 1000));
  must(PtlLintelDeviceCopy(back.data(), source_, 1000));
  EXPECT_EQ(back, host);
  must(PtlLintelDeviceCopy(nullptr, nullptr, 0));
  // Beyond the end.
  EXPECT_EQ(PtlLintelDeviceCopy(back.data(), source_ + bytes - 10, 1000), PTL_FAIL);
}

// Nothing else tells that memory was freed, so the driver is asked for each message: once per side,
// and once more where a descriptor over all of memory names that of a device.
TEST_P(DeviceMemoryTest, AsksTheDriverOncePerSideOfAMessage) {
  const auto everything = reinterpret_cast<void*>(uintptr_t{0});
  append(everything, PTL_SIZE_MAX);
  alignas(8) std::byte host[2][8] = {};
  const ptl_handle_md_t of_host = bind(host[0], 8);
  const ptl_handle_md_t of_all = bind(everything, PTL_SIZE_MAX);
  const auto questions = [&](ptl_handle_md_t md, void* from, void* to) {
    kind_.asked = 0;
    must(PtlPut(md, reinterpret_cast<uintptr_t>(from), 8, PTL_ACK_REQ, self_, index_, 0,
                reinterpret_cast<uintptr_t>(to), nullptr, 0));
    expect_put(8);
    return kind_.asked;
  };
  EXPECT_EQ(questions(of_host, nullptr, host[1]), 1u);
  EXPECT_EQ(questions(of_host, nullptr, destination_), 1u);
  EXPECT_EQ(questions(md_, nullptr, host[1]), 2u);
  EXPECT_EQ(questions(md_, nullptr, destination_), 2u);
  EXPECT_EQ(questions(of_all, source_, destination_), 3u);
  EXPECT_EQ(questions(of_all, host[0], host[1]), 2u);
}

TEST_P(DeviceMemoryTest, TellsWhichDeviceHasMemory) {
  const char* driver = nullptr;
  unsigned device = 7;
  must(PtlLintelDeviceOf(source_ + 10, bytes - 10, &driver, &device));
  EXPECT_STREQ(driver, kind_.name());
  EXPECT_EQ(device, 0u);
  EXPECT_EQ(PtlLintelDeviceOf(source_ + 10, bytes, &driver, &device), PTL_FAIL);
  must(PtlLintelDeviceOf(&device, sizeof device, &driver, &device));
  EXPECT_EQ(driver, nullptr);
  EXPECT_EQ(PtlLintelDeviceOf(source_, 0, &driver, &device), PTL_ARG_INVALID);
  EXPECT_EQ(PtlLintelDeviceOf(source_, 1, nullptr, &device), PTL_ARG_INVALID);
  EXPECT_EQ(PtlLintelDeviceOf(source_, 1, &driver, nullptr), PTL_ARG_INVALID);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceMemoryTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "by_the_device" : "through_the_host";
                         });

}  // namespace
}  // namespace lintel
