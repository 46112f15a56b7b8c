// The PMIx client: a module, loaded only into processes that a PMIx launcher started, so that
// other machines need no libpmix. Set-up path.
#include <pmix.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "launcher.h"
#include "module_version.h"
#include "util/module.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr int wait_s = 60;  // time of waiting for a value that another process has not stored yet
constexpr auto retry_pause = std::chrono::milliseconds(5);

std::string failure(const std::string& what, pmix_status_t status) {
  return what + ": " + PMIx_Error_string(status);
}

std::optional<uint64_t> as_number(const pmix_value_t& value) noexcept {
  switch (value.type) {
    case PMIX_UINT16:
      return value.data.uint16;
    case PMIX_UINT32:
      return value.data.uint32;
    case PMIX_UINT64:
      return value.data.uint64;
    case PMIX_SIZE:
      return value.data.size;
    case PMIX_INT:
      return static_cast<uint64_t>(value.data.integer);
    case PMIX_INT32:
      return static_cast<uint64_t>(value.data.int32);
    case PMIX_PROC_RANK:
      return value.data.rank;
    default:
      return std::nullopt;
  }
}

class PmixLauncher final : public Launcher {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pmix"; }

  std::string start(JobPlace& place) override {
    const pmix_status_t status = [this] {
      const StandardDescriptorsTaken taken;
      return PMIx_Init(&self_, nullptr, 0);
    }();
    if (status != PMIX_SUCCESS) {
      const char* const job = std::getenv("PMIX_NAMESPACE");
      return failure("PMIx_Init", status) +
             ": the environment says that a launcher started this process (PMIX_NAMESPACE=" +
             (job != nullptr ? job : "") +
             "), but its PMIx server does not answer. Start the program again with the launcher, "
             "or unset the PMIX_ variables to run it alone";
    }
    started_ = true;
    place.name = self_.nspace;
    place.rank = self_.rank;
    pmix_proc_t job = self_;
    job.rank = PMIX_RANK_WILDCARD;
    uint64_t size = 0;
    // PMIX_UNIV_SIZE is not used, because it counts slots.
    std::string why = number(job, PMIX_JOB_SIZE, size);
    if (!why.empty()) return why;
    place.size = static_cast<uint32_t>(size);
    uint64_t local = 0;
    if (number(self_, PMIX_LOCAL_RANK, local).empty())
      place.local_rank = static_cast<uint32_t>(local);
    if (number(job, PMIX_LOCAL_SIZE, local).empty())
      place.local_size = static_cast<uint32_t>(local);
    if (number(job, PMIX_NUM_NODES, local).empty()) place.node_count = static_cast<uint32_t>(local);
    place.local_leader = leader_of(job, place.rank);
    return "";
  }

  void finish() override {
    if (started_) PMIx_Finalize(nullptr, 0);
    started_ = false;
  }

  [[nodiscard]] bool keeps_secrets() const noexcept override { return true; }

