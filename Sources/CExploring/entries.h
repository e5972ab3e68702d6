/* A function in front of another one: a point before it and one behind it. All arguments are in registers. */
#if !defined(__x86_64__)
#error "entries.S knows the calling convention of x86-64 only"
#endif

.macro save
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  pushq %r10
.endm

.macro restore
  popq %r10
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
.endm

/* The beginning of both kinds: arguments are saved, and the point's own are set: operation, object, frame. */
.macro begin name, number
  .text
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  save
  movq %rdi, %rsi
  movl $\number, %edi
  movq %rbp, %rdx
.endm

.macro around name, real, number
  begin \name, \number
  callq explore_enter
  restore
  pushq %rdi
  pushq %rsi
  callq \real
  movq 8(%rsp), %rsi
  pushq %rax
  pushq %rdx
  movl $\number, %edi
  movq %rbp, %rdx
  callq explore_leave
  popq %rdx
  popq %rax
  leave
  .cfi_def_cfa %rsp, 8
  retq
  .cfi_endproc
  .size \name, . - \name
.endm

/* For functions of Swift's runtime, which may be asynchronous: a point before it, then the real one in its place. */
.macro before name, number, finder=explore_find
  begin \name, \number
  leaq .Lname_\number(%rip), %rcx
  callq \finder
  movq %rax, %r11
  restore
  popq %rbp
  .cfi_def_cfa %rsp, 8
  jmpq *%r11
  .cfi_endproc
  .size \name, . - \name
  .section .rodata
.Lname_\number:
  .asciz "\name"
.endm
