// The recovery points and the signal handler behind guarded_memory.h.
// Message path, except install_fault_handler() and what follows a fault.
#include "util/guarded_memory.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "util/config.h"
#include "util/log.h"
#include "util/spin_lock.h"

namespace lintel {
namespace {

// The thread sanitizer keeps a call stack of its own and mends it only in the C library's longjmp;
// without it, the compiler's own pair saves most of the cost. Clang has none for Arm.
#if defined(__SANITIZE_THREAD__) || (defined(__clang__) && defined(__aarch64__))
#define LINTEL_SYSTEM_JUMPS 1
using JumpBuffer = jmp_buf;
#define LINTEL_SET_JUMP(buffer) _setjmp(buffer)
#else
using JumpBuffer = void* [5];
#define LINTEL_SET_JUMP(buffer) __builtin_setjmp(buffer)
#endif

struct RecoveryPoint {
  JumpBuffer buffer;
  RecoveryPoint* outer;
};

// Initial-exec: a plain load in the handler, where a lazily allocated block would call malloc.
// Volatile, as the handler reads it at any point of the thread.
[[gnu::tls_model("initial-exec")]] constinit thread_local RecoveryPoint* volatile innermost =
    nullptr;

// A scope in which faults lead back to `point`.
class Armed {
 public:
  explicit Armed(RecoveryPoint& point) noexcept : outer_(innermost) {
    point.outer = outer_;
    innermost = &point;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Armed() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    innermost = outer_;
  }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  RecoveryPoint* outer_;
};

[[noreturn]] void resume_at(RecoveryPoint* point) noexcept {
#if defined(LINTEL_SYSTEM_JUMPS)
  longjmp(point->buffer, 1);
#else
  __builtin_longjmp(point->buffer, 1);
#endif
}

#if defined(__x86_64__)
using Register = greg_t;
[[nodiscard]] Register& instruction_pointer(void* context) noexcept {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
}
#elif defined(__aarch64__)
using Register = decltype(mcontext_t::pc);
[[nodiscard]] Register& instruction_pointer(void* context) noexcept {
  return static_cast<ucontext_t*>(context)->uc_mcontext.pc;
}
#endif

// Makes the return from the handler continue in resume_at(), so that the kernel puts the signal
// mask and the alternate stack back as after any signal.
void redirect(void* context, RecoveryPoint* point) noexcept {
#if defined(__x86_64__)
  Register* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  constexpr Register red_zone = 128;
  constexpr Register direction_flag = 0x400;
  registers[REG_RSP] = ((registers[REG_RSP] - red_zone) & ~Register{15}) - 8;
  registers[REG_RDI] = reinterpret_cast<Register>(point);
  registers[REG_EFL] &= ~direction_flag;
#else
  mcontext_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  registers.sp &= ~Register{15};
  registers.regs[0] = reinterpret_cast<Register>(point);
#endif
  instruction_pointer(context) = reinterpret_cast<Register>(&resume_at);
}

constexpr int caught_signals[] = {SIGSEGV, SIGBUS};

struct PreviousHandler {
  struct sigaction action;
  bool known;
};
PreviousHandler previous_handlers[2];
SpinLock install_lock;

[[nodiscard]] PreviousHandler& previous_handler(int signal_number) noexcept {
  return previous_handlers[signal_number == SIGSEGV ? 0 : 1];
}

void restore_default(int signal_number) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
}

// A fault that this library passes on.
struct ForeignFault {
  const char* signal;     // "SIGSEGV"
  uintptr_t address;      // accessed address; 0 also where the processor does not report it
  uintptr_t instruction;  // address of the instruction that accessed it; 0: unknown
  bool ends_process;      // no handler of the program takes it
};

// A line of text, made in a signal handler: printf() is not async-signal-safe.
class Line {
 public:
  void add(const char* text) noexcept {
    for (; *text != '\0'; ++text) add(*text);
  }
  void add(char character) noexcept {
    if (length_ < sizeof text_) text_[length_++] = character;
  }
  void add_number(uint64_t value, unsigned base) noexcept {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count != 0) add(digits[--count]);
  }
  void add_address(uintptr_t value) noexcept {
    add("0x");
    add_number(value, 16);
  }
  void write_out() const noexcept { write_to_standard_error(text_, length_); }

