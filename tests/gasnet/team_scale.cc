/* team_scale.cc: the memory of a team of a million ranks, without processes. It is 8 bytes a rank,
 * for any distribution of the neighbours of the process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cstdio>
#include <cstring>
#include <numeric>

#include "team/team.h"

using namespace lintel::gasnet;

namespace {

constexpr gex_Rank_t kRanks = 1'000'000;
constexpr gex_Rank_t kNeighbours = 64;
constexpr gex_Rank_t kApart = kRanks / kNeighbours; /* ranks round-robin over nodes */
constexpr long kPageKib = 4;

long resident_kib() {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "RssAnon:", 8) == 0) std::sscanf(line, "%*s %ld", &kib);
  if (file) std::fclose(file);
  return kib;
}

bool check(bool condition, const char* text) {
  if (!condition) std::fprintf(stderr, "not so: %s\n", text);
  return condition;
}

}  // namespace

int main() {
  gasneti_team all;
  all.view.size = kRanks;
  const long before = resident_kib();
  all.cover(0, kRanks - 1);
  for (gex_Rank_t i = 0; i < kNeighbours; ++i)
    all.set_mapped_offset(i * kApart, static_cast<intptr_t>(i) * 4096);
  const long primordial_kib = resident_kib() - before;

  std::vector<gex_Rank_t> members(kRanks);
  std::iota(members.rbegin(), members.rend(), 0);
  const long with_list = resident_kib();
  const uint32_t number = next_team_number();
  bool good = check(claim_team_number(number), "no other team has the number");
  const gex_TM_t team = new_team(&all, std::move(members), number, 0);
  // The team owns the list of members now.
  const long team_kib = resident_kib() - with_list + long{kRanks} * 4 / 1024;

  for (gex_Rank_t rank = 0; rank < kRanks; ++rank) {
    const gex_Rank_t jobrank = kRanks - 1 - rank;
    const auto offset = team->mapped_offset_of(rank);
    const bool is_near = jobrank % kApart == 0 && jobrank / kApart < kNeighbours;
    good = good && team->rank_of(jobrank) == rank && offset.has_value() == is_near &&
           (!is_near || *offset == intptr_t{jobrank / kApart} * 4096);
  }
  std::printf("%u ranks: %ld KiB, and %ld KiB in the team of all processes\n", kRanks, team_kib,
              primordial_kib);
  const long pages_kib = kNeighbours * kPageKib;
  good = check(good, "members and what is mapped") && good;
  good = check(team_kib <= long{kRanks} * 8 / 1024 + 2 * pages_kib, "8 bytes a rank") && good;
  good = check(primordial_kib <= 2 * pages_kib, "pages with neighbours only") && good;
  delete_team(team);
  return good ? 0 : 1;
}
