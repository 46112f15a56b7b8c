// Memory of devices (FI_HMEM), with a stand-in for a driver: at its addresses the processor can
// neither read nor write. man fi_getinfo, man fi_mr.
#include <optional>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class DeviceMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, DeviceMemoryTest, testing::ValuesIn(all_pairs()), name_of);

constexpr uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_HMEM;
constexpr size_t sizes[] = {8, 512, 5000, 100'000};

// Memory of the device of the process.
struct DeviceMemory : DeviceBuffer {
  explicit DeviceMemory(size_t bytes, const char* driver = "cuda")
      : DeviceBuffer(accelerator(driver), bytes) {}
  explicit DeviceMemory(const std::vector<std::byte>& content) : DeviceMemory(content.size()) {
    write(content.data(), content.size());
  }
  [[nodiscard]] std::vector<std::byte> bytes_at(size_t offset, size_t size) const {
    std::vector<std::byte> content(size);
    read(content.data(), size, offset);
    return content;
  }
};

void run_with_device(const PairKind& kind, const std::function<void(Pair&)>& body) {
  run_pair(kind, {.caps = caps, .mr_mode = FI_MR_HMEM, .driver = "cuda"}, body);
}

Owned<fid_mr> register_device(const Side& side, void* start, size_t size, uint64_t key = 0,
                              fi_hmem_iface iface = FI_HMEM_CUDA) {
  const iovec piece = {start, size};
  fi_mr_attr attr{};
  attr.mr_iov = &piece;
  attr.iov_count = 1;
  attr.access = all_access;
  attr.requested_key = key;
  attr.iface = iface;
  fid_mr* region = nullptr;
  must(fi_mr_regattr(side.domain(), &attr, 0, &region));
  return Owned<fid_mr>(region);
}

// Tagged messages and others, from a device to a device.
void exchange(const PairKind& kind, size_t size, bool is_expected) {
  run_with_device(kind, [&](Pair& pair) {
    std::optional<DeviceMemory> out;
    std::optional<DeviceMemory> in;
    Context contexts[2];
    Context sends[2];
    const auto post = [&](Side& side) {
      must(
          fi_trecv(side.endpoint(), in->data(), size, nullptr, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
      must(
          fi_recv(side.endpoint(), in->data() + size, size, nullptr, FI_ADDR_UNSPEC, &contexts[1]));
    };
    pair.receiver([&](Side& side) {
      in.emplace(2 * size);
      if (is_expected) post(side);
    });
    pair.sender([&](Side& side) {
      out.emplace(bytes(size, 1));
      must(fi_tsend(side.endpoint(), out->data(), size, nullptr, side.peer(), 1, &sends[0]));
      must(fi_send(side.endpoint(), out->data(), size, nullptr, side.peer(), &sends[1]));
    });
    pair.receiver([&](Side& side) {
      if (!is_expected) post(side);
      for (int count = 0; count < 2; ++count) EXPECT_EQ(side.next(side.received()).len, size);
      EXPECT_EQ(in->bytes_at(0, size), bytes(size, 1));
      EXPECT_EQ(in->bytes_at(size, size), bytes(size, 1));
      in.reset();
    });
    pair.sender([&](Side& side) {
      for (int count = 0; count < 2; ++count) side.next(side.sent());
      out.reset();
    });
  });
}

TEST_P(DeviceMemoryTest, ExpectedMessages) {
  for (const size_t size : sizes) exchange(GetParam(), size, true);
}

TEST_P(DeviceMemoryTest, UnexpectedMessages) {
  for (const size_t size : sizes) exchange(GetParam(), size, false);
}

// Short ones are gathered and scattered by the provider.
TEST_P(DeviceMemoryTest, MessagesInPieces) {
  for (const size_t size : sizes) {
    run_with_device(GetParam(), [&](Pair& pair) {
      std::optional<DeviceMemory> out;
      std::optional<DeviceMemory> in;
      Context context;
      Context sent;
      const auto pieces_of = [&](DeviceMemory& memory, size_t first) {
        return std::array{iovec{memory.data(), first}, iovec{memory.data() + first, size - first}};
      };
      pair.sender([&](Side& side) {
        out.emplace(bytes(size, 2));
        const auto pieces = pieces_of(*out, 3);
        must(fi_tsendv(side.endpoint(), pieces.data(), nullptr, 2, side.peer(), 1, &sent));
      });
      pair.receiver([&](Side& side) {
        in.emplace(size);
        const auto pieces = pieces_of(*in, 5);
        must(fi_trecvv(side.endpoint(), pieces.data(), nullptr, 2, FI_ADDR_UNSPEC, 1, 0, &context));
        EXPECT_EQ(side.next(side.received()).len, size);
        EXPECT_EQ(in->bytes_at(0, size), bytes(size, 2));
        in.reset();
      });
      pair.sender([&](Side& side) {
        side.next(side.sent());
        out.reset();
      });
    });
  }
}

TEST_P(DeviceMemoryTest, AnInjectedMessageIsReceivedByADevice) {
  run_with_device(GetParam(), [](Pair& pair) {
    std::optional<DeviceMemory> in;
    Context context;
    pair.sender([&](Side& side) {
      std::vector<std::byte> out = bytes(300, 3);
      must(fi_tinject(side.endpoint(), out.data(), out.size(), side.peer(), 1));
      std::fill(out.begin(), out.end(), std::byte{});
    });
    pair.receiver([&](Side& side) {
      in.emplace(300);
      must(fi_trecv(side.endpoint(), in->data(), 300, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
      side.next(side.received());
      EXPECT_EQ(in->bytes_at(0, 300), bytes(300, 3));
      in.reset();
    });
  });
}

TEST_P(DeviceMemoryTest, ABufferForSeveralMessages) {
  run_with_device(GetParam(), [](Pair& pair) {
    std::optional<DeviceMemory> out;
    std::optional<DeviceMemory> in;
    Context context;
    Context sends[std::size(sizes)];
    const auto send_all = [&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i)
        must(fi_send(side.endpoint(), out->data(), sizes[i], nullptr, side.peer(), &sends[i]));
    };
    pair.sender([&](Side& side) {
      out.emplace(bytes(sizes[3], 4));
      send_all(side);
    });
    pair.receiver([&](Side& side) {
      in.emplace(1 << 20);
      const iovec piece = {in->data(), in->size()};
      const fi_msg message = {&piece, nullptr, 1, FI_ADDR_UNSPEC, &context, 0};
      must(fi_recvmsg(side.endpoint(), &message, FI_MULTI_RECV | FI_COMPLETION));
    });
    const std::vector<std::byte> whole = bytes(sizes[3], 4);
    const auto check = [&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) {
        const fi_cq_tagged_entry entry = side.next(side.received());
        const auto offset = static_cast<size_t>(static_cast<std::byte*>(entry.buf) - in->data());
        const std::vector<std::byte> part = in->bytes_at(offset, entry.len);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
      }
    };
    pair.receiver(check);
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) side.next(side.sent());
      send_all(side);
    });
    pair.receiver([&](Side& side) {
      check(side);
      side.close_endpoint();
      in.reset();
    });
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) side.next(side.sent());
      out.reset();
    });
  });
}

