// Joining and leaving the job, its secret, its maps, barrier, stored values. Set-up path.
#include "job.h"

#include <portals4_lintel.h>
#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <forward_list>
#include <unordered_map>
#include <utility>

#include "choose_launcher.h"
#include "groups.h"
#include "job_values.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/peer_order.h"

namespace lintel {

namespace {

constexpr const char* secret_key = "lintel.secret";
constexpr size_t random_bytes = 32;

thread_local std::string last_error;
std::atomic<Launcher*> launcher_to_abort{nullptr};
std::atomic<bool> joined{false};
bool is_child_of_member = false;

Job*& instance() noexcept {
  static Job* job = new Job;  // threads may still be here while static objects go
  return job;
}

// The child has neither threads nor connections of its parent, and locks may be held for good:
// the parent's objects stay as they are.
void start_afresh_in_child() {
  is_child_of_member = is_child_of_member || joined.exchange(false);
  launcher_to_abort.store(nullptr);
  static std::forward_list<Job*>& of_parents = *new std::forward_list<Job*>;
  of_parents.push_front(std::exchange(instance(), new Job));
  forget_groups();
}

[[maybe_unused]] const int fork_handler_installed =
    pthread_atfork(nullptr, nullptr, start_afresh_in_child);

bool is_set(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0';
}

std::string make_secret(std::string& secret) {
  unsigned char bytes[random_bytes];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return std::string("getrandom: ") + std::strerror(errno);
  constexpr char digits[] = "0123456789abcdef";
  secret.clear();
  for (const unsigned char byte : bytes) {
    secret += digits[byte >> 4];
    secret += digits[byte & 15];
  }
  return "";
}

}  // namespace

Job& job() noexcept { return *instance(); }

const char* job_error() noexcept { return last_error.c_str(); }

void set_job_error(const std::string& text) {
  last_error = text;
  log_message(LogLevel::error, "%s", text.c_str());
}

int Job::fail(const std::string& why, int code) {
  const std::string who = place_.size > 1 ? "rank " + std::to_string(place_.rank) + ": " : "";
  set_job_error(who + why);
  return code;
}

// The user's secret, if there is one; else rank 0 makes one, if the launcher can pass it on in
// secret. All processes take part, so that one whose environment differs notices.
std::string Job::settle_secret() {
  if (!launcher_->keeps_secrets()) return "";
  const bool has_own = is_set("PTL_JOB_KEY") || is_set("PTL_JOB_KEY_FILE");
  std::string secret;
  if (place_.rank == 0) {
    if (!has_own)
      if (std::string why = make_secret(secret); !why.empty()) return why;
    if (place_.size > 1)
      if (std::string why = launcher_->put(secret_key, std::as_bytes(std::span(secret)));
          !why.empty())
        return why;
  }
  // Servers do not reliably wait for a value that is still to come.
  if (place_.size > 1)
    if (std::string why = launcher_->fence(); !why.empty()) return why;
  if (has_own) return "";
  if (place_.rank != 0) {
    std::vector<std::byte> bytes;
    if (std::string why = launcher_->get(0, secret_key, bytes); !why.empty()) return why;
    if (bytes.empty())
      return "rank 0 has PTL_JOB_KEY or PTL_JOB_KEY_FILE set, this process has neither: set them for "
             "all (mpirun -x PTL_JOB_KEY, srun --export=ALL)";
    secret.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (secret.size() != 2 * random_bytes)
      return "rank 0 made one of " + std::to_string(secret.size()) +
             " bytes: it runs another version of Lintel";
  }
  secret_ = std::move(secret);
  return "";
}

int Job::join() {
  const LockGuard guard(mutex_);
  if (references_ > 0) {
    ++references_;
    return PTL_OK;
  }
  if (is_child_of_member)
    return fail("a forked child has no place in the job of its parent; start it with the launcher");
  if (ended_)
    return fail("PtlJobInit after the last PtlJobFini: a process can join a job only once");
  if (Groups::install_hooks() != PTL_OK)
    return fail("another run-time library has set the hooks of PtlNIInit");
  std::string why;
  launcher_ = choose_launcher(why);
  if (launcher_ == nullptr) return fail(why);
  why = launcher_->start(place_);
  if (why.empty()) why = settle_place(place_);
  if (!why.empty()) return fail(why);
  why = settle_secret();
  if (!why.empty()) why = "no job secret: " + why;
  int code = PtlLintelSetLocalRank(place_.local_rank);
  if (why.empty() && !secret_.empty()) {
    code = PtlLintelSetJobKey(secret_.c_str());
    if (code != PTL_OK) why = "PtlJobInit must come before the first PtlNIInit";
  }
  if (!why.empty()) {
    launcher_->finish();
    return fail(why, code != PTL_OK ? code : PTL_FAIL);
  }
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr)
    groups().prefer_pid((*known)[place_.rank].phys.pid);
  map_.open(*launcher_, place_);
  joined = true;
  launcher_to_abort = launcher_;
  references_ = 1;
  return PTL_OK;
}

int Job::leave() {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (--references_ > 0) return PTL_OK;
  launcher_to_abort = nullptr;
  launcher_->finish();
  groups().prefer_pid(PTL_PID_ANY);
  joined = false;
  ended_ = true;
  map_.clear();
  return PTL_OK;
}

