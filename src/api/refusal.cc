// The lines of refused calls. Fault path.
#include "api/refusal.h"

#include <atomic>
#include <cinttypes>

#include "util/config.h"
#include "util/log.h"

namespace lintel::api {

namespace {

// Whether to log a line about the refusal. Programmers who only have return codes get one hint how
// to get it.
bool says_refusal(int code, const Call& call) noexcept {
  // Before PtlInit the level has not been read.
  if (!library_was_used()) config_find_log_level();
  if (log_enabled(LogLevel::debug)) return true;
  // Correct programs get these, too.
  if (call.is_question || code == PTL_IN_USE || code == PTL_PT_IN_USE || code == PTL_PID_IN_USE ||
      code == PTL_PT_FULL || code == PTL_IGNORED || code == PTL_NO_INIT)
    return false;
  static std::atomic<bool> hinted{false};
  log_once(hinted, LogLevel::warn,
           "%s returns %s: with PTL_LOG_LEVEL=debug a line says why, for each refused call",
           call.name, PtlToStr(code, PTL_STR_ERROR));
  return false;
}

const char* name_of(HandleType type) noexcept {
  switch (type) {
    case HandleType::interface:
      return "a network interface";
    case HandleType::memory_descriptor:
      return "a memory descriptor";
    case HandleType::entry:
      return "a list entry";
    case HandleType::event_queue:
      return "an event queue";
    case HandleType::counter:
      return "a counting event";
  }
  return nullptr;
}

}  // namespace

int refuse(int code, const Call& call, const char* argument, uint64_t value,
           const char* rule) noexcept {
  if (code == PTL_NO_INIT) return refuse_before_init(call);
  if (says_refusal(code, call))
    log_message(LogLevel::debug, "%s returns %s: %s = %" PRIu64 ": %s (%s)", call.name,
                PtlToStr(code, PTL_STR_ERROR), argument, value, rule, call.rules);
  return code;
}

int refuse_expected(int code, const Call& call, const char* argument, uint64_t value,
                    const char* rule) noexcept {
  log_message(LogLevel::debug, "%s returns %s: %s = 0x%" PRIx64 ": %s (%s)", call.name,
              PtlToStr(code, PTL_STR_ERROR), argument, value, rule, call.rules);
  return code;
}

int refuse_bits(int code, const Call& call, const char* argument, uint64_t value,
                const char* rule) noexcept {
  if (says_refusal(code, call))
    log_message(LogLevel::debug, "%s returns %s: %s = 0x%" PRIx64 ": %s (%s)", call.name,
                PtlToStr(code, PTL_STR_ERROR), argument, value, rule, call.rules);
  return code;
}

int refuse_null(const Call& call, const char* argument) noexcept {
  const int code = code_of_bad_handle();
  if (code == PTL_NO_INIT) return refuse_before_init(call);
  if (says_refusal(code, call))
    log_message(LogLevel::debug, "%s returns %s: %s = NULL: must not be NULL (%s)", call.name,
                PtlToStr(code, PTL_STR_ERROR), argument, call.rules);
  return code;
}

int refuse_before_init(const Call& call) noexcept {
  if (says_refusal(PTL_NO_INIT, call))
    log_message(LogLevel::debug,
                "%s returns PTL_NO_INIT: PtlInit was not called, or PtlFini was (spec 3.5.1)",
                call.name);
  return PTL_NO_INIT;
}

int refuse_handle(const Call& call, const char* argument, ptl_handle_any_t handle,
                  HandleType type) noexcept {
  if (!library_is_initialized()) return refuse_before_init(call);
  if (handle == 0 && (type == HandleType::event_queue || type == HandleType::counter)) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "%s returns PTL_ARG_INVALID: %s is 0, as in a zeroed structure; where there is to be "
             "none, it must be %s (%s)",
             call.name, argument, type == HandleType::counter ? "PTL_CT_NONE" : "PTL_EQ_NONE",
             call.rules);
  }
  const HandleFields fields = decode_handle(handle);
  // Entries unlink themselves: a correct program may use the handle of one that has.
  const bool expected = type == HandleType::entry && fields.type == type;
  if (expected ? !log_enabled(LogLevel::debug) : !says_refusal(PTL_ARG_INVALID, call))
    return PTL_ARG_INVALID;
  const char* const found = name_of(fields.type);
  const char* const what = handle == PTL_INVALID_HANDLE      ? "it is PTL_INVALID_HANDLE"
                           : found == nullptr                ? "it is no handle"
                           : fields.type != type             ? "it is one of "
                           : interface_of(fields) == nullptr ? "its interface is not open"
                           : object_exists(*interface_of(fields), handle)
                               ? "it belongs to another interface"
                               : "that object was freed, or never existed";
  const bool other_type = handle != PTL_INVALID_HANDLE && found != nullptr && fields.type != type;
  log_message(LogLevel::debug,
              "%s returns PTL_ARG_INVALID: %s = 0x%" PRIx64
              ": must be a handle of %s; %s%s "
              "(%s)",
              call.name, argument, static_cast<uint64_t>(handle), name_of(type), what,
              other_type ? found : "", call.rules);
  return PTL_ARG_INVALID;
}

}  // namespace lintel::api
