// The registration cache while the application changes its address space. Earlier registrations are
// not found afterwards, and no thread is blocked for good.
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "registration/watched_cache.h"
#include "registration_test_support.h"

namespace lintel::test {
namespace {

// Static data of this program, in a private mapping of its file.
alignas(4096) char initialized_data[4096] = {1};

class RegistrationWatchTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP()
        << "the address sanitizer maps memory of its own where a test has just unmapped some, and "
           "cannot be forked beside a thread that allocates";
#endif
    if (const std::string reason = test::why_not_watched(); !reason.empty())
      GTEST_SKIP() << "memory cannot be watched: " << reason;
  }

  // A change of [at, at + bytes) must invalidate its registration at once. It must be deregistered
  // soon.
  template <typename Change>
  void expect_invalidated(const std::byte* at, size_t bytes, const Change& change) {
    const uint32_t before = cached_.use(at, bytes);
    ASSERT_NE(before, 0u);
    ASSERT_EQ(cached_.use(at, bytes), before) << "not kept";
    change();
    int error = 0;
    const RegisteredRegion* const region = cached_.memory->acquire(at, bytes, true, error);
    if (region != nullptr) {
      EXPECT_NE(region->registration.lkey, before);
      cached_.memory->release(region);
    }
    EXPECT_TRUE(eventually([&] { return !cached_.registrar.is_live(before); }));
  }

  CachedMemory cached_;
};

TEST_F(RegistrationWatchTest, UnmappedAndMappedAgain) {
  Mapping mapping(4);
  for (int round = 0; round < 100; ++round)
    expect_invalidated(mapping.at(0), 4 * page, [&] {
      mapping.unmap(0, 4);
      mapping.map(0, 4);
    });
}

TEST_F(RegistrationWatchTest, UnmappedInPart) {
  Mapping mapping(16);
  for (const size_t first : {size_t{0}, size_t{6}, size_t{12}}) {
    expect_invalidated(mapping.at(0), 16 * page, [&] { mapping.unmap(first, 4); });
    int error = 0;
    EXPECT_EQ(cached_.memory->acquire(mapping.at(0), 16 * page, true, error), nullptr);
    EXPECT_EQ(error, EFAULT);
    mapping.map(first, 4);
  }
}

TEST_F(RegistrationWatchTest, Discarded) {
  Mapping mapping(4);
  for (const int advice : {MADV_DONTNEED, MADV_FREE})
    expect_invalidated(mapping.at(0), 4 * page,
                       [&] { ASSERT_EQ(madvise(mapping.at(2), page, advice), 0); });
}

TEST_F(RegistrationWatchTest, Moved) {
  Mapping from(4);
  Mapping to(8);
  expect_invalidated(from.at(0), 4 * page, [&] {
    ASSERT_EQ(mremap(from.at(0), 4 * page, 8 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to.at(0)),
              to.at(0));
    from.map(0, 4);
  });
  // Its new address range can be registered like any other memory.
  expect_invalidated(to.at(0), 8 * page, [&] { to.map(0, 8); });
}

TEST_F(RegistrationWatchTest, MovedAndStillMapped) {
  Mapping from(4);
  Mapping to(4);
  expect_invalidated(from.at(0), 4 * page, [&] {
    if (mremap(from.at(0), 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               to.at(0)) != to.at(0))
      from.map(0, 4);  // before Linux 5.7, without MREMAP_DONTUNMAP
  });
}

TEST_F(RegistrationWatchTest, TheEndOfTheHeap) {
  constexpr intptr_t bytes = 16 * page;
  std::byte* const before = static_cast<std::byte*>(sbrk(bytes));
  ASSERT_NE(before, reinterpret_cast<std::byte*>(-1));
  if (static_cast<std::byte*>(sbrk(0)) != before + bytes)
    GTEST_SKIP() << "another part of the process grows the heap";
  std::byte* const at = before + (page - reinterpret_cast<uintptr_t>(before) % page) % page;
  expect_invalidated(at, 8 * page, [&] {
    sbrk(-bytes);
    EXPECT_EQ(sbrk(bytes), before);
  });
  sbrk(-bytes);
}

TEST_F(RegistrationWatchTest, SharedMemory) {
  Mapping anonymous(4, MAP_SHARED | MAP_ANONYMOUS);
  expect_invalidated(anonymous.at(0), 4 * page, [&] { anonymous.map(0, 4); });

  const int file = memfd_create("registration", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 4 * page), 0);
  Mapping shared(4);
  shared.map(0, 4, MAP_SHARED, file);
  expect_invalidated(shared.at(0), 4 * page, [&] { shared.map(0, 4, MAP_SHARED, file); });
  close(file);
}

TEST_F(RegistrationWatchTest, HugePages) {
  constexpr size_t huge = 2 << 20;
  void* const memory =
      mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no huge pages are set aside (vm.nr_hugepages)";
  auto* const at = static_cast<std::byte*>(memory);
  expect_invalidated(at + 5000, 100, [&] { ASSERT_EQ(munmap(at, huge), 0); });
  ASSERT_NE(cached_.use(at + huge, page), 0u);
  EXPECT_EQ(cached_.registrar.live().back().length, huge);
  munmap(at + huge, huge);
}