TEST_P(DeviceMemoryTest, AClaimedMessage) {
  run_with_device(GetParam(), [](Pair& pair) {
    std::optional<DeviceMemory> in;
    Context context;
    pair.sender([&](Side& side) {
      const std::vector<std::byte> out = bytes(100, 5);
      must(fi_tinject(side.endpoint(), out.data(), out.size(), side.peer(), 1));
    });
    pair.receiver([&](Side& side) {
      in.emplace(100);
      const iovec piece = {in->data(), 100};
      fi_msg_tagged message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = FI_ADDR_UNSPEC;
      message.tag = 1;
      message.context = &context;
      await_progress(
          "the message",
          [&] {
            must(fi_trecvmsg(side.endpoint(), &message, FI_PEEK | FI_CLAIM | FI_COMPLETION));
            fi_cq_tagged_entry entry{};
            ssize_t code = -FI_EAGAIN;
            while (code == -FI_EAGAIN) code = fi_cq_read(side.received(), &entry, 1);
            if (code == 1) return true;
            fi_cq_err_entry error{};
            must(fi_cq_readerr(side.received(), &error, 0) - 1);
            return false;
          },
          Place::current());
      must(fi_trecvmsg(side.endpoint(), &message, FI_CLAIM | FI_COMPLETION));
      side.next(side.received());
      EXPECT_EQ(in->bytes_at(0, 100), bytes(100, 5));
      in.reset();
    });
  });
}

