// Support for the tests of the registration cache: separate memory, and a device that pins pages
// like a real one.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "registration/memory_watch.h"
#include "registration/watched_cache.h"
#include "support/deadlines.h"

namespace lintel::test {

inline constexpr size_t page = 4096;

// Anonymous memory in its own address range, so that nothing else is adjacent to it.
class Mapping {
 public:
  explicit Mapping(size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS) : own_(pages + 2, true) {
    void* const space = mmap(nullptr, (pages + 2) * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(space, MAP_FAILED);
    base_ = static_cast<std::byte*>(space) + page;
    map(0, pages, flags);
  }
  // Pages that were unmapped may by now belong to other mappings, so they are left alone.
  ~Mapping() {
    for (size_t i = 0; i < own_.size(); ++i)
      if (own_[i]) munmap(base_ - page + i * page, page);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* at(size_t number) const { return base_ + number * page; }
  void map(size_t first, size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1) {
    EXPECT_NE(mmap(at(first), count * page, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0),
              MAP_FAILED);
    note(first, count, true);
  }
  void unmap(size_t first, size_t count) {
    EXPECT_EQ(munmap(at(first), count * page), 0);
    note(first, count, false);
  }
  // The pages remain reserved; after unmap() they are free.
  void forbid(size_t first, size_t count) {
    EXPECT_EQ(mprotect(at(first), count * page, PROT_NONE), 0);
  }

 private:
  void note(size_t first, size_t count, bool own) {
    for (size_t i = 0; i < count; ++i) own_[first + i + 1] = own;
  }

  std::vector<bool> own_;  // for each page, and for one page before and after
  std::byte* base_;
};

struct Registered {
  uint64_t address;
  uint64_t length;
  bool writable;
  bool operator==(const Registered&) const = default;
};

// Records registrations, rejects inaccessible memory, and fails when a test demands it.
class FakeRegistrar final : public Registrar {
 public:
  int register_memory(void* address, uint64_t length, bool writable,
                      Registration& registration) noexcept override {
    if (auto* const hook = before_registering.load()) hook();
    const std::lock_guard guard(lock_);
    ++attempts;
    if (limit_bytes_ < bytes_ + length) return ENOMEM;
    if (const int error = failure_.exchange(0); error != 0) return error;
    // Like pinning, this fails for unmapped or forbidden memory.
    if (madvise(address, length, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0)
      return EFAULT;
    registration.lkey = ++last_key_;
    registration.handle = this;
    live_[registration.lkey] = {reinterpret_cast<uint64_t>(address), length, writable};
    bytes_ += length;
    return 0;
  }
  void deregister_memory(Registration& registration) noexcept override {
    if (auto* const hook = before_deregistering.load()) hook();
    const std::lock_guard guard(lock_);
    const auto found = live_.find(registration.lkey);
    ASSERT_NE(found, live_.end()) << "deregistered twice";
    bytes_ -= found->second.length;
    live_.erase(found);
    ++deregistered;
  }

  [[nodiscard]] std::vector<Registered> live() {
    const std::lock_guard guard(lock_);
    std::vector<Registered> all;
    for (const auto& [key, what] : live_) all.push_back(what);
    return all;
  }
  [[nodiscard]] bool is_live(uint32_t key) {
    const std::lock_guard guard(lock_);
    return live_.count(key) != 0;
  }
  void fail_next(int error) { failure_ = error; }
  void limit(uint64_t bytes) {
    const std::lock_guard guard(lock_);
    limit_bytes_ = bytes;
  }

  std::atomic<unsigned> attempts{0};
  std::atomic<unsigned> deregistered{0};
  std::atomic<void (*)()> before_registering{nullptr};
  std::atomic<void (*)()> before_deregistering{nullptr};

 private:
  std::mutex lock_;
  std::map<uint32_t, Registered> live_;
  uint32_t last_key_ = 0;
  uint64_t bytes_ = 0;
  uint64_t limit_bytes_ = UINT64_MAX;
  std::atomic<int> failure_{0};
};

// Returns true as soon as `condition` is true, and false after the deadline for tests.
template <typename Condition>
[[nodiscard]] bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + wait_deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A cache with one registrar.
class CachedMemory {
 public:
  explicit CachedMemory(const WatchedCache::Settings& settings = {}) : cache(settings) {
    memory = cache.attach(registrar);
    EXPECT_NE(memory, nullptr);
  }

  [[nodiscard]] const RegisteredRegion* acquire(const void* address, uint64_t length,
                                                bool writable = true) {
    error = 0;
    return memory->acquire(address, length, writable, error);
  }
  // Acquires and releases a region; returns its key.
  uint32_t use(const void* address, uint64_t length, bool writable = true) {
    const RegisteredRegion* const region = acquire(address, length, writable);
    if (region == nullptr) return 0;
    EXPECT_LE(region->address, reinterpret_cast<uint64_t>(address));
    EXPECT_GE(region->address + region->length, reinterpret_cast<uint64_t>(address) + length);
    EXPECT_TRUE(!writable || region->writable);
    const uint32_t key = region->registration.lkey;
    EXPECT_TRUE(registrar.is_live(key));
    memory->release(region);
    return key;
  }

  FakeRegistrar registrar;
  WatchedCache cache;
  std::unique_ptr<RegisteredMemory> memory;
  int error = 0;
};

// Why memory cannot be watched on this machine; empty if it can.
inline std::string why_not_watched() {
  MemoryWatch watch;
  std::string reason;
  return watch.open(reason) ? std::string() : reason;
}

}  // namespace lintel::test