int Job::info(ptl_job_info_t* info) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (info == nullptr) return PTL_ARG_INVALID;
  info->rank = place_.rank;
  info->size = place_.size;
  info->local_rank = place_.local_rank;
  info->local_size = place_.local_size;
  info->node_count = place_.node_count;
  info->launcher = launcher_->name();
  info->name = place_.name.c_str();
  return PTL_OK;
}

int Job::node_of(uint32_t rank, uint32_t* node) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (node == nullptr || rank >= place_.size) return PTL_ARG_INVALID;
  if (node_of_rank_.empty()) {
    std::vector<uint64_t> raw(place_.size);
    if (std::string why = launcher_->nodes(raw); !why.empty()) return fail(why);
    // Launchers count nodes from 0, from 1, or not at all.
    std::unordered_map<uint64_t, uint32_t> numbers;
    std::vector<uint32_t> dense(place_.size);
    for (uint32_t i = 0; i < place_.size; ++i)
      dense[i] = numbers.try_emplace(raw[i], static_cast<uint32_t>(numbers.size())).first->second;
    node_of_rank_ = std::move(dense);
  }
  *node = node_of_rank_[rank];
  return PTL_OK;
}

std::string Job::fence() {
  note_sending();
  std::string why = launcher_->fence();
  note_received();
  if (why.empty()) map_.note_fence();
  return why;
}

int Job::barrier() {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  const std::string why = fence();
  return why.empty() ? PTL_OK : fail("barrier: " + why);
}

int Job::publish(ptl_handle_ni_t ni) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  ptl_process_t own;
  if (const int code = PtlGetPhysId(ni, &own); code != PTL_OK) return code;
  if (map_.contains(ni)) return PTL_ARG_INVALID;
  const std::string why = map_.publish(ni, own);
  return why.empty() ? PTL_OK : fail(why);
}

bool Job::is_published(ptl_handle_ni_t ni) {
  const LockGuard guard(mutex_);
  return map_.contains(ni);
}

void Job::withdraw(ptl_handle_ni_t ni) {
  const LockGuard guard(mutex_);
  map_.withdraw(ni);
}

int Job::with_map(ptl_handle_ni_t ni, const std::function<int(const ptl_process_t*)>& use) {
  if (!map_.contains(ni)) return PTL_ARG_INVALID;
  int code = PTL_OK;
  std::string why = map_.is_exchanged(ni) ? "" : fence();
  if (why.empty()) why = map_.find(ni, [&](const ptl_process_t* map) { code = use(map); });
  return why.empty() ? code : fail("the map of the job: " + why);
}

int Job::get_map(ptl_handle_ni_t ni, std::span<ptl_process_t> map) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (map.size() != place_.size) return PTL_ARG_INVALID;
  return with_map(ni, [&](const ptl_process_t* found) {
    std::copy_n(found, map.size(), map.begin());
    return PTL_OK;
  });
}

int Job::set_map(ptl_handle_ni_t ni) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  ptl_size_t size = 0;
  if (const int code = PtlGetMap(ni, 0, nullptr, &size); code != PTL_OK && code != PTL_IGNORED)
    return code;                              // the interface has physical addresses
  if (groups().is_of_job(ni)) return PTL_OK;  // the interface has this map already
  return with_map(ni, [&](const ptl_process_t* map) LINTEL_REQUIRES(mutex_) {
    if (!groups().adopt_job(ni, place_.rank, place_.size))
      return fail("PtlJobSetMap: the interface has a group that PtlSetRank set");
    return PtlSetMap(ni, place_.size, map);
  });
}

int Job::put(const std::string& key, std::span<const std::byte> value) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  const std::string why = launcher_->put("user." + key, value);
  return why.empty() ? PTL_OK : fail(why);
}

int Job::get(uint32_t rank, const std::string& key, void* value, size_t* bytes) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (rank >= place_.size) return PTL_ARG_INVALID;
  std::vector<std::byte> found;
  if (std::string why = launcher_->get(rank, "user." + key, found); !why.empty()) return fail(why);
  const size_t room = *bytes;
  *bytes = found.size();
  if (found.size() > room) return PTL_NO_SPACE;
  if (!found.empty()) std::memcpy(value, found.data(), found.size());
  return PTL_OK;
}

int Job::secret(std::span<char> text) {
  const LockGuard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  std::string key = secret_;
  if (key.empty()) {
    // Set by the user; the library has read the variable or the file.
    size_t length = 0;
    int code = PtlLintelGetJobKey(nullptr, 0, &length);
    if (code == PTL_OK && length > 0) {
      key.resize(length + 1);
      code = PtlLintelGetJobKey(key.data(), key.size(), &length);
      key.resize(length);
    }
    if (code != PTL_OK) return code;
  }
  if (key.empty()) return PTL_IGNORED;
  if (key.size() >= text.size()) return PTL_NO_SPACE;
  std::memcpy(text.data(), key.c_str(), key.size() + 1);
  return PTL_OK;
}

uint32_t Job::size() {
  const LockGuard guard(mutex_);
  return references_ == 0 ? 0 : place_.size;
}

void Job::abort(int code, const char* text) {
  if (Launcher* const launcher = launcher_to_abort.load(); launcher != nullptr)
    launcher->abort(code, text);
}

}  // namespace lintel
