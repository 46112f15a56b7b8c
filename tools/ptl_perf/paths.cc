// Asking the library for paths, and telling of them. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/paths.h"

#include <portals4_lintel.h>

#include <map>

#include "common/text.h"
#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

struct Answer {
  int code;
  ptl_lintel_path_t path;
};

Answer ask(ptl_handle_ni_t interface, ptl_process_t process) {
  Answer answer{};
  answer.code = PtlLintelGetPath(interface, process, &answer.path);
  if (answer.code != PTL_OK && answer.code != PTL_FAIL) {
    throw_call_failed("PtlLintelGetPath", answer.code);
  }
  return answer;
}

std::string unreachable(unsigned rank, const std::string& reason) {
  return "rank " + std::to_string(rank) + " cannot be reached: " + reason;
}

template <class Part>
std::string joined(const std::vector<PathFacts>& paths, Part&& part) {
  std::string text;
  std::map<std::string, bool> seen;
  for (const PathFacts& path : paths) {
    const std::string word = part(path);
    if (word.empty() || !seen.emplace(word, true).second) continue;
    text += (text.empty() ? "" : "+") + word;
  }
  return text;
}

}  // namespace

void require_path(ptl_handle_ni_t interface, ptl_process_t process, unsigned rank) {
  const Answer answer = ask(interface, process);
  if (answer.code != PTL_OK)
    throw Failure(ExitCode::peer_lost, unreachable(rank, answer.path.reason));
}

std::string why_unreachable(Session& session, const Endpoint& endpoint) {
  for (const unsigned rank : {session.peer_rank(), 0u}) {
    if (rank == session.rank()) continue;
    const Answer answer = ask(endpoint.interface, endpoint.addresses[rank]);
    if (answer.code == PTL_FAIL) return unreachable(rank, answer.path.reason);
  }
  return "";
}

std::vector<PathFacts> gather_paths(Session& session, const Endpoint& endpoint) {
  Answer own{};
  if (session.initiator()) own = ask(endpoint.interface, endpoint.addresses[session.peer_rank()]);
  const std::vector<Answer> all = session.rendezvous().gather_value(own);
  std::vector<PathFacts> paths;
  std::string problem;
  for (unsigned rank = 0; rank < all.size(); ++rank) {
    if (!session.initiator(rank)) continue;
    const ptl_lintel_path_t& path = all[rank].path;
    const unsigned to = session.peer_rank(rank);
    if (all[rank].code != PTL_OK && problem.empty()) problem = unreachable(to, path.reason);
    paths.push_back({rank, to, path.transport, path.device, path.reason});
  }
  const Bytes told = session.rendezvous().broadcast(std::as_bytes(std::span(problem)));
  if (!told.empty()) {
    throw Failure(ExitCode::peer_lost,
                  std::string(reinterpret_cast<const char*>(told.data()), told.size()));
  }
  return paths;
}

std::string describe_paths(const std::vector<PathFacts>& paths) {
  std::map<std::string, std::string> pairs_by_path;
  for (const PathFacts& path : paths) {
    const std::string text = path.transport +
                             (path.device.empty() ? "" : " (" + path.device + ")") +
                             (path.reason.empty() ? "" : "; not by " + path.reason);
    std::string& pairs = pairs_by_path[text];
    pairs +=
        (pairs.empty() ? "" : ", ") + std::to_string(path.from) + "-" + std::to_string(path.to);
  }
  if (pairs_by_path.size() == 1) return pairs_by_path.begin()->first;
  std::string all;
  for (const auto& [text, pairs] : pairs_by_path)
    all += (all.empty() ? "pairs " : "; pairs ") + pairs + ": " + text;
  return all;
}

std::string transports_of(const std::vector<PathFacts>& paths) {
  return joined(paths, [](const PathFacts& path) { return path.transport; });
}

std::string devices_of(const std::vector<PathFacts>& paths) {
  return joined(paths, [](const PathFacts& path) { return path.device; });
}

}  // namespace lintel::perf
