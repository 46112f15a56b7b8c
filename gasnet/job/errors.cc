/* errors.cc: names of codes, and printing them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/errors.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "tools/headers.h"

namespace {

struct Code {
  int value;
  const char* name;
  const char* text;
};
constexpr Code kCodes[] = {
    {GASNET_OK, "GASNET_OK", "No error"},
    {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT", "GASNet is not initialised"},
    {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "A resource is short"},
    {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "An argument is not valid"},
    {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY", "A non-blocking operation is not complete"},
    {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH", "Barrier identifiers differ"}};

std::atomic<int> g_verbose_errors{1};

}  // namespace

namespace lintel::gasnet {

int report_error(int code, const char* format, ...) {
  if (!g_verbose_errors.load(std::memory_order_relaxed)) return code;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "GASNet: %s (%s)\n", text, gasnet_ErrorName(code));
  return code;
}

}  // namespace lintel::gasnet

const char* gasnet_ErrorName(int errval) {
  for (const Code& code : kCodes)
    if (code.value == errval) return code.name;
  return "*unknown*";
}

const char* gasnet_ErrorDesc(int errval) {
  for (const Code& code : kCodes)
    if (code.value == errval) return code.text;
  return "no description available";
}

int gex_System_GetVerboseErrors() { return g_verbose_errors; }
void gex_System_SetVerboseErrors(int enable) { g_verbose_errors = enable; }
