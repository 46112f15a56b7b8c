// The instructions behind guarded_small_copy.h. Message path.
#include "util/guarded_small_copy.h"

#ifdef LINTEL_GUARDED_SMALL_COPY

// Copies from both ends, so that each size takes one path. The stack is not used: after a fault
// anywhere, the code behind `failed` returns to the caller.
#define LINTEL_COPY_BEGIN                        \
  ".pushsection .text\n"                         \
  ".p2align 5\n"                                 \
  ".globl lintel_guarded_small_copy\n"           \
  ".protected lintel_guarded_small_copy\n"       \
  ".type lintel_guarded_small_copy, %function\n" \
  "lintel_guarded_small_copy:\n"                 \
  ".cfi_startproc\n"
#define LINTEL_COPY_FAILED "lintel_guarded_small_copy_failed:\n"
#define LINTEL_COPY_END                                              \
  ".cfi_endproc\n"                                                   \
  ".size lintel_guarded_small_copy, . - lintel_guarded_small_copy\n" \
  ".globl lintel_guarded_small_copy_failed\n"                        \
  ".hidden lintel_guarded_small_copy_failed\n"                       \
  ".popsection\n"

#if defined(__x86_64__)
asm(LINTEL_COPY_BEGIN R"(
  cmpq $8, %rdx
  jb 2f
  cmpq $16, %rdx
  ja 1f
  movq (%rsi), %rax
  movq -8(%rsi,%rdx), %rcx
  movq %rax, (%rdi)
  movq %rcx, -8(%rdi,%rdx)
  movl $1, %eax
  ret
1:
  cmpq $32, %rdx
  ja 5f
  movdqu (%rsi), %xmm0
  movdqu -16(%rsi,%rdx), %xmm1
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, -16(%rdi,%rdx)
  movl $1, %eax
  ret
2:
  cmpq $4, %rdx
  jb 3f
  movl (%rsi), %eax
  movl -4(%rsi,%rdx), %ecx
  movl %eax, (%rdi)
  movl %ecx, -4(%rdi,%rdx)
  movl $1, %eax
  ret
3:
  cmpq $2, %rdx
  jb 4f
  movzwl (%rsi), %eax
  movzwl -2(%rsi,%rdx), %ecx
  movw %ax, (%rdi)
  movw %cx, -2(%rdi,%rdx)
  movl $1, %eax
  ret
4:
  movzbl (%rsi), %eax
  movb %al, (%rdi)
  movl $1, %eax
  ret
5:
  cmpq $64, %rdx
  ja 6f
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu -32(%rsi,%rdx), %xmm2
  movdqu -16(%rsi,%rdx), %xmm3
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, 16(%rdi)
  movdqu %xmm2, -32(%rdi,%rdx)
  movdqu %xmm3, -16(%rdi,%rdx)
  movl $1, %eax
  ret
6:
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu 32(%rsi), %xmm2
  movdqu -48(%rsi,%rdx), %xmm3
  movdqu -32(%rsi,%rdx), %xmm4
  movdqu -16(%rsi,%rdx), %xmm5
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, 16(%rdi)
  movdqu %xmm2, 32(%rdi)
  movdqu %xmm3, -48(%rdi,%rdx)
  movdqu %xmm4, -32(%rdi,%rdx)
  movdqu %xmm5, -16(%rdi,%rdx)
  movl $1, %eax
  ret
)" LINTEL_COPY_FAILED R"(
  xorl %eax, %eax
  ret
)" LINTEL_COPY_END);
#else
asm(LINTEL_COPY_BEGIN R"(
  cmp x2, #8
  b.lo 2f
  cmp x2, #16
  b.hi 1f
  add x3, x1, x2
  add x4, x0, x2
  ldr x5, [x1]
  ldur x6, [x3, #-8]
  str x5, [x0]
  stur x6, [x4, #-8]
  mov w0, #1
  ret
1:
  add x3, x1, x2
  add x4, x0, x2
  cmp x2, #32
  b.hi 5f
  ldr q0, [x1]
  ldur q1, [x3, #-16]
  str q0, [x0]
  stur q1, [x4, #-16]
  mov w0, #1
  ret
2:
  add x3, x1, x2
  add x4, x0, x2
  cmp x2, #4
  b.lo 3f
  ldr w5, [x1]
  ldur w6, [x3, #-4]
  str w5, [x0]
  stur w6, [x4, #-4]
  mov w0, #1
  ret
3:
  cmp x2, #2
  b.lo 4f
  ldrh w5, [x1]
  ldurh w6, [x3, #-2]
  strh w5, [x0]
  sturh w6, [x4, #-2]
  mov w0, #1
  ret
4:
  ldrb w5, [x1]
  strb w5, [x0]
  mov w0, #1
  ret
5:
  cmp x2, #64
  b.hi 6f
  ldp q0, q1, [x1]
  ldp q2, q3, [x3, #-32]
  stp q0, q1, [x0]
  stp q2, q3, [x4, #-32]
  mov w0, #1
  ret
6:
  ldp q0, q1, [x1]
  ldr q2, [x1, #32]
  ldur q3, [x3, #-48]
  ldp q4, q5, [x3, #-32]
  stp q0, q1, [x0]
  str q2, [x0, #32]
  stur q3, [x4, #-48]
  stp q4, q5, [x4, #-32]
  mov w0, #1
  ret
)" LINTEL_COPY_FAILED R"(
  mov w0, #0
  ret
)" LINTEL_COPY_END);
#endif

extern "C" const char lintel_guarded_small_copy_failed[];

namespace lintel {

#ifdef LINTEL_GUARDED_WORD_COPY
namespace {
// Distances from the field itself, in bytes.
struct WordCopy {
  int32_t instruction;
  int32_t failed;
};
}  // namespace
// Made by the linker.
extern "C" [[gnu::visibility("hidden")]] const WordCopy __start_lintel_word_copies[];
extern "C" [[gnu::visibility("hidden")]] const WordCopy __stop_lintel_word_copies[];
#endif

uintptr_t recovery_from_small_copy(uintptr_t instruction) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(&lintel_guarded_small_copy);
  const auto failed = reinterpret_cast<uintptr_t>(&lintel_guarded_small_copy_failed[0]);
  if (instruction >= begin && instruction < failed) return failed;
#ifdef LINTEL_GUARDED_WORD_COPY
  const auto at = [](const int32_t& distance) {
    return reinterpret_cast<uintptr_t>(&distance) + static_cast<uintptr_t>(intptr_t{distance});
  };
  for (const WordCopy* copy = __start_lintel_word_copies; copy != __stop_lintel_word_copies; ++copy)
    if (at(copy->instruction) == instruction) return at(copy->failed);
#endif
  return 0;
}

}  // namespace lintel

#endif
