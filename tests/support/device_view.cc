#include "support/device_view.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "support/accelerator.h"

namespace lintel::test {

namespace {

struct View {
  std::byte* view;
  std::byte* device;
  std::size_t bytes;
};

std::vector<View>& views() {
  static std::vector<View>& all = *new std::vector<View>;
  return all;
}

// `start` in one of the two ranges, translated to the other. The end of a range belongs to it.
void* translate(void* start, std::byte* View::*from, std::byte* View::*to) {
  auto* const address = static_cast<std::byte*>(start);
  for (const View& view : views())
    if (address >= view.*from && address <= view.*from + view.bytes)
      return view.*to + (address - view.*from);
  return start;
}

}  // namespace

bool has_device_memory(Side side) {
  const char* const sides = std::getenv("LINTEL_TEST_DEVICE");
  if (sides == nullptr) return false;
  return sides == std::string("both") ||
         sides == std::string(side == Side::initiator ? "initiator" : "target");
}

std::span<std::byte> allocate_view(std::size_t bytes) {
  static Accelerator& accelerator = Accelerator::load("cuda");
  auto* const device = static_cast<std::byte*>(accelerator.allocate(bytes));
  std::byte* const view = accelerator.view(device);
  views().push_back({view, device, bytes});
  return {view, bytes};
}

void* behind_view(void* start) { return translate(start, &View::view, &View::device); }

void name_devices(const ptl_iovec_t* elements, ptl_size_t count) {
  if (views().empty()) return;
  for (ptl_size_t i = 0; i < count; ++i) {
    auto& element = const_cast<ptl_iovec_t&>(elements[i]);
    element.iov_base = behind_view(element.iov_base);
  }
}

void* view_of(void* start) { return translate(start, &View::device, &View::view); }

}  // namespace lintel::test