TEST_P(DeviceMemoryTest, ReadsAndWritesBothWays) {
  run_with_device(GetParam(), [](Pair& pair) {
    constexpr size_t size = 100'000;
    std::optional<DeviceMemory> memory;
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) {
      memory.emplace(size);
      region = register_device(side, memory->data(), size, 4);
      pair.tell(0, fi_mr_key(region.get()));
    });
    pair.sender([&](Side& side) {
      DeviceMemory own(bytes(size, 6));
      for (const size_t length : sizes) {
        Context context;
        must(fi_write(side.endpoint(), own.data(), length, nullptr, side.peer(), 0, pair.told(0),
                      &context));
        side.next(side.sent());
        DeviceMemory back(length);
        must(fi_read(side.endpoint(), back.data(), length, nullptr, side.peer(), 0, pair.told(0),
                     &context));
        side.next(side.sent());
        EXPECT_EQ(back.bytes_at(0, length), own.bytes_at(0, length));
      }
      const std::vector<std::byte> host = bytes(16, 7);
      must(fi_inject_write(side.endpoint(), host.data(), 16, side.peer(), 0, pair.told(0)));
    });
    pair.receiver([&](Side& side) {
      await_progress(
          "the injected write",
          [&] {
            fi_cq_read(side.received(), nullptr, 0);
            return memory->bytes_at(0, 16) == bytes(16, 7);
          },
          Place::current());
      region.reset();
      memory.reset();
    });
  });
}

TEST_P(DeviceMemoryTest, AtomicsFromAndToDevices) {
  run_with_device(GetParam(), [](Pair& pair) {
    std::optional<DeviceMemory> memory;
    Owned<fid_mr> region;
    const auto number = [](const DeviceMemory& at) {
      uint64_t value = 0;
      at.read(&value, 8);
      return value;
    };
    const auto set = [](DeviceMemory& at, uint64_t value) { at.write(&value, 8); };
    pair.receiver([&](Side& side) {
      memory.emplace(8);
      set(*memory, 5);
      region = register_device(side, memory->data(), 8, 4);
      pair.tell(0, fi_mr_key(region.get()));
    });
    pair.sender([&](Side& side) {
      DeviceMemory operand(8);
      DeviceMemory comparand(8);
      DeviceMemory result(8);
      Context context;
      const uint64_t key = pair.told(0);
      set(operand, 7);
      must(fi_atomic(side.endpoint(), operand.data(), 1, nullptr, side.peer(), 0, key, FI_UINT64,
                     FI_SUM, &context));
      side.next(side.sent());
      must(fi_fetch_atomic(side.endpoint(), operand.data(), 1, nullptr, result.data(), nullptr,
                           side.peer(), 0, key, FI_UINT64, FI_SUM, &context));
      side.next(side.sent());
      EXPECT_EQ(number(result), 12);
      set(comparand, 19);
      set(operand, 100);
      must(fi_compare_atomic(side.endpoint(), operand.data(), 1, nullptr, comparand.data(), nullptr,
                             result.data(), nullptr, side.peer(), 0, key, FI_UINT64, FI_CSWAP,
                             &context));
      side.next(side.sent());
      EXPECT_EQ(number(result), 19);
      must(fi_fetch_atomic(side.endpoint(), nullptr, 1, nullptr, result.data(), nullptr,
                           side.peer(), 0, key, FI_UINT64, FI_ATOMIC_READ, &context));
      side.next(side.sent());
      EXPECT_EQ(number(result), 100);
    });
    pair.receiver([&](Side&) {
      EXPECT_EQ(number(*memory), 100);
      region.reset();
      memory.reset();
    });
  });
}

