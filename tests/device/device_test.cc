// Messages between the memories of one device in two processes: checks every byte, then measures.
// Needs the library and the driver, nothing else; on_gpu builds and runs it.
//
//   device_test DRIVER check           puts, gets, atomics, what is refused
//   device_test DRIVER measure         one line a row: its name, its time, that of the baseline in
//   ns device_test DRIVER measure-network the rows of the network device_test DRIVER measure-host
//   the row of memory of the host
#include <portals4.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/accelerator.h"

namespace {

using lintel::tools::Accelerator;

constexpr ptl_pt_index_t index_of_test = 3;
constexpr size_t largest = size_t{64} << 20;

// The sizes of the measurements: smaller with the stand-in, which is there to test the steps.
bool is_quick() { return std::getenv("ON_GPU_QUICK") != nullptr; }
size_t long_bytes() { return is_quick() ? size_t{4} << 20 : largest; }

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "device_test: %s\n", text.c_str());
  _exit(1);
}
void require(int code, const char* call) {
  if (code != PTL_OK) fail(std::string(call) + " returned " + std::to_string(code));
}
void expect(bool condition, const std::string& text) {
  if (!condition) fail(text);
}

// What the two processes share.
struct Board {
  std::atomic<unsigned> arrived{0};
  ptl_process_t ids[2];
};

class Place {
 public:
  enum Kind { host, device };
  Place(Accelerator& accelerator, Kind kind, size_t bytes)
      : accelerator_(accelerator), kind_(kind), bytes_(bytes) {
    if (kind == device)
      start_ = static_cast<std::byte*>(accelerator.allocate(bytes));
    else
      start_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (kind_ == device)
      accelerator_.release(start_);
    else
      munmap(start_, bytes_);
  }

  std::byte* start() const { return start_; }
  size_t bytes() const { return bytes_; }
  void write(const std::vector<uint8_t>& data, size_t offset = 0) const {
    if (data.empty()) return;
    if (kind_ == device)
      accelerator_.copy(start_ + offset, data.data(), data.size());
    else
      std::memcpy(start_ + offset, data.data(), data.size());
  }
  std::vector<uint8_t> read(size_t bytes, size_t offset = 0) const {
    std::vector<uint8_t> data(bytes);
    if (bytes == 0) return data;
    if (kind_ == device)
      accelerator_.copy(data.data(), start_ + offset, bytes);
    else
      std::memcpy(data.data(), start_ + offset, bytes);
    return data;
  }

 private:
  Accelerator& accelerator_;
  Kind kind_;
  size_t bytes_;
  std::byte* start_ = nullptr;
};

std::vector<uint8_t> pattern(size_t bytes, uint64_t seed) {
  std::vector<uint8_t> data(bytes);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (uint8_t& each : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    each = static_cast<uint8_t>(state >> 56);
  }
  return data;
}

