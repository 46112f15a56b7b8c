// The kinds of this process. Set-up path, but for kind_of().
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <span>
#include <string_view>

#include "memory_kind/driver_library.h"
#include "memory_kind/driver_memory.h"
#include "memory_kind/drivers.h"
#include "util/assert.h"
#include "util/config.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/never_destroyed.h"

namespace lintel {

namespace memory_kind_detail {
std::atomic<bool> in_use{false};
}

namespace {

struct KnownDriver {
  const char* name;
  std::span<const char* const> libraries;
  std::unique_ptr<DeviceDriver> (*make)(DriverLibrary& library);
};

constexpr const char* cuda_libraries[] = {"libcuda.so.1"};
constexpr const char* hip_libraries[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                         "libamdhip64.so.5"};
constexpr const char* ze_libraries[] = {"libze_loader.so.1"};

// In the order in which they are asked whose memory an address is.
constexpr KnownDriver known_drivers[] = {
    {"cuda", cuda_libraries, make_cuda_driver},
    {"hip", hip_libraries, make_hip_driver},
    {"ze", ze_libraries, make_ze_driver},
};
constexpr size_t driver_count = std::size(known_drivers);

constexpr const char* usable_words = "auto, off, or some of cuda, hip, ze";

class Registry {
 public:
  // Takes drivers into use. `to_load`: the one to load, if it is permitted.
  static constexpr std::string_view none{};
  static constexpr std::string_view all = "all";
  void look(std::string_view to_load);
  void use(MemoryKind& kind);
  void forget(MemoryKind& kind);
  [[nodiscard]] std::vector<DriverReport> reports();

  // Kinds in use. Entries are written before the count, and stay.
  std::array<MemoryKind*, driver_count + 1> kinds{};
  std::atomic<size_t> count{0};
  // Libraries that the process had loaded when drivers were last looked for.
  std::atomic<unsigned long long> libraries_seen{0};

 private:
  struct Row {
    std::unique_ptr<DriverMemory> memory;
    std::string text;
    bool said = false;
  };

  [[nodiscard]] std::vector<std::string> wanted();
  void try_driver(const KnownDriver& driver, Row& row, bool is_named, bool may_load)
      LINTEL_REQUIRES(lock_);
  void add(MemoryKind& kind) LINTEL_REQUIRES(lock_);

