/* freeze.cc: processes that wait for a debugger.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <unistd.h>

#include "tools/fatal.h"
#include "tools/headers.h"

volatile int gasnet_frozen = 1;

namespace lintel::gasnet {
namespace {
bool g_freezes_on_error = false;
}

void read_freeze_on_error() {
  g_freezes_on_error = gasnett_getenv_yesno_withdefault("GASNET_FREEZE_ON_ERROR", 0) != 0;
  gasnett_gethostname();  // makes the name known before the process freezes
}

void freeze_on_error() {
  if (g_freezes_on_error) gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gasnett_freezeForDebuggerNow(volatile int* flag, const char* flagname) {
  write_message(STDERR_FILENO,
                "Process frozen for a debugger: host=%s pid=%d %s\n"
                "To go on, attach a debugger and set %s to 0\n",
                gasnett_gethostname(), static_cast<int>(getpid()), process_label(), flagname);
  while (*flag) {
    sleep(1);
    gasnett_compiler_fence();
  }
}

void gasnett_freezeForDebuggerErr() {
  read_freeze_on_error();
  freeze_on_error();
}
