/* device_probe.cc: segments in memory of devices.
 *   device_probe cuda|hip|ze
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_mk.h>
#include <gasnet_vis.h>
#include <gasnetex.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "checks.h"
#include "common/accelerator.h"
#include "memory_kind/ze_functions.h"

using lintel::tools::Accelerator;

namespace {

constexpr size_t kWords = 40000; /* of a segment */
constexpr size_t kBytes = kWords * 8;
constexpr gex_EP_Index_t kClients = 1;  /* endpoint of the segment of the client */
constexpr gex_EP_Index_t kLibrarys = 2; /* that of the library */

gex_EP_t endpoints[3];

gex_MK_Create_args_t arguments_for(const std::string& driver, void* library) {
  gex_MK_Create_args_t args{};
  args.gex_class = driver == "cuda"  ? GEX_MK_CLASS_CUDA_UVA
                   : driver == "hip" ? GEX_MK_CLASS_HIP
                                     : GEX_MK_CLASS_ZE;
  if (driver != "ze") return args;
  namespace ze = lintel::ze;
  const std::unique_ptr<Accelerator> driver_of = lintel::tools::open_accelerator("ze", 0, library);
  ze::Functions call{};
  call.get_drivers = reinterpret_cast<decltype(call.get_drivers)>(driver_of->symbol("zeDriverGet"));
  call.get_devices = reinterpret_cast<decltype(call.get_devices)>(driver_of->symbol("zeDeviceGet"));
  call.create_context =
      reinterpret_cast<decltype(call.create_context)>(driver_of->symbol("zeContextCreate"));
  uint32_t count = 1;
  ze::Driver first = nullptr;
  CHECK(call.get_drivers(&count, &first) == ze::success);
  count = 1;
  ze::Device device = nullptr;
  CHECK(call.get_devices(first, &count, &device) == ze::success);
  const ze::ContextDescription description;
  ze::Context context = nullptr;
  CHECK(call.create_context(first, &description, &context) == ze::success);
  args.gex_args.gex_class_ze.gex_zeDevice = device;
  args.gex_args.gex_class_ze.gex_zeContext = context;
  return args;
}

/* The words that a round of a rank writes. */
std::vector<uint64_t> words_of(gex_Rank_t rank, uint64_t round, size_t count) {
  std::vector<uint64_t> words(count);
  for (size_t i = 0; i < count; ++i) words[i] = uint64_t{rank} << 48 | round << 32 | i;
  return words;
}