 private:
  char text_[256];
  size_t length_ = 0;
};

// Writes one line to standard error. Keeps errno.
void write_foreign_fault(const ForeignFault& fault) noexcept {
  const int saved_errno = errno;
  Line line;
  line.add("lintel[");
  line.add_number(static_cast<uint64_t>(getpid()), 10);
  line.add("] error: ");
  line.add(fault.signal);
  line.add(": the program touched ");
  line.add_address(fault.address);
  if (fault.instruction != 0) {
    line.add(" by the instruction at ");
    line.add_address(fault.instruction);
  }
  line.add(fault.ends_process
               ? ", outside the copies that this library guards; the signal ends the process"
               : ", outside the copies that this library guards; passed on to the handler before");
  line.add('\n');
  line.write_out();
  errno = saved_errno;
}

std::atomic<bool> foreign_fault_said{false};

// Logs a fault that is not the library's. In a backtrace the handler that passes a fault on looks
// like its cause. Programs that handle their own faults may have many: if they have a handler, one
// line is written; before the end of the process a line is always written.
void tell_foreign_fault(int signal_number, const siginfo_t& info, void* context,
                        bool ends_process) noexcept {
  if (foreign_fault_said.exchange(true, std::memory_order_relaxed) && !ends_process) return;
  write_foreign_fault({.signal = signal_number == SIGSEGV ? "SIGSEGV" : "SIGBUS",
                       .address = reinterpret_cast<uintptr_t>(info.si_addr),
                       .instruction = static_cast<uintptr_t>(instruction_pointer(context)),
                       .ends_process = ends_process});
}

// A fault that is not ours, or a signal that a process sent.
void pass_on(int signal_number, siginfo_t* info, void* context) noexcept {
  const struct sigaction& action = previous_handler(signal_number).action;
  const bool sent = info->si_code <= 0;
  const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
  const bool has_none =
      !takes_info && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
  if (!sent) tell_foreign_fault(signal_number, *info, context, has_none);
  if (has_none) {
    // The kernel does not let a process ignore a fault.
    if (sent && action.sa_handler == SIG_IGN) return;
    restore_default(signal_number);
    if (sent) raise(signal_number);  // a fault repeats itself when we return
    return;
  }
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) restore_default(signal_number);
  // The mask that the kernel would have set for that handler; the return from ours puts it back.
  sigset_t blocked = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal_number);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  if (takes_info) {
    action.sa_sigaction(signal_number, info, context);
  } else {
    action.sa_handler(signal_number);
  }
}

// True: the fault was in a copy of a few bytes, which fails when the handler returns.
bool recover_small_copy([[maybe_unused]] void* context) noexcept {
#ifdef LINTEL_GUARDED_SMALL_COPY
  Register& instruction = instruction_pointer(context);
  const uintptr_t recovery = recovery_from_small_copy(static_cast<uintptr_t>(instruction));
  if (recovery != 0) instruction = static_cast<Register>(recovery);
  return recovery != 0;
#else
  return false;
#endif
}

void on_fault(int signal_number, siginfo_t* info, void* context) noexcept {
  if (info->si_code > 0 && recover_small_copy(context)) return;
  RecoveryPoint* const point = innermost;
  if (point == nullptr || info->si_code <= 0) {
    pass_on(signal_number, info, context);
    return;
  }
  innermost = point->outer;
  redirect(context, point);
}