// One of the two processes.
class Process {
 public:
  Process(Board& board, unsigned rank, const std::string& driver) : board_(board), rank_(rank) {
    void* const library = lintel::tools::load_driver(lintel::tools::driver_library(driver));
    accelerator_ = lintel::tools::open_accelerator(driver, 0, library);
    require(PtlInit(), "PtlInit");
    require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                      nullptr, &ni_),
            "PtlNIInit");
    require(PtlEQAlloc(ni_, 4096, &events_), "PtlEQAlloc");
    require(PtlCTAlloc(ni_, &counter_), "PtlCTAlloc");
    require(PtlCTAlloc(ni_, &arrivals_), "PtlCTAlloc");
    ptl_pt_index_t index;
    require(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, index_of_test, &index), "PtlPTAlloc");
    require(PtlGetPhysId(ni_, &board.ids[rank]), "PtlGetPhysId");
    barrier();
  }
  ~Process() {
    barrier();
    PtlFini();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] bool is_initiator() const { return rank_ == 0; }
  Accelerator& accelerator() { return *accelerator_; }
  ptl_process_t peer() const { return board_.ids[1 - rank_]; }
  ptl_handle_ct_t counter() const { return counter_; }
  ptl_handle_eq_t events() const { return events_; }

  // A process that ended early would leave the other waiting.
  void barrier() {
    const unsigned turn = board_.arrived.fetch_add(1) / 2;
    while (board_.arrived.load() / 2 == turn) sched_yield();
  }

  class Entry {
   public:
    Entry(Process& process, const Place& place, ptl_match_bits_t bits, unsigned options = 0) {
      ptl_me_t entry{};
      entry.start = place.start();
      entry.length = place.bytes();
      entry.ct_handle = (options & PTL_ME_EVENT_CT_COMM) != 0 ? process.arrivals_ : PTL_CT_NONE;
      entry.uid = PTL_UID_ANY;
      entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                      PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | options;
      entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
      entry.match_bits = bits;
      require(PtlMEAppend(process.ni_, index_of_test, &entry, PTL_PRIORITY_LIST, nullptr, &handle_),
              "PtlMEAppend");
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() {
      while (PtlMEUnlink(handle_) == PTL_IN_USE) sched_yield();
    }

   private:
    ptl_handle_me_t handle_ = PTL_INVALID_HANDLE;
  };

  class Descriptor {
   public:
    Descriptor(Process& process, const Place& place, bool with_events = false) {
      ptl_md_t md{};
      md.start = place.start();
      md.length = place.bytes();
      md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
      md.ct_handle = process.counter_;
      md.eq_handle = with_events ? process.events_ : PTL_EQ_NONE;
      require(PtlMDBind(process.ni_, &md, &handle_), "PtlMDBind");
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
      while (PtlMDRelease(handle_) == PTL_IN_USE) sched_yield();
    }
    ptl_handle_md_t handle() const { return handle_; }

   private:
    ptl_handle_md_t handle_ = PTL_INVALID_HANDLE;
  };

  // Waits until `count` more operations of this process have been answered.
  ptl_ct_event_t await(ptl_size_t count = 1) {
    answered_ += count;
    ptl_ct_event_t now{};
    require(PtlCTWait(counter_, answered_, &now), "PtlCTWait");
    if (now.failure != 0) {
      // A failure ends the wait at once. Resets both counts.
      answered_ = 0;
      PtlCTSet(counter_, {0, 0});
    }
    return now;
  }
  void await_success(ptl_size_t count, const std::string& what) {
    expect(await(count).failure == 0, what + " failed");
  }
  // Waits until `count` more operations of the peer have arrived here.
  void await_arrivals(ptl_size_t count = 1) {
    arrived_ += count;
    ptl_ct_event_t now{};
    require(PtlCTWait(arrivals_, arrived_, &now), "PtlCTWait");
    expect(now.failure == 0, "an operation of the peer failed here");
  }
  ptl_handle_ct_t arrivals() const { return arrivals_; }

 private:
  Board& board_;
  unsigned rank_;
  std::unique_ptr<Accelerator> accelerator_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t events_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t counter_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t arrivals_ = PTL_INVALID_HANDLE;
  ptl_size_t answered_ = 0;
  ptl_size_t arrived_ = 0;
};

// ------------------------------------------------------------------------------------ checks

void check_transfers(Process& process, Place::Kind near_kind, Place::Kind far_kind) {
  const size_t bytes = long_bytes();
  const Place place(process.accelerator(), process.is_initiator() ? near_kind : far_kind, bytes);
  std::unique_ptr<Process::Entry> entry;
  if (!process.is_initiator()) {
    place.write(pattern(bytes, 99));
    entry = std::make_unique<Process::Entry>(process, place, 1);
  }
  process.barrier();
  uint64_t seed = 0;
  for (const size_t length :
       {size_t{0}, size_t{1}, size_t{8}, size_t{65}, size_t{1000}, size_t{8192}, size_t{8193},
        size_t{100001}, (size_t{1} << 20) + 3, bytes - 64}) {
    const size_t offset = length % 50;
    const std::string what = std::to_string(length) + " bytes";
    const std::vector<uint8_t> sent = pattern(length, ++seed);
    if (process.is_initiator()) {
      const Process::Descriptor descriptor(process, place);
      place.write(sent, offset);
      require(PtlPut(descriptor.handle(), offset, length, PTL_CT_ACK_REQ, process.peer(),
                     index_of_test, 1, offset, nullptr, 0),
              "PtlPut");
      process.await_success(1, "a put of " + what);
      place.write(pattern(length, 1000), offset);
      require(PtlGet(descriptor.handle(), offset, length, process.peer(), index_of_test, 1, offset,
                     nullptr),
              "PtlGet");
      process.await_success(1, "a get of " + what);
      expect(place.read(length, offset) == sent, "a get of " + what + " fetched other data");
    }
    process.barrier();
    if (!process.is_initiator())
      expect(place.read(length, offset) == sent, "a put of " + what + " left other data");
    process.barrier();
  }
}

