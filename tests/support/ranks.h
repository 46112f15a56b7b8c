// Runs the body of a test in forked processes. The process of gtest never initialises Portals,
// since a process can do that only once (spec 3.5.1). Set-up path.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/rank.h"

namespace lintel::test {

struct RunOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // set in every rank
  Milliseconds deadline = test_deadline;                         // for all ranks to end
};

// Forks `count` ranks, runs `body` in each and waits for their end. Failed assertions, crashes and
// hangs of a rank become failures of the running test; a hang is reported with the place of each
// rank.
void run_ranks(int count, const RunOptions& options, const std::function<void(Rank&)>& body);
void run_ranks(int count, const std::function<void(Rank&)>& body);

// Inside a rank: runs `body` in a forked child and returns how it ended, as waitpid() says. The
// child ends with status 0 if the body returns.
[[nodiscard]] int run_child(const std::function<void()>& body);

}  // namespace lintel::test
