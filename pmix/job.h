// The job of this process. Set-up path.
#pragma once

#include <portals4_runtime.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "job_map.h"
#include "launcher.h"
#include "util/lock.h"

namespace lintel {

class Job {
 public:
  // All return codes of portals4_runtime.h; any thread.
  int join();
  int leave();
  int info(ptl_job_info_t* info);
  int node_of(uint32_t rank, uint32_t* node);
  int publish(ptl_handle_ni_t ni);
  bool is_published(ptl_handle_ni_t ni);
  // The handle is no interface any more; another one may get it.
  void withdraw(ptl_handle_ni_t ni);
  int get_map(ptl_handle_ni_t ni, std::span<ptl_process_t> map);
  int set_map(ptl_handle_ni_t ni);
  int barrier();
  int put(const std::string& key, std::span<const std::byte> value);
  int get(uint32_t rank, const std::string& key, void* value, size_t* bytes);
  int secret(std::span<char> text);
  uint32_t size();
  // Ends the others. Waits for no lock: another thread may be in a barrier for good.
  void abort(int code, const char* text);

 private:
  int fail(const std::string& why, int code = PTL_FAIL) LINTEL_REQUIRES(mutex_);
  std::string settle_secret() LINTEL_REQUIRES(mutex_);
  std::string fence() LINTEL_REQUIRES(mutex_);
  // Calls `use` with the map of the job for a published interface.
  int with_map(ptl_handle_ni_t ni, const std::function<int(const ptl_process_t*)>& use)
      LINTEL_REQUIRES(mutex_);

  Mutex mutex_;
  Launcher* launcher_ = nullptr;
  JobPlace place_ LINTEL_GUARDED_BY(mutex_);
  unsigned references_ LINTEL_GUARDED_BY(mutex_) = 0;
  bool ended_ = false;
  JobMap map_ LINTEL_GUARDED_BY(mutex_);
  std::string secret_ LINTEL_GUARDED_BY(mutex_);  // secret of the job; empty if it has none
  std::vector<uint32_t> node_of_rank_ LINTEL_GUARDED_BY(mutex_);
};

[[nodiscard]] Job& job() noexcept;

// The text of PtlJobError in this thread.
[[nodiscard]] const char* job_error() noexcept;
// Keeps and logs it.
void set_job_error(const std::string& text);

}  // namespace lintel
