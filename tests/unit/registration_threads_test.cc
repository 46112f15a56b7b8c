// The registration cache with threads that map, fill, send from, discard, move and unmap memory, so
// that addresses are reused by later mappings. The device reads pages, as real devices do. If its
// pages differ from those of the application, the bytes differ.
#include <fcntl.h>
#include <sys/uio.h>

#include "registration_test_support.h"

namespace lintel::test {
namespace {

// Pins pages in a pipe (vmsplice). Data read from the pipe later come from these pages, even if
// other pages are mapped at the address by then.
class PinningRegistrar final : public Registrar {
 public:
  static constexpr uint64_t most_pages = 64;

  int register_memory(void* address, uint64_t length, bool writable,
                      Registration& registration) noexcept override {
    if (length > most_pages * page) return EINVAL;
    if (madvise(address, length, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0)
      return EFAULT;
    auto pinned = std::make_unique<Pinned>();
    if (pipe2(pinned->ends, O_CLOEXEC | O_NONBLOCK) != 0) return errno;
    iovec piece{address, length};
    if (fcntl(pinned->ends[1], F_SETPIPE_SZ, most_pages * page) < 0 ||
        vmsplice(pinned->ends[1], &piece, 1, SPLICE_F_NONBLOCK) != static_cast<ssize_t>(length))
      return EFAULT;
    registration.handle = pinned.release();
    ++live;
    return 0;
  }
  void deregister_memory(Registration& registration) noexcept override {
    delete static_cast<Pinned*>(registration.handle);
    --live;
  }

  std::atomic<int> live{0};

 private:
  friend class Reader;
  struct Pinned {
    ~Pinned() {
      for (const int end : ends)
        if (end >= 0) close(end);
    }
    int ends[2] = {-1, -1};
  };
};

// Reads memory as the device does.
class Reader {
 public:
  Reader() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_GE(fcntl(ends_[1], F_SETPIPE_SZ, PinningRegistrar::most_pages * page), 0);
  }
  ~Reader() {
    for (const int end : ends_) close(end);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The bytes of [at, at + length) of the region.
  [[nodiscard]] const std::byte* read(const RegisteredRegion& region, const void* at) {
    const auto* const pinned =
        static_cast<const PinningRegistrar::Pinned*>(region.registration.handle);
    bytes_.resize(region.length);
    if (tee(pinned->ends[0], ends_[1], region.length, SPLICE_F_NONBLOCK) !=
            static_cast<ssize_t>(region.length) ||
        ::read(ends_[0], bytes_.data(), region.length) != static_cast<ssize_t>(region.length))
      return nullptr;
    return bytes_.data() + (reinterpret_cast<uint64_t>(at) - region.address);
  }

 private:
  int ends_[2];
  std::vector<std::byte> bytes_;
};

void fill(std::byte* at, size_t pages, uint64_t stamp) {
  for (size_t i = 0; i < pages; ++i) {
    const uint64_t value = stamp + i;
    std::memcpy(at + i * page, &value, sizeof value);
    std::memcpy(at + (i + 1) * page - sizeof value, &value, sizeof value);
  }
}

bool holds(const std::byte* at, size_t pages, uint64_t stamp) {
  for (size_t i = 0; i < pages; ++i) {
    uint64_t first, last;
    std::memcpy(&first, at + i * page, sizeof first);
    std::memcpy(&last, at + (i + 1) * page - sizeof last, sizeof last);
    if (first != stamp + i || last != stamp + i) return false;
  }
  return true;
}

class Churn {
 public:
  Churn(RegisteredMemory& memory, uint64_t number) : memory_(memory), number_(number) {}

  void run(unsigned rounds, std::chrono::steady_clock::time_point end) {
    for (unsigned round = 0; round < rounds; ++round) {
      if (round % 16 == 0 && std::chrono::steady_clock::now() > end) break;
      const size_t pages = 1 + round % 4;
      void* const mapped =
          mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(mapped, MAP_FAILED);
      auto* at = static_cast<std::byte*>(mapped);
      send(at, pages);
      if (round % 3 == 0) send(at, pages);
      if (round % 5 == 0) {
        ASSERT_EQ(madvise(at, pages * page, MADV_DONTNEED), 0);
        send(at, pages);
      }
      if (round % 7 == 0) {
        void* const moved = mremap(at, pages * page, (pages + 4) * page, MREMAP_MAYMOVE);
        if (moved != MAP_FAILED) {
          ASSERT_EQ(munmap(static_cast<std::byte*>(moved) + pages * page, 4 * page), 0);
          at = static_cast<std::byte*>(moved);
          send(at, pages);
        }
      }
      ASSERT_EQ(munmap(at, pages * page), 0);
    }
  }