#if defined(__SANITIZE_THREAD__)
// A fault inside an interceptor would leave the state of the sanitizer wrong.
__attribute__((no_sanitize("thread"))) void copy_bytes(void* destination, const void* source,
                                                       size_t bytes) noexcept {
  volatile char* to = static_cast<char*>(destination);
  const volatile char* from = static_cast<const char*>(source);
  for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}
#else
// Beyond this length the C library copies with `rep movsb`, which on Zen 4 is slower than its loop
// of vector moves (glibc bug 30994). So longer copies are made in parts of equal length.
constexpr size_t longest_vector_copy = 2048;

// Null is an address like any other here. The undefined-behaviour sanitizer would report it.
template <typename Word>
__attribute__((no_sanitize("undefined"))) inline void copy_both_ends(char* to, const char* from,
                                                                     size_t bytes) noexcept {
  Word first;
  Word last;
  std::memcpy(&first, from, sizeof(Word));
  std::memcpy(&last, from + bytes - sizeof(Word), sizeof(Word));
  std::memcpy(to, &first, sizeof(Word));
  std::memcpy(to + bytes - sizeof(Word), &last, sizeof(Word));
}

__attribute__((no_sanitize("undefined"))) inline void copy_bytes(void* destination,
                                                                 const void* source,
                                                                 size_t bytes) noexcept {
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  if (bytes > 16) {
    for (size_t parts = (bytes + longest_vector_copy - 1) / longest_vector_copy; parts > 1;
         --parts) {
      const size_t part = bytes / parts & ~size_t{63};
      std::memcpy(to, from, part);
      to += part;
      from += part;
      bytes -= part;
    }
    std::memcpy(to, from, bytes);
  } else if (bytes >= 8) {
    copy_both_ends<uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_both_ends<uint32_t>(to, from, bytes);
  } else if (bytes >= 2) {
    copy_both_ends<uint16_t>(to, from, bytes);
  } else {
    *to = *from;
  }
}
#endif

}  // namespace

void install_fault_handler() noexcept {
  if (!config_bool(ConfigKey::segv_handler)) return;
  install_lock.lock();
  for (const int signal_number : caught_signals) {
    PreviousHandler& previous = previous_handler(signal_number);
    struct sigaction current {};
    if (sigaction(signal_number, nullptr, &current) != 0) continue;
    const bool takes_info = (current.sa_flags & SA_SIGINFO) != 0;
    if (takes_info && current.sa_sigaction == on_fault) continue;
    // A handler that the application put in place of ours may pass faults on to ours: in front of
    // it, ours would pass them in a circle.
    const bool is_function =
        takes_info || (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN);
    if (previous.known && is_function) continue;
    previous.action = current;
    previous.known = true;
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, nullptr);
  }
  install_lock.unlock();
}

// Never inlined, since a recovery point makes its caller save all registers.
bool guarded_detail::copy_under_recovery_point(void* destination, const void* source,
                                               size_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  // The sanitizer's memcpy takes a range that wraps around for a mistake, not for a fault.
  const auto wraps = [bytes](const void* p) { return reinterpret_cast<uintptr_t>(p) > -bytes; };
  if (wraps(destination) || wraps(source)) return false;
#endif
  RecoveryPoint point;
  if (LINTEL_SET_JUMP(point.buffer) != 0) return false;
  Armed armed(point);
  copy_bytes(destination, source, bytes);
  return true;
}

bool is_readable(const void* start, size_t bytes) noexcept {
  constexpr size_t page_bytes = 4096;  // no page is smaller
  const auto* const from = static_cast<const char*>(start);
  char read = 0;
  for (size_t at = 0; at < bytes; at += page_bytes)
    if (!guarded_copy(&read, from + at, 1)) return false;
  return bytes == 0 || guarded_copy(&read, from + bytes - 1, 1);
}

bool guarded_call(void (*action)(void*), void* argument) noexcept {
  RecoveryPoint point;
  if (LINTEL_SET_JUMP(point.buffer) != 0) return false;
  Armed armed(point);
  action(argument);
  return true;
}

}  // namespace lintel
