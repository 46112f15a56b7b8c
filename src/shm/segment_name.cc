// Names of segments. Set-up and connection path.
#include "shm/segment_name.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace lintel {

uint32_t job_hash_of(std::string_view job_key) noexcept {
  if (job_key.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : job_key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const uint32_t folded = static_cast<uint32_t>(hash ^ hash >> 32);
  return folded == 0 ? 1 : folded;
}

namespace {
std::string& directory() noexcept {
  static std::string& name = *new std::string("/dev/shm");  // used until the last exit handler
  return name;
}
}  // namespace

const std::string& segment_directory() noexcept { return directory(); }

void set_segment_directory(std::string name) { directory() = std::move(name); }

std::string segment_name_prefix() { return "lintel." + std::to_string(geteuid()) + "."; }

std::string segment_path(uint32_t job_hash, ProcessId process) {
  char rest[64];
  std::snprintf(rest, sizeof rest, "%08x.%08x.%u", job_hash, process.nid, process.pid);
  return segment_directory() + "/" + segment_name_prefix() + rest;
}

}  // namespace lintel
