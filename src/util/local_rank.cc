// The variables of launchers that hold the local rank. Set-up path.
#include "util/local_rank.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "util/config.h"
#include "util/log.h"

namespace lintel {

namespace {

constexpr int64_t not_chosen = -1;
std::atomic<int64_t> chosen{not_chosen};

constexpr const char* launcher_variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                              "PALS_LOCAL_RANKID", "MPI_LOCALRANKID",
                                              "MV2_COMM_WORLD_LOCAL_RANK"};

constexpr const char* job_rank_variables[] = {"PTL_MY_RID",   "PMIX_RANK",   "OMPI_COMM_WORLD_RANK",
                                              "SLURM_PROCID", "PALS_RANKID", "PMI_RANK"};

std::optional<uint32_t> parse(const char* text) {
  uint32_t rank = 0;
  const char* const end = text + std::strlen(text);
  const auto [parsed_to, error] = std::from_chars(text, end, rank);
  if (error != std::errc{} || parsed_to != end || parsed_to == text) return std::nullopt;
  return rank;
}

}  // namespace

std::optional<uint32_t> find_job_rank() {
  for (const char* name : job_rank_variables)
    if (const char* const text = std::getenv(name))
      if (const auto rank = parse(text)) return rank;
  return std::nullopt;
}

void choose_local_rank(uint32_t rank) noexcept { chosen.store(rank, std::memory_order_relaxed); }

LocalRank find_local_rank() {
  if (const std::optional<uint64_t> wanted = config_optional(ConfigKey::local_rank))
    return {static_cast<uint32_t>(*wanted), "PTL_LOCAL_RANK"};
  const int64_t told = chosen.load(std::memory_order_relaxed);
  if (told != not_chosen) return {static_cast<uint32_t>(told), "the run-time library"};
  for (const char* name : launcher_variables) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    if (const auto rank = parse(text)) return {*rank, name};
  }
  return {0, "no launcher says otherwise"};
}

}  // namespace lintel
