// The instructions behind guarded_small_copy.h. Message path.
#include "util/guarded_small_copy.h"

#ifdef LINTEL_GUARDED_SMALL_COPY

// Copies from both ends, so that each size takes one path. The stack is not used: after a fault
// anywhere, the code behind `failed` returns to the caller.
asm(R"(
  .pushsection .text
  .p2align 5
  .globl lintel_guarded_small_copy
  .protected lintel_guarded_small_copy
  .type lintel_guarded_small_copy, @function
lintel_guarded_small_copy:
  .cfi_startproc
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
lintel_guarded_small_copy_failed:
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size lintel_guarded_small_copy, . - lintel_guarded_small_copy
  .globl lintel_guarded_small_copy_failed
  .hidden lintel_guarded_small_copy_failed
  .popsection
)");

extern "C" const char lintel_guarded_small_copy_failed[];

namespace lintel {

uintptr_t recovery_from_small_copy(uintptr_t instruction) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(&lintel_guarded_small_copy);
  const auto failed = reinterpret_cast<uintptr_t>(&lintel_guarded_small_copy_failed[0]);
  return instruction >= begin && instruction < failed ? failed : 0;
}

}  // namespace lintel

#endif