  void send_and_discard(std::byte* at) {
    send(at, 1);
    ASSERT_EQ(madvise(at, page, MADV_DONTNEED), 0);
  }

  unsigned sent = 0;
  unsigned stale = 0;
  unsigned unread = 0;
  unsigned failed = 0;

 private:
  void send(std::byte* at, size_t pages) {
    const uint64_t stamp = number_ << 56 | uint64_t{++sent} << 8;
    fill(at, pages, stamp);
    int error = 0;
    const RegisteredRegion* const region = memory_.acquire(at, pages * page, true, error);
    if (region == nullptr) {
      ++failed;
      return;
    }
    const std::byte* const seen = reader_.read(*region, at);
    if (seen == nullptr) {
      ++unread;
    } else if (!holds(seen, pages, stamp)) {
      ++stale;
    }
    memory_.release(region);
  }

  RegisteredMemory& memory_;
  const uint64_t number_;
  Reader reader_;
};

void churn(const WatchedCache::Settings& settings) {
  PinningRegistrar registrar;
  WatchedCache cache(settings);
  auto memory = cache.attach(registrar);
  ASSERT_NE(memory, nullptr);
  constexpr unsigned count = 4;
  std::vector<std::unique_ptr<Churn>> churns;
  std::vector<std::thread> threads;
  const auto end = std::chrono::steady_clock::now() + test::stress_time;
  for (unsigned i = 0; i < count; ++i) churns.push_back(std::make_unique<Churn>(*memory, i + 1));
  for (const auto& one : churns) threads.emplace_back([&one, end] { one->run(3000, end); });
  for (std::thread& thread : threads) thread.join();
  unsigned sent = 0;
  for (const auto& one : churns) {
    EXPECT_EQ(one->stale, 0u);
    EXPECT_EQ(one->unread, 0u);
    EXPECT_EQ(one->failed, 0u);
    sent += one->sent;
  }
  const RegistrationCounters counters = cache.counters();
  EXPECT_EQ(counters.hits + counters.misses + counters.single_uses, sent);
  EXPECT_LE(counters.regions, settings.most_regions);
  EXPECT_LE(counters.bytes, settings.most_bytes);
  memory.reset();
  EXPECT_EQ(registrar.live, 0);
}

class RegistrationThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::why_not_watched(); !reason.empty())
      GTEST_SKIP() << "memory cannot be watched: " << reason;
  }
};

TEST_F(RegistrationThreadsTest, NobodySendsPagesOfThePast) { churn({}); }

TEST_F(RegistrationThreadsTest, NorWithLittleRoom) {
  churn({.most_regions = 3, .most_bytes = 10 * page});
}

// One thread discards its page while another thread registers that page together with the adjacent
// one. The event of the discarding thread is read before the page is removed. That thread sends
// again only afterwards.
TEST_F(RegistrationThreadsTest, NeighboursDoNotKeepPagesThatAreBeingDiscarded) {
  PinningRegistrar registrar;
  WatchedCache cache({});
  auto memory = cache.attach(registrar);
  ASSERT_NE(memory, nullptr);
  test::Mapping both(2);
  const auto end = std::chrono::steady_clock::now() + test::stress_time / 2;
  std::vector<std::unique_ptr<Churn>> churns;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i) churns.push_back(std::make_unique<Churn>(*memory, i + 1));
  for (unsigned i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      while (std::chrono::steady_clock::now() < end) churns[i]->send_and_discard(both.at(i));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : churns) {
    EXPECT_GT(one->sent, 0u);
    EXPECT_EQ(one->stale, 0u) << "of " << one->sent;
    EXPECT_EQ(one->unread, 0u);
    EXPECT_EQ(one->failed, 0u);
  }
}

}  // namespace
}  // namespace lintel::test
