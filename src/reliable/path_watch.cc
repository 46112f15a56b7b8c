#include "reliable/path_watch.h"

#include "util/node_identity.h"

namespace lintel {

void PathWatch::go_on(Connection& connection, uint64_t now_ns) noexcept {
  PathMtu& path = connection.send.path();
  const uint32_t before = connection.frame_bytes;
  const PathMtu::Step step = path.go_on(now_ns);
  if (step.change != PathMtu::Change::none) {
    connection.set_frame_bytes(path.frame_bytes());
    connection.send.follow_path();
  }
  if (step.change == PathMtu::Change::narrowed) {
    context_.counters.paths_narrowed.increment();
    say_narrowed(connection, before, now_ns);
    transmitter_.transmit(connection, now_ns);
  } else if (step.change == PathMtu::Change::widened) {
    context_.counters.paths_widened.increment();
    log_message(LogLevel::debug, "%s: frames of %u bytes arrive at %s", context_.link.name(),
                connection.frame_bytes + connection.seal_bytes,
                ProcessText(connection.peer.nid, connection.peer.pid).c_str());
  }
  if (step.probe_bytes == 0) return;
  context_.counters.path_probes.increment();
  transmitter_.probe_path(connection, step.probe_bytes, now_ns);
}

// Once for each node, unless it lasts.
void PathWatch::say_narrowed(const Connection& connection, uint32_t before,
                             uint64_t now_ns) noexcept {
  const bool due = said_.is_due(uint64_t{1} << 32 | connection.peer.nid, now_ns);
  log_message(due ? LogLevel::info : LogLevel::debug,
              "%s: frames of %u bytes do not arrive at %s, though short ones do; sending frames of "
              "%u bytes until it is known what the path takes. Set the same MTU for all network "
              "interfaces and switches on the way",
              context_.link.name(), before + connection.seal_bytes,
              ProcessText(connection.peer.nid, connection.peer.pid).c_str(),
              connection.frame_bytes + connection.seal_bytes);
}

}  // namespace lintel
