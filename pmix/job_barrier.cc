// Mapping the memory, waiting. Set-up path.
#include "job_barrier.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/futex.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr size_t memory_bytes = 4096;
constexpr int64_t look_after_ns = 1'000'000'000;

}  // namespace

JobBarrier::~JobBarrier() {
  if (words_ != nullptr) munmap(words_, memory_bytes);
}

std::string JobBarrier::open(const std::string& path, uint32_t processes) {
  const auto because = [&](const char* error) { return "PTL_JOB_MEMORY=" + path + ": " + error; };
  const Descriptor file = open_file(path.c_str(), O_RDWR | O_NONBLOCK);
  struct stat status;
  if (!file.is_open() || fstat(file.get(), &status) != 0) return because(std::strerror(errno));
  if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) < memory_bytes)
    return because("not a file of 4096 bytes");
  void* const memory =
      mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return because(std::strerror(errno));
  words_ = static_cast<Words*>(memory);
  if (const uint32_t found = words_->version.load(std::memory_order_relaxed); found != version)
    return because(("version " + std::to_string(found) + ", must be " + std::to_string(version) +
                    ": use the launcher of this library")
                       .c_str());
  processes_ = processes;
  words_->opened.fetch_add(1, std::memory_order_relaxed);
  return "";
}

std::string JobBarrier::wait(std::chrono::seconds limit) {
  const uint32_t generation = words_->generation.load(std::memory_order_acquire);
  if (words_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == processes_) {
    words_->arrived.store(0, std::memory_order_relaxed);
    words_->generation.store(generation + 1, std::memory_order_release);
    futex_wake(words_->generation);
    return "";
  }
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    const bool has_ended = words_->ended.load(std::memory_order_acquire) != 0;
    if (words_->generation.load(std::memory_order_acquire) != generation) return "";
    if (has_ended) return "a process of the job has ended";
    const uint32_t opened = words_->opened.load(std::memory_order_relaxed);
    if (opened < processes_ && std::chrono::steady_clock::now() - began > limit)
      return std::to_string(processes_ - opened) + " of " + std::to_string(processes_) +
             " processes have not called PtlJobInit within " + std::to_string(limit.count()) +
             " s (PTL_WAIT_S)";
    futex_wait(words_->generation, generation, look_after_ns);
  }
}

}  // namespace lintel