void check_atomics(Process& process) {
  const Place place(process.accelerator(), Place::device, 4096);
  std::unique_ptr<Process::Entry> entry;
  place.write(std::vector<uint8_t>(4096, 0));
  if (!process.is_initiator()) entry = std::make_unique<Process::Entry>(process, place, 2);
  process.barrier();
  constexpr int rounds = 20;
  if (process.is_initiator()) {
    const Process::Descriptor descriptor(process, place);
    std::vector<uint8_t> one(8, 0);
    one[0] = 1;
    place.write(one);
    for (int i = 0; i < rounds; ++i) {
      require(PtlFetchAtomic(descriptor.handle(), 64, descriptor.handle(), 0, 8, process.peer(),
                             index_of_test, 2, 8, nullptr, 0, PTL_SUM, PTL_INT64_T),
              "PtlFetchAtomic");
      process.await_success(1, "a fetching atomic");
      expect(place.read(1, 64)[0] == i, "a fetching atomic fetched another value");
    }
  }
  process.barrier();
  if (!process.is_initiator()) expect(place.read(1, 8)[0] == rounds, "atomics left another sum");
  process.barrier();
}

// Memory that was freed ends its operation, and no other.
void check_freed_memory(Process& process) {
  const Place place(process.accelerator(), Place::device, 8192);
  std::unique_ptr<Process::Entry> entry;
  if (!process.is_initiator()) entry = std::make_unique<Process::Entry>(process, place, 3);
  process.barrier();
  if (process.is_initiator()) {
    auto freed = std::make_unique<Place>(process.accelerator(), Place::device, size_t{32} << 20);
    const Process::Descriptor gone(process, *freed);
    const Process::Descriptor good(process, place);
    freed.reset();
    const int code = PtlPut(gone.handle(), 0, 4096, PTL_CT_ACK_REQ, process.peer(), index_of_test,
                            3, 0, nullptr, 0);
    // Where the driver keeps the mapping of freed memory, the put may succeed.
    if (code == PTL_OK) process.await();
    require(PtlPut(good.handle(), 0, 4096, PTL_CT_ACK_REQ, process.peer(), index_of_test, 3, 0,
                   nullptr, 0),
            "PtlPut");
    process.await_success(1, "a put after one from freed memory");
  }
  process.barrier();
}

void check(Process& process) {
  for (const auto near : {Place::host, Place::device})
    for (const auto far : {Place::host, Place::device}) check_transfers(process, near, far);
  check_atomics(process);
  check_freed_memory(process);
  if (process.is_initiator()) std::printf("every byte is right\n");
}

// ------------------------------------------------------------------------------------ measurements

// Median of repeated runs, in nanoseconds per operation.
template <typename Run>
double median_ns(unsigned operations, const Run& run) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run(operations);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    times.push_back(taken.count() / operations);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void report(Process& process, const char* name, double value, double baseline) {
  if (process.is_initiator()) {
    std::printf("%s %.1f %.1f\n", name, value, baseline);
    std::fflush(stdout);
  }
}

// Time of a put until it is acknowledged.
double put_ns(Process& process, Place::Kind near, Place::Kind far, size_t bytes, unsigned count) {
  const Place place(process.accelerator(), process.is_initiator() ? near : far, bytes);
  std::unique_ptr<Process::Entry> entry;
  if (!process.is_initiator()) entry = std::make_unique<Process::Entry>(process, place, 4);
  process.barrier();
  double result = 0;
  if (process.is_initiator()) {
    const Process::Descriptor descriptor(process, place);
    const auto put = [&](unsigned operations) {
      for (unsigned i = 0; i < operations; ++i) {
        require(PtlPut(descriptor.handle(), 0, bytes, PTL_CT_ACK_REQ, process.peer(), index_of_test,
                       4, 0, nullptr, 0),
                "PtlPut");
        process.await_success(1, "a measured put");
      }
    };
    put(count);
    result = median_ns(count, put);
  }
  process.barrier();
  return result;
}