void refuse_wrong_kinds(Accelerator& accelerator, const gex_MK_Create_args_t& good, gex_MK_t kind) {
  gex_System_SetVerboseErrors(0);
  gex_MK_t other = GEX_MK_INVALID;
  gex_MK_Create_args_t args = good;
  args.gex_flags = 1;
  CHECK(gex_MK_Create(&other, client, &args, 0) == GASNET_ERR_BAD_ARG);
  args = good;
  CHECK(gex_MK_Create(&other, client, &args, 1) == GASNET_ERR_BAD_ARG);
  if (good.gex_class == GEX_MK_CLASS_CUDA_UVA) {
    args.gex_args.gex_class_cuda_uva.gex_CUdevice = 1;
    CHECK(gex_MK_Create(&other, client, &args, 0) == GASNET_ERR_BAD_ARG);
    args.gex_args.gex_class_cuda_uva.gex_CUdevice = -1;
    CHECK(gex_MK_Create(&other, client, &args, 0) == GASNET_ERR_BAD_ARG);
  }
  gex_Segment_t segment_of_device = GEX_SEGMENT_INVALID;
  CHECK(gex_Segment_Create(&segment_of_device, client, nullptr, uintptr_t{1} << 50, kind, 0) ==
        GASNET_ERR_RESOURCE);
  CHECK(gex_Segment_Create(&segment_of_device, client, nullptr, 64, GEX_MK_INVALID, 0) ==
        GASNET_ERR_BAD_ARG);
  /* Memory of the host or of nobody, and more than the allocation. */
  std::vector<std::byte> host(4096);
  CHECK(gex_Segment_Create(&segment_of_device, client, host.data(), host.size(), kind, 0) ==
        GASNET_ERR_BAD_ARG);
  void* const memory = accelerator.allocate(4096);
  CHECK(gex_Segment_Create(&segment_of_device, client, memory, uintptr_t{1} << 40, kind, 0) ==
        GASNET_ERR_BAD_ARG);
  CHECK(gex_Segment_Create(&segment_of_device, client, memory, 4096, GEX_MK_HOST, 0) ==
        GASNET_ERR_BAD_ARG);
  accelerator.release(memory);
  CHECK(gex_Segment_Create(&segment_of_device, client, memory, 4096, kind, 0) ==
        GASNET_ERR_BAD_ARG);
  /* Active messages need memory of the host. */
  CHECK(gex_Segment_Create(&segment_of_device, client, nullptr, 4096, kind, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(endpoints[0], segment_of_device, 0) == GASNET_ERR_BAD_ARG);
  gex_Segment_Destroy(segment_of_device, 0);
  gex_System_SetVerboseErrors(1);
}

void* owner_of(gex_EP_Index_t index, gex_Rank_t rank) {
  void *owner = nullptr, *local = &owner;
  uintptr_t bytes = 0;
  gex_Event_Wait(
      gex_EP_QueryBoundSegmentNB(gex_TM_Pair(endpoint, index), rank, &owner, &local, &bytes, 0));
  CHECK(owner != nullptr && local == nullptr && bytes == kBytes);
  return owner;
}

/* All forms of puts and gets, from this endpoint's memory at `near` to a part of a remote segment
 * and back to `back`. `write` and `read` reach memory near. */
template <typename Write, typename Read>
void use(gex_EP_t from, gex_EP_Index_t index, std::byte* near, std::byte* back, const Write& write,
         const Read& read) {
  const gex_TM_t pair = gex_TM_Pair(from, index);
  const size_t part = kWords / std::max<size_t>(size, 2);
  uint64_t round = index * 100;
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    std::byte* const far = static_cast<std::byte*>(owner_of(index, peer)) + me * part * 8;
    for (const size_t words : {size_t{1}, size_t{8}, size_t{100}, size_t{1000}, part}) {
      const size_t bytes = words * 8;
      for (int form = 0; form < 4; ++form) {
        const std::vector<uint64_t> sent = words_of(me, ++round, words);
        write(near, sent);
        gex_Event_t leaf = GEX_EVENT_INVALID;
        if (form == 0) CHECK(gex_RMA_PutBlocking(pair, peer, far, near, bytes, 0) == 0);
        if (form == 1)
          gex_Event_Wait(gex_RMA_PutNB(pair, peer, far, near, bytes, GEX_EVENT_NOW, 0));
        if (form == 2) {
          const gex_Event_t event = gex_RMA_PutNB(pair, peer, far, near, bytes, &leaf, 0);
          gex_Event_Wait(leaf);
          gex_Event_Wait(event);
        }
        if (form == 3) {
          CHECK(gex_RMA_PutNBI(pair, peer, far, near, bytes, GEX_EVENT_DEFER, 0) == 0);
          gex_NBI_Wait(GEX_EC_PUT, 0);
        }
        if (form == 0) CHECK(gex_RMA_GetBlocking(pair, back, peer, far, bytes, 0) == 0);
        if (form == 1) gex_Event_Wait(gex_RMA_GetNB(pair, back, peer, far, bytes, 0));
        if (form >= 2) {
          CHECK(gex_RMA_GetNBI(pair, back, peer, far, bytes, 0) == 0);
          gex_NBI_Wait(GEX_EC_GET, 0);
        }
        CHECK(read(back, words) == sent);
      }
    }
    CHECK(gex_RMA_PutBlockingVal(pair, peer, far, 0x1122334455667788u, 8, 0) == 0);
    CHECK(gex_RMA_GetBlockingVal(pair, peer, far, 8, 0) == 0x1122334455667788u);
  }
  barrier();
}

