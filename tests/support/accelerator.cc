// A device in tests. Set-up path.
#include "support/accelerator.h"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "common/accelerator.h"

namespace lintel::test {

namespace {

// The stand-ins lie beside the libraries of the build.
std::string stand_in(const std::string& name) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) throw std::runtime_error("/proc/self/exe cannot be read");
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/')) + "/../lib/fake_drivers/" + name;
}

bool loaded = false;

void* open_library(const std::string& kind) {
  loaded = true;
  const std::string name = tools::driver_library(kind);
  return tools::load_driver(Accelerator::is_fake() ? stand_in(name) : name);
}

}  // namespace

Accelerator::Accelerator(std::unique_ptr<tools::Accelerator> driver) : driver_(std::move(driver)) {}
Accelerator::~Accelerator() = default;

Accelerator& Accelerator::load(const std::string& kind, int device) {
  // Never destroyed: the driver may be used until the process ends.
  static auto& all = *new std::vector<std::unique_ptr<Accelerator>>;
  all.emplace_back(new Accelerator(tools::open_accelerator(kind, device, open_library(kind))));
  return *all.back();
}

void Accelerator::load_library(const std::string& kind) { open_library(kind); }

bool Accelerator::is_loaded() { return loaded; }

bool Accelerator::is_fake() {
  const char* const driver = std::getenv("LINTEL_TEST_DRIVER");
  return driver == nullptr || std::string(driver) != "real";
}

void* Accelerator::allocate(size_t bytes) { return driver_->allocate(bytes); }
void* Accelerator::allocate_managed(size_t bytes) { return driver_->allocate_managed(bytes); }
void Accelerator::release(void* base) { driver_->release(base); }
void Accelerator::copy(void* to, const void* from, size_t bytes) { driver_->copy(to, from, bytes); }

std::byte* Accelerator::view(const void* address) const {
  return static_cast<std::byte*>(
      reinterpret_cast<void* (*)(const void*)>(driver_->symbol("fake_device_view"))(address));
}

void Accelerator::set(const char* name, uint64_t value) {
  const auto set =
      reinterpret_cast<bool (*)(const char*, uint64_t)>(driver_->symbol("fake_device_set"));
  if (!set(name, value)) throw std::runtime_error(std::string("no setting is called ") + name);
}

uint64_t Accelerator::count(const char* name) const {
  return reinterpret_cast<uint64_t (*)(const char*)>(driver_->symbol("fake_device_count"))(name);
}

}  // namespace lintel::test