// Half the time of a put and the put that answers it.
double half_round_trip_ns(Process& process, Place::Kind kind, size_t bytes, unsigned count) {
  const Place place(process.accelerator(), kind, bytes);
  const Process::Entry entry(process, place, 5, PTL_ME_EVENT_CT_COMM);
  const Process::Descriptor descriptor(process, place);
  process.barrier();
  const auto put = [&] {
    require(PtlPut(descriptor.handle(), 0, bytes, PTL_NO_ACK_REQ, process.peer(), index_of_test, 5,
                   0, nullptr, 0),
            "PtlPut");
  };
  const auto turns = [&](unsigned operations) {
    for (unsigned i = 0; i < operations; ++i) {
      if (process.is_initiator()) put();
      process.await_arrivals();
      if (!process.is_initiator()) put();
    }
  };
  turns(count);
  const double result = median_ns(count, turns) / 2;
  process.barrier();
  return result;
}

double copy_ns(Process& process, Place::Kind to_kind, Place::Kind from_kind, size_t bytes,
               unsigned count) {
  const Place to(process.accelerator(), to_kind, bytes);
  const Place from(process.accelerator(), from_kind, bytes);
  const auto copy = [&](unsigned operations) {
    for (unsigned i = 0; i < operations; ++i)
      process.accelerator().copy(to.start(), from.start(), bytes);
  };
  copy(count);
  return median_ns(count, copy);
}

// The driver's own calls, without a further wait: to the device, and from it.
double two_copies_ns(Process& process, size_t bytes, unsigned count) {
  const Place device(process.accelerator(), Place::device, bytes);
  const Place host(process.accelerator(), Place::host, bytes);
  const auto copy = [&](unsigned operations) {
    for (unsigned i = 0; i < operations; ++i) {
      process.accelerator().copy_by_driver(device.start(), host.start(), bytes);
      process.accelerator().copy_by_driver(host.start(), device.start(), bytes);
    }
  };
  copy(count);
  return median_ns(count, copy);
}

void measure(Process& process) {
  const unsigned many = is_quick() ? 20 : 1000;
  const unsigned few = is_quick() ? 2 : 20;
  constexpr size_t mebibyte = size_t{1} << 20;
  const size_t bytes = long_bytes();
  // Only the initiator uses the device while the driver's own copies are measured.
  const auto alone = [&](const std::function<double()>& run) {
    double result = 0;
    process.barrier();
    if (process.is_initiator()) result = run();
    process.barrier();
    return result;
  };
  const double d2d =
      alone([&] { return copy_ns(process, Place::device, Place::device, bytes, few); });
  const double two = alone([&] { return two_copies_ns(process, 8, many); });
  const double d2h =
      alone([&] { return copy_ns(process, Place::host, Place::device, mebibyte, many / 4); });
  report(process, "long_device_to_device",
         put_ns(process, Place::device, Place::device, bytes, few), d2d);
  report(process, "small_device_to_device", half_round_trip_ns(process, Place::device, 8, many),
         two);
  report(process, "mebibyte_device_to_host",
         put_ns(process, Place::device, Place::host, mebibyte, many / 4), d2h);
  report(process, "small_host_to_host", half_round_trip_ns(process, Place::host, 8, many), 0);
  report(process, "small_acknowledged", put_ns(process, Place::device, Place::device, 8, many), 0);
}

void measure_network(Process& process) {
  const unsigned few = is_quick() ? 1 : 10;
  const size_t bytes = long_bytes();
  const double host = put_ns(process, Place::host, Place::host, bytes, few);
  report(process, "network_device_to_device",
         put_ns(process, Place::device, Place::device, bytes, few), host);
}

int run_process(Board& board, unsigned rank, const std::string& driver, const std::string& what) {
  try {
    Process process(board, rank, driver);
    if (what == "check") check(process);
    if (what == "measure") measure(process);
    if (what == "measure-network") measure_network(process);
    if (what == "measure-host")
      report(process, "host_without_driver",
             half_round_trip_ns(process, Place::host, 8, is_quick() ? 20 : 1000), 0);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_test: %s\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: device_test DRIVER check|measure|measure-network|measure-host\n");
    return 2;
  }
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  Board& board = *new (memory) Board;
  pid_t children[2];
  for (unsigned rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) {
      const int code = run_process(board, rank, argv[1], argv[2]);
      std::fflush(stdout);
      _exit(code);
    }
  }
  // The first that fails ends the other.
  int failed = 0;
  for (int ended = 0; ended < 2; ++ended) {
    int status = 0;
    const pid_t child = wait(&status);
    if (status == 0) continue;
    failed = 1;
    kill(children[child == children[0] ? 1 : 0], SIGKILL);
  }
  return failed;
}
