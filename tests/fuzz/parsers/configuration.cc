// The configuration: an arbitrary file of the administrator, and the environment.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/parsers/input.h"
#include "util/config.h"
#include "util/config_parse.h"
#include "util/log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  static const int file = [] {
    set_log_level(LogLevel::error);
    // Prevents reading the files of the user.
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    const int made = memfd_create("lintel.conf", MFD_CLOEXEC);
    config_use_system_file("/proc/self/fd/" + std::to_string(made));
    return made;
  }();
  fuzz::Input input(data, size);
  const ConfigVariable& variable = config_table()[input.byte() % config_table().size()];
  std::string value;
  for (const std::byte byte : input.bytes(input.byte()))
    if (byte != std::byte{0}) value += static_cast<char>(byte);
  setenv(variable.name, value.c_str(), 1);
  const std::vector<std::byte> text = input.bytes(input.left());
  FUZZ_CHECK(ftruncate(file, 0) == 0);
  FUZZ_CHECK(pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  config_reload();
  for (const ConfigVariable& each : config_table()) {
    static_cast<void>(config_display(each.key));
    if (each.type == ConfigType::list) static_cast<void>(config_list(each.key));
    if (each.type == ConfigType::cpu_list)
      for (const unsigned cpu : config_cpus(each.key)) FUZZ_CHECK(cpu < 4096);
    const bool number = each.type == ConfigType::u64;
    if (number) FUZZ_CHECK(config_u64(each.key) >= each.minimum);
    if (number) FUZZ_CHECK(config_u64(each.key) <= each.maximum);
  }
  static_cast<void>(parse_number(value, false, true));
  static_cast<void>(parse_number(value, true));
  static_cast<void>(edit_distance(value.substr(0, 64), variable.name));
  unsetenv(variable.name);
  return 0;
}