  Mutex lock_;
  std::array<Row, driver_count> rows_ LINTEL_GUARDED_BY(lock_);
};

Registry& registry() {
  static NeverDestroyed<Registry> registry;
  return registry.get();
}

// Number of libraries that the process has loaded so far; those that were unloaded count.
unsigned long long loaded_libraries() {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* adds) {
        *static_cast<unsigned long long*>(adds) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

bool is_known_word(const std::string& word) {
  return word == "auto" || word == "off" ||
         std::any_of(std::begin(known_drivers), std::end(known_drivers),
                     [&](const KnownDriver& driver) { return word == driver.name; });
}

std::vector<std::string> Registry::wanted() {
  std::vector<std::string> words = config_list(ConfigKey::device_memory);
  const bool is_alone = words.size() == 1;
  for (const std::string& word : words)
    if (!is_known_word(word) || ((word == "auto" || word == "off") && !is_alone)) {
      config_refuse(ConfigKey::device_memory, usable_words);
      return config_list(ConfigKey::device_memory);
    }
  return words;
}

void Registry::try_driver(const KnownDriver& driver, Row& row, bool is_named, bool may_load) {
  if (row.memory != nullptr) return;
  DriverLibrary library(driver.libraries, may_load);
  std::unique_ptr<DeviceDriver> made;
  if (library.is_open()) made = driver.make(library);
  if (made == nullptr) {
    row.text = library.reason();
    // Absent by choice, unless it was asked for or is too old.
    const bool is_fault = is_named || library.is_open();
    if (is_fault && !row.said)
      log_message(LogLevel::warn, "memory of accelerators is not accessed: %s: %s", driver.name,
                  row.text.c_str());
    row.said |= is_fault;
    return;
  }
  row.memory = std::make_unique<DriverMemory>(std::move(made));
  row.text = library.path();
  log_message(LogLevel::info, "memory of %s devices is accessed through %s", driver.name,
              row.text.c_str());
  add(*row.memory);
}

void Registry::add(MemoryKind& kind) {
  const size_t index = count.load(std::memory_order_relaxed);
  if (index == kinds.size()) return;
  kinds[index] = &kind;
  count.store(index + 1, std::memory_order_release);
  memory_kind_detail::in_use.store(true, std::memory_order_relaxed);
}

void Registry::use(MemoryKind& kind) {
  LockGuard guard(lock_);
  add(kind);
}

void Registry::forget(MemoryKind& kind) {
  LockGuard guard(lock_);
  const size_t left = count.load(std::memory_order_relaxed) - 1;
  LINTEL_ASSERT(left < kinds.size() && kinds[left] == &kind);
  count.store(left, std::memory_order_release);
  memory_kind_detail::in_use.store(left != 0, std::memory_order_relaxed);
}

void Registry::look(std::string_view to_load) {
  const unsigned long long libraries = loaded_libraries();
  if (to_load == none && libraries == libraries_seen.load(std::memory_order_acquire)) return;
  LockGuard guard(lock_);
  const std::vector<std::string> words = wanted();
  const bool any = words.empty() || words.front() == "auto";
  for (size_t i = 0; i < driver_count; ++i) {
    const KnownDriver& driver = known_drivers[i];
    const bool named = std::find(words.begin(), words.end(), driver.name) != words.end();
    if (any || named)
      try_driver(driver, rows_[i], named,
                 named || to_load == all || to_load == std::string_view(driver.name));
    else
      rows_[i].text = "PTL_DEVICE_MEMORY=" + config_display(ConfigKey::device_memory);
  }
  // Libraries that were loaded here need no other look.
  libraries_seen.store(loaded_libraries(), std::memory_order_release);
}

std::vector<DriverReport> Registry::reports() {
  LockGuard guard(lock_);
  std::vector<DriverReport> reports;
  for (size_t i = 0; i < driver_count; ++i)
    reports.push_back({known_drivers[i].name, rows_[i].memory.get(), rows_[i].text});
  return reports;
}

}  // namespace

void look_for_drivers() noexcept {
  try {
    registry().look(Registry::none);
  } catch (const std::exception& error) {  // out of memory
    log_message(LogLevel::warn, "memory of accelerators is not accessed: %s", error.what());
  }
}

MemoryKind* find_driver(const char* name) noexcept {
  try {
    registry().look(name);
    for (const DriverReport& report : registry().reports())
      if (report.name == name) return report.kind;
  } catch (const std::exception& error) {
    log_message(LogLevel::warn, "memory of accelerators is not accessed: %s", error.what());
  }
  return nullptr;
}

MemoryKind* kind_of(const void* address, DeviceAllocation* out) noexcept {
  Registry& all = registry();
  const size_t count = all.count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (all.kinds[i]->describe(address, out)) return all.kinds[i];
  return nullptr;
}

MemoryKind* kind_numbered(uint8_t number) noexcept {
  Registry& all = registry();
  const size_t count = all.count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (all.kinds[i]->number() == number) return all.kinds[i];
  return nullptr;
}

void forget_allocations_of(uint32_t process) noexcept {
  Registry& all = registry();
  const size_t count = all.count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) all.kinds[i]->forget_exported(process, nullptr);
}

void use_kind(MemoryKind& kind) noexcept { registry().use(kind); }

void forget_kind(MemoryKind& kind) noexcept { registry().forget(kind); }

std::vector<DriverReport> driver_reports() { return registry().reports(); }

std::vector<DriverReport> load_drivers() {
  registry().look(Registry::all);
  return registry().reports();
}

}  // namespace lintel
