// Set-up path.
#include "fuzz/descriptors.h"

namespace lintel::fuzz {

Descriptors::Descriptors(const Phase& phase) : phase_(phase) {
  const auto count = static_cast<uint32_t>(phase.program.shape.threads * descriptors_per_thread);
  first_ = static_cast<uint32_t>(phase.endpoint) * count;
  vectors_.resize(count);
  for (uint32_t i = 0; i < count; ++i) handles_.push_back(bind(first_ + i));
}

ptl_handle_md_t Descriptors::bind(uint32_t number) {
  const Descriptor& d = phase_.program.descriptors[number];
  const ptl_handle_ct_t count = counter_of(number);
  phase_.problems.expect_ok(PtlCTSet(count, {0, 0}), "PtlCTSet");
  ptl_md_t md{};
  md.start = phase_.memory.sends.data() + d.memory.pieces.front().start;
  md.length = d.memory.length();
  if ((d.options & PTL_IOVEC) != 0) {
    std::vector<ptl_iovec_t>& vectors = vectors_[number - first_];
    vectors = d.memory.vectors(phase_.memory.sends.data());
    md.start = vectors.data();
    md.length = vectors.size();
  }
  md.options = d.options;
  md.eq_handle = d.has_queue ? phase_.objects.thread_queue(d.thread).handle : PTL_EQ_NONE;
  md.ct_handle = d.has_counter ? count : PTL_CT_NONE;
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  phase_.problems.expect_ok(PtlMDBind(phase_.objects.handle(), &md, &handle), "PtlMDBind");
  return handle;
}

}  // namespace lintel::fuzz