// Registrations next to the change remain valid.
TEST_F(RegistrationWatchTest, OtherMemoryIsNotConcerned) {
  Mapping mapping(16);
  const uint32_t left = cached_.use(mapping.at(0), 4 * page);
  const uint32_t right = cached_.use(mapping.at(10), 4 * page);
  mapping.unmap(4, 6);
  mapping.map(14, 2);
  EXPECT_EQ(cached_.use(mapping.at(0), 4 * page), left);
  EXPECT_EQ(cached_.use(mapping.at(10), 4 * page), right);
  EXPECT_EQ(cached_.cache.counters().invalidations, 0u);
}

// A change of protection does not change the pages.
TEST_F(RegistrationWatchTest, ProtectionMayChange) {
  Mapping mapping(2);
  const uint32_t key = cached_.use(mapping.at(0), page);
  ASSERT_EQ(mprotect(mapping.at(0), page, PROT_READ), 0);
  ASSERT_EQ(mprotect(mapping.at(0), page, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(cached_.use(mapping.at(0), page), key);
}

TEST_F(RegistrationWatchTest, AnOperationUnderWayKeepsItsRegion) {
  Mapping mapping(4);
  const RegisteredRegion* const region = cached_.acquire(mapping.at(0), 4 * page);
  ASSERT_NE(region, nullptr);
  const uint32_t key = region->registration.lkey;
  mapping.map(0, 4);
  EXPECT_EQ(cached_.cache.counters().invalidations, 1u);
  EXPECT_TRUE(cached_.registrar.is_live(key));
  EXPECT_NE(cached_.use(mapping.at(0), 4 * page), key);
  EXPECT_TRUE(cached_.registrar.is_live(key));
  cached_.memory->release(region);
  EXPECT_FALSE(cached_.registrar.is_live(key));
}

// The memory changes after the device has pinned the pages, but before the region is in the index.
TEST_F(RegistrationWatchTest, ChangedWhileItIsRegistered) {
  static Mapping* changed;
  Mapping mapping(8);
  changed = &mapping;
  cached_.use(mapping.at(0), page);
  cached_.registrar.before_registering = [] { changed->map(0, 1); };
  const RegisteredRegion* const region = cached_.acquire(mapping.at(1), page);
  cached_.registrar.before_registering = nullptr;
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->length, 2 * page);
  const uint32_t key = region->registration.lkey;
  EXPECT_NE(cached_.use(mapping.at(1), page), key);
  cached_.memory->release(region);
  EXPECT_FALSE(cached_.registrar.is_live(key));
}

// The deregistering thread frees memory, which may unmap watched memory. It must not wait for
// itself.
TEST_F(RegistrationWatchTest, DeregisteringMayUnmap) {
  static Mapping* other;
  Mapping mapping(4);
  Mapping watched(4);
  other = &watched;
  const uint32_t key = cached_.use(mapping.at(0), page);
  cached_.use(watched.at(0), page);
  cached_.registrar.before_deregistering = [] { other->map(0, 1); };
  mapping.map(0, 1);
  EXPECT_TRUE(eventually([&] { return !cached_.registrar.is_live(key); }));
  EXPECT_TRUE(eventually([&] { return cached_.registrar.deregistered == 2; }));
  EXPECT_EQ(cached_.cache.counters().invalidations, 2u);
}

// Memory of files cannot be watched, and is registered for one operation.
TEST_F(RegistrationWatchTest, MappingsOfFiles) {
  const uint32_t key = cached_.use(initialized_data, sizeof initialized_data);
  EXPECT_NE(key, 0u);
  EXPECT_FALSE(cached_.registrar.is_live(key));
  EXPECT_EQ(cached_.cache.counters().single_uses, 1u);
  EXPECT_EQ(cached_.cache.counters().regions, 0u);
}

// The kernel reports no event when a segment is detached.
TEST_F(RegistrationWatchTest, SystemVSharedMemory) {
  const int segment = shmget(IPC_PRIVATE, 4 * page, IPC_CREAT | 0600);
  if (segment < 0) GTEST_SKIP() << "no shared memory of System V here: " << strerror(errno);
  void* const at = shmat(segment, nullptr, 0);
  shmctl(segment, IPC_RMID, nullptr);
  ASSERT_NE(at, reinterpret_cast<void*>(-1));
  const uint32_t key = cached_.use(at, 4 * page);
  EXPECT_NE(key, 0u);
  EXPECT_FALSE(cached_.registrar.is_live(key));
  shmdt(at);
}

// The program itself watches the memory with another descriptor.
TEST_F(RegistrationWatchTest, MemoryThatOthersWatch) {
  Mapping mapping(4);
  MemoryWatch others;
  std::string reason;
  ASSERT_TRUE(others.open(reason)) << reason;
  const auto begin = reinterpret_cast<uint64_t>(mapping.at(0));
  ASSERT_TRUE(others.add(begin, begin + 4 * page));
  const uint32_t key = cached_.use(mapping.at(0), page);
  EXPECT_NE(key, 0u);
  EXPECT_FALSE(cached_.registrar.is_live(key));
  others.close();
  EXPECT_EQ(cached_.use(mapping.at(0), page), cached_.use(mapping.at(0), page));
}

// When the cache has given up a range, threads can unmap it without being blocked. No thread reads
// the events of this watch, so a blocked thread would never return.
TEST_F(RegistrationWatchTest, GivenUpMemoryIsNotWatched) {
  Mapping mapping(16);
  const auto is_watched = [&](size_t number) {
    // The kernel refuses to watch a range twice.
    MemoryWatch probe;
    std::string reason;
    const auto begin = reinterpret_cast<uint64_t>(mapping.at(number));
    return probe.open(reason) && !probe.add(begin, begin + page);
  };
  const RegisteredRegion* const leased = cached_.acquire(mapping.at(2), 2 * page);
  cached_.use(mapping.at(1), 8 * page);
  EXPECT_FALSE(is_watched(0));
  for (size_t i = 1; i < 9; ++i) EXPECT_TRUE(is_watched(i)) << i;
  EXPECT_FALSE(is_watched(9));
  cached_.memory->release(leased);
  for (size_t i = 1; i < 9; ++i) EXPECT_TRUE(is_watched(i)) << i;
  mapping.unmap(4, 2);
  EXPECT_TRUE(eventually([&] { return cached_.registrar.live().empty(); }));
  mapping.map(4, 2);
  for (size_t i = 0; i < 16; ++i) EXPECT_FALSE(is_watched(i)) << i;
  // A range whose registration fails is not watched either.
  cached_.registrar.fail_next(EIO);
  EXPECT_EQ(cached_.acquire(mapping.at(0), page), nullptr);
  EXPECT_FALSE(is_watched(0));
}

// A thread can map the addresses again while the thread that unmapped them is still in the kernel.
// Its event has not been read, but changing() already returns true.
TEST_F(RegistrationWatchTest, TheKernelTellsOfChangesBeforeTheirEvents) {
  Mapping mapping(4);
  MemoryWatch watch;
  std::string reason;
  ASSERT_TRUE(watch.open(reason)) << reason;
  const auto begin = reinterpret_cast<uint64_t>(mapping.at(0));
  ASSERT_TRUE(watch.add(begin, begin + 4 * page));
  EXPECT_FALSE(watch.changing());
  std::thread unmapping([&] { mapping.unmap(0, 4); });
  EXPECT_TRUE(eventually([&] { return watch.changing(); }));
  // The old mapping is gone, so the addresses can be mapped again.
  EXPECT_TRUE(eventually([&] {
    return mmap(mapping.at(0), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                -1, 0) == mapping.at(0);
  }));
  EXPECT_TRUE(watch.changing());
  MemoryEvent event{};
  EXPECT_TRUE(eventually([&] { return watch.read({&event, 1}) == 1; }));
  EXPECT_EQ(event.kind, MemoryEvent::Kind::unmapped);
  EXPECT_EQ(event.begin, begin);
  EXPECT_EQ(event.end, begin + 4 * page);
  unmapping.join();
  EXPECT_FALSE(watch.changing());
}

// A forked child has no thread that reads events, and must leave the registrations to its parent.
TEST_F(RegistrationWatchTest, AForkedChild) {
  test::FakeRegistrar registrar;
  auto memory = process_registration_cache().attach(registrar);
  Mapping mapping(4);
  int error = 0;
  const RegisteredRegion* const leased = memory->acquire(mapping.at(2), page, true, error);
  const RegisteredRegion* const idle = memory->acquire(mapping.at(0), page, true, error);
  ASSERT_NE(leased, nullptr);
  ASSERT_NE(idle, nullptr);
  const uint32_t key = idle->registration.lkey;
  memory->release(idle);

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    mapping.map(0, 4);  // no thread of the child would read the event
    int child_error = 0;
    bool good = memory->acquire(mapping.at(0), page, true, child_error) == nullptr;
    good = good && child_error == ENODEV;
    memory->release(leased);
    memory.reset();
    good = good && registrar.deregistered == 0 && registrar.live().size() == 2;
#ifndef __SANITIZE_THREAD__  // which ends a forked child that starts threads
    // The child can attach a registrar of its own.
    test::FakeRegistrar own;
    auto anew = process_registration_cache().attach(own);
    for (int round = 0; round < 2 && good; ++round) {
      const RegisteredRegion* const region = anew->acquire(mapping.at(0), page, true, child_error);
      good = region != nullptr && own.attempts == 1u;
      if (good) anew->release(region);
    }
    mapping.map(0, 1);
    good = good && eventually([&] { return own.live().empty(); });
    anew.reset();
#endif
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // Nothing has changed for the parent.
  const RegisteredRegion* const again = memory->acquire(mapping.at(0), page, true, error);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->registration.lkey, key);
  memory->release(again);
  memory->release(leased);
  mapping.map(0, 1);
  EXPECT_TRUE(eventually([&] { return !registrar.is_live(key); }));
}

}  // namespace
}  // namespace lintel::test
