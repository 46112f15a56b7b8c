// Time of a GASNet put of 8 bytes from memory of a device to that of another process. Prints
// nanoseconds.
//
//   gasnet_device_test cuda|hip
#include <gasnet_mk.h>
#include <gasnetex.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "gasnet_device_test: %s\n", what);
  gasnet_exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  gex_Client_t client;
  gex_EP_t primordial, endpoint;
  gex_TM_t team;
  require(gex_Client_Init(&client, &primordial, &team, "device", &argc, &argv, 0) == GASNET_OK,
          "gex_Client_Init");
  const bool is_hip = argc > 1 && std::string(argv[1]) == "hip";
  gex_MK_Create_args_t args{};
  args.gex_class = is_hip ? GEX_MK_CLASS_HIP : GEX_MK_CLASS_CUDA_UVA;
  gex_MK_t kind;
  gex_Segment_t segment;
  require(gex_MK_Create(&kind, client, &args, 0) == GASNET_OK, "gex_MK_Create");
  require(gex_Segment_Create(&segment, client, nullptr, 4096, kind, 0) == GASNET_OK,
          "gex_Segment_Create");
  require(gex_EP_Create(&endpoint, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK, "gex_EP_Create");
  require(gex_EP_BindSegment(endpoint, segment, 0) == GASNET_OK, "gex_EP_BindSegment");
  require(gex_EP_PublishBoundSegment(team, &endpoint, 1, 0) == GASNET_OK,
          "gex_EP_PublishBoundSegment");
  gex_Coll_BarrierBlocking(team, 0);
  if (gex_TM_QueryRank(team) == 0) {
    const gex_TM_t pair = gex_TM_Pair(endpoint, gex_EP_QueryIndex(endpoint));
    void* far = nullptr;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, 1, &far, nullptr, nullptr, 0));
    const int count = std::getenv("ON_GPU_QUICK") != nullptr ? 20 : 1000;
    std::vector<double> times;
    for (int run = 0; run < 10; ++run) {  // the first is not counted
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i)
        gex_RMA_PutBlocking(pair, 1, far, gex_Segment_QueryAddr(segment), 8, 0);
      const std::chrono::duration<double, std::nano> taken =
          std::chrono::steady_clock::now() - begin;
      if (run != 0) times.push_back(taken.count() / count);
    }
    std::sort(times.begin(), times.end());
    std::printf("%.1f\n", times[times.size() / 2]);
    std::fflush(stdout);
  }
  gex_Coll_BarrierBlocking(team, 0);
  gasnet_exit(0);
}
