// The state of all interfaces as text, for debuggers (docs/debugging.md).
#pragma once

// Writes peers, queues, operations, transfers and links of all interfaces to standard error. Takes
// no lock: call it while the process is stopped, as by gdb's `call`.
extern "C" [[gnu::visibility("default")]] void lintel_dump_state();