// The program loads the driver after it has opened the domain, and tells that by a registration.
TEST_P(DeviceMemoryTest, ADriverThatIsLoadedLater) {
  run_pair(GetParam(), {.caps = caps, .mr_mode = FI_MR_HMEM}, [](Pair& pair) {
    std::optional<DeviceMemory> memory;
    Owned<fid_mr> region;
    Context context;
    pair.receiver([&](Side& side) {
      memory.emplace(100'000);
      region = register_device(side, memory->data(), memory->size());
      must(fi_trecv(side.endpoint(), memory->data(), memory->size(), nullptr, FI_ADDR_UNSPEC, 1, 0,
                    &context));
    });
    pair.sender([&](Side& side) {
      DeviceMemory own(bytes(100'000, 8));
      const Owned<fid_mr> own_region = register_device(side, own.data(), own.size(), 1);
      Context sent;
      must(fi_tsend(side.endpoint(), own.data(), own.size(), nullptr, side.peer(), 1, &sent));
      side.next(side.sent());
    });
    pair.receiver([&](Side& side) {
      side.next(side.received());
      EXPECT_EQ(memory->bytes_at(0, memory->size()), bytes(100'000, 8));
      region.reset();
      memory.reset();
    });
  });
}

// A message to oneself through a device of each driver.
TEST(DeviceDriverTest, EachDriver) {
  for (const auto& [driver, iface] :
       {std::pair{"cuda", FI_HMEM_CUDA}, {"hip", FI_HMEM_ROCR}, {"ze", FI_HMEM_ZE}}) {
    run_alone([&, driver = driver, iface = iface](Rank&) {
      Side side({.caps = caps, .mr_mode = FI_MR_HMEM, .driver = driver});
      side.connect(side.name());
      DeviceMemory memory(16, driver);
      const Owned<fid_mr> region = register_device(side, memory.data(), 16, 0, iface);
      const uint64_t value = 42;
      uint64_t back = 0;
      Context context;
      must(fi_trecv(side.endpoint(), memory.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
      must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 1));
      side.next(side.received());
      must(fi_read(side.endpoint(), &back, 8, nullptr, side.peer(), 0, fi_mr_key(region.get()),
                   &context));
      side.next(side.sent());
      EXPECT_EQ(back, value);
    });
  }
}

TEST(DeviceDriverTest, WhatIsNotThereIsRefused) {
  run_alone([](Rank&) {
    setenv("PTL_DEVICE_MEMORY", "cuda", 1);
    const Side side({.caps = caps, .mr_mode = FI_MR_HMEM, .driver = "cuda"});
    EXPECT_EQ(side.info().domain_attr->mr_mode, FI_MR_HMEM);
    uint64_t value = 0;
    const iovec piece = {&value, 8};
    const auto code = [&](fi_hmem_iface iface, int device) {
      fi_mr_attr attr{};
      attr.mr_iov = &piece;
      attr.iov_count = 1;
      attr.access = all_access;
      attr.iface = iface;
      attr.device.cuda = device;
      fid_mr* region = nullptr;
      const int result = fi_mr_regattr(side.domain(), &attr, 0, &region);
      if (result == 0) must(fi_close(&region->fid));
      return result;
    };
    EXPECT_EQ(code(FI_HMEM_SYSTEM, 0), 0);
    EXPECT_EQ(code(FI_HMEM_CUDA, 0), 0);
    EXPECT_EQ(code(FI_HMEM_CUDA, 1), -FI_EINVAL);
    EXPECT_EQ(code(FI_HMEM_ROCR, 0), -FI_ENOSYS);
    EXPECT_EQ(code(FI_HMEM_ZE, 0), -FI_ENOSYS);
    EXPECT_EQ(code(FI_HMEM_NEURON, 0), -FI_ENOSYS);
  });
}

// "This field is ignored unless the application has requested the FI_HMEM capability."
TEST(DeviceDriverTest, TheInterfaceCountsOnlyWithTheCapability) {
  run_alone([](Rank&) {
    const Side side({.caps = FI_RMA, .mr_mode = FI_MR_HMEM});
    EXPECT_EQ(side.info().domain_attr->mr_mode, 0);
    EXPECT_EQ(side.info().caps & FI_HMEM, 0);
    uint64_t value = 0;
    (void)register_device(side, &value, 8, 0, FI_HMEM_ZE);
  });
}

TEST(DeviceDriverTest, TheWayToDevicesIsThatOfPortals) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    const auto code = [&](int wanted) {
      return fi_setopt(&side.endpoint()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &wanted,
                       sizeof wanted);
    };
    EXPECT_EQ(code(FI_HMEM_P2P_ENABLED), 0);
    EXPECT_EQ(code(FI_HMEM_P2P_PREFERRED), 0);
    EXPECT_EQ(code(FI_HMEM_P2P_REQUIRED), -FI_EOPNOTSUPP);
    EXPECT_EQ(code(FI_HMEM_P2P_DISABLED), -FI_EOPNOTSUPP);
  });
}

}  // namespace
}  // namespace lintel::test::ofi