void transfer(Accelerator& accelerator, gex_Segment_t of_client, gex_Segment_t of_library) {
  const auto write_host = [](std::byte* to, const std::vector<uint64_t>& words) {
    std::memcpy(to, words.data(), words.size() * 8);
  };
  const auto read_host = [](const std::byte* from, size_t count) {
    std::vector<uint64_t> words(count);
    std::memcpy(words.data(), from, count * 8);
    return words;
  };
  const auto write_device = [&](std::byte* to, const std::vector<uint64_t>& words) {
    accelerator.copy(to, words.data(), words.size() * 8);
  };
  const auto read_device = [&](const std::byte* from, size_t count) {
    std::vector<uint64_t> words(count);
    accelerator.copy(words.data(), from, count * 8);
    return words;
  };
  std::vector<std::byte> near(kBytes), back(kBytes);
  use(endpoints[0], kClients, near.data(), back.data(), write_host, read_host);
  use(endpoints[0], kLibrarys, near.data(), back.data(), write_host, read_host);
  /* From memory of a device to that of others, and to the memory of hosts. The parts that peers
   * write are those of `use`, so the others are in another segment. */
  auto* const library = static_cast<std::byte*>(gex_Segment_QueryAddr(of_library));
  use(endpoints[kLibrarys], kClients, library, library + kBytes / 2, write_device, read_device);
  auto* const clients = static_cast<std::byte*>(gex_Segment_QueryAddr(of_client));
  use(endpoints[kClients], kLibrarys, clients, clients + kBytes / 2, write_device, read_device);
}

void run(const std::string& driver) {
  void* const library = lintel::tools::load_driver(lintel::tools::driver_library(driver));
  const std::unique_ptr<Accelerator> accelerator =
      lintel::tools::open_accelerator(driver, 0, library);
  endpoints[0] = endpoint;
  for (int i = 1; i < 3; ++i)
    CHECK(gex_EP_Create(&endpoints[i], client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  const gex_MK_Create_args_t args = arguments_for(driver, library);
  gex_MK_t kind = GEX_MK_INVALID;
  CHECK(gex_MK_Create(&kind, client, &args, 0) == GASNET_OK);
  CHECK(kind != GEX_MK_INVALID && kind != GEX_MK_HOST);
  refuse_wrong_kinds(*accelerator, args, kind);
  void* const memory = accelerator->allocate(kBytes);
  gex_Segment_t of_client = GEX_SEGMENT_INVALID, of_library = GEX_SEGMENT_INVALID;
  CHECK(gex_Segment_Create(&of_client, client, memory, kBytes, kind, 0) == GASNET_OK);
  CHECK(gex_Segment_QueryAddr(of_client) == memory);
  CHECK(gex_Segment_Create(&of_library, client, nullptr, kBytes, kind, 0) == GASNET_OK);
  CHECK(gex_Segment_QueryAddr(of_library) != nullptr);
  CHECK(gex_Segment_QuerySize(of_library) == kBytes);
  CHECK(gex_EP_BindSegment(endpoints[kClients], of_client, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(endpoints[kLibrarys], of_library, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(team, &endpoints[1], 2, 0) == GASNET_OK);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    owner_of(kClients, peer);
    owner_of(kLibrarys, peer);
  }
  CHECK(owner_of(kClients, me) == memory);
  gex_MK_Destroy(kind, 0); /* the segments stay */
  barrier();
  transfer(*accelerator, of_client, of_library);
  barrier();
  gex_Segment_Destroy(of_client, 0);
  gex_Segment_Destroy(of_library, 0);
  accelerator->release(memory);
  CHECK(gex_EP_QuerySegment(endpoints[kClients]) == GEX_SEGMENT_INVALID);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  start_client("device_probe", &argc, &argv, nullptr, 0, 0);
  CHECK(segment == GEX_SEGMENT_INVALID); /* the primordial endpoint has none */
  run(argc > 1 ? argv[1] : "cuda");
  if (me == 0) std::printf("segments of devices are good\n");
  barrier();
  gasnet_exit(0);
}