  std::string put(const std::string& key, std::span<const std::byte> bytes) override {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    value.data.bo.size = bytes.size();
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);  // copies the bytes
    if (status != PMIX_SUCCESS) return failure("PMIx_Put of " + key, status);
    status = PMIx_Commit();
    return status == PMIX_SUCCESS ? "" : failure("PMIx_Commit", status);
  }

  std::string get(uint32_t rank, const std::string& key, std::vector<std::byte>& bytes) override {
    pmix_proc_t process = self_;
    process.rank = rank;
    pmix_info_t wishes[2];
    int seconds = wait_s;
    bool yes = true;
    PMIX_INFO_LOAD(&wishes[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_INFO_LOAD(&wishes[1], PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(wait_s);
    pmix_value_t* value = nullptr;
    pmix_status_t status = PMIx_Get(&process, key.c_str(), wishes, 1, &value);
    // Servers wait for a process that has stored nothing yet, but not for one that stored something
    // else.
    while (status == PMIX_ERR_NOT_FOUND && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(retry_pause);
      status = PMIx_Get(&process, key.c_str(), wishes, 2, &value);
    }
    PMIX_INFO_DESTRUCT(&wishes[0]);
    PMIX_INFO_DESTRUCT(&wishes[1]);
    const std::string what = "PMIx_Get of " + key + " of rank " + std::to_string(rank);
    if (status != PMIX_SUCCESS) return failure(what, status);
    std::string why;
    if (value->type == PMIX_BYTE_OBJECT) {
      const auto* first = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
      bytes.assign(first, first + value->data.bo.size);
    } else {
      why = what + ": not a value of this library";
    }
    PMIX_VALUE_RELEASE(value);
    return why;
  }

  std::string fence() override {
    // Under some launchers the call is a barrier across nodes only if data are collected.
    pmix_info_t collect;
    PMIX_INFO_CONSTRUCT(&collect);
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    const pmix_status_t status = PMIx_Fence(nullptr, 0, &collect, 1);
    PMIX_INFO_DESTRUCT(&collect);
    return status == PMIX_SUCCESS ? "" : failure("PMIx_Fence", status);
  }

  // Distinguishes nodes by PMIX_NODEID; by host names if that is not known of processes on other
  // nodes.
  std::string nodes(std::vector<uint64_t>& node_of_rank) override {
    pmix_proc_t process = self_;
    std::string why;
    for (size_t rank = 0; rank < node_of_rank.size() && why.empty(); ++rank) {
      process.rank = static_cast<pmix_rank_t>(rank);
      why = number(process, PMIX_NODEID, node_of_rank[rank]);
    }
    if (why.empty()) return "";
    std::unordered_map<std::string, uint64_t> numbers;
    for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
      process.rank = static_cast<pmix_rank_t>(rank);
      pmix_value_t* value = nullptr;
      if (const pmix_status_t status = get_local(process, PMIX_HOSTNAME, &value);
          status != PMIX_SUCCESS)
        return failure("PMIx_Get of the host of rank " + std::to_string(rank), status);
      const std::string host = value->type == PMIX_STRING ? value->data.string : "";
      PMIX_VALUE_RELEASE(value);
      node_of_rank[rank] = numbers.try_emplace(host, numbers.size()).first->second;
    }
    return "";
  }

  void abort(int code, const char* text) override {
    if (started_) PMIx_Abort(code, text, nullptr, 0);
  }

 private:
  // The first of the list of ranks on this node; `own` if there is no list.
  static uint32_t leader_of(const pmix_proc_t& job, uint32_t own) {
    pmix_value_t* value = nullptr;
    if (get_local(job, PMIX_LOCAL_PEERS, &value) != PMIX_SUCCESS) return own;
    uint32_t leader = own;
    if (value->type == PMIX_STRING) {
      const char* const list = value->data.string;
      std::from_chars(list, list + std::strlen(list), leader);
    }
    PMIX_VALUE_RELEASE(value);
    return leader;
  }

  // Gets a value that the launcher passed to this node at the start; no message is needed.
  static pmix_status_t get_local(const pmix_proc_t& of, const char* key, pmix_value_t** value) {
    pmix_info_t optional;
    bool yes = true;
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    const pmix_status_t status = PMIx_Get(&of, key, &optional, 1, value);
    PMIX_INFO_DESTRUCT(&optional);
    return status;
  }

  std::string number(const pmix_proc_t& of, const char* key, uint64_t& result) {
    pmix_value_t* value = nullptr;
    const pmix_status_t status = get_local(of, key, &value);
    if (status != PMIX_SUCCESS) return failure(std::string("PMIx_Get of ") + key, status);
    const std::optional<uint64_t> read = as_number(*value);
    PMIX_VALUE_RELEASE(value);
    if (!read) return std::string("PMIx_Get of ") + key + ": not a number";
    result = *read;
    return "";
  }

  pmix_proc_t self_{};
  bool started_ = false;
};

Launcher* launcher() {
  static PmixLauncher& instance = *new PmixLauncher;
  return &instance;
}

constexpr LauncherModule offer{launcher};

}  // namespace

}  // namespace lintel

const lintel::Module lintel_module{LINTEL_MODULE_VERSION, &lintel::offer};
