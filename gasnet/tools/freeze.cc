/* freeze.cc: processes that wait for a debugger.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <unistd.h>

#include <cstdio>

#include "tools/fatal.h"
#include "tools/headers.h"

volatile int gasnet_frozen = 1;

void gasnett_freezeForDebuggerNow(volatile int* flag, const char* flagname) {
  std::fprintf(stderr,
               "Process frozen for a debugger: host=%s pid=%d %s\n"
               "To go on, attach a debugger and set %s to 0\n",
               gasnett_gethostname(), static_cast<int>(getpid()), lintel::gasnet::process_label(),
               flagname);
  std::fflush(stderr);
  while (*flag) {
    sleep(1);
    gasnett_compiler_fence();
  }
}

void gasnett_freezeForDebuggerErr() {
  if (gasnett_getenv_yesno_withdefault("GASNET_FREEZE_ON_ERROR", 0))
    gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}
