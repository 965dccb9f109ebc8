/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym -- what the program calls instead of the C library's
 *
 *   void *dlsym(void *handle, const char *name)
 *
 * RTLD_NEXT and RTLD_DEFAULT mean "as seen from my caller", and glibc takes the
 * return address for the caller. So everything that is not a look-up of a
 * driver function by handle leaves here by a jump, with every register and the
 * stack as they came in; no compiler and no sanitizer gets a chance to turn
 * that into a call, because this is not C.
 *
 *   handle is RTLD_DEFAULT (0) or RTLD_NEXT (-1)  -> jump to the real dlsym
 *   name does not begin with cu[A-Z]              -> jump to the real dlsym
 *   otherwise -> jump to sp_on_dlsym(handle, name)
 *
 * On the first two ways nothing is locked, allocated or initialised: allocators,
 * sanitizers and OpenMP look things up while they start themselves. The one
 * exception is the very first look-up of the process, which has to find the
 * real dlsym (real_dlsym.c).
 */

#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .text
        .globl  dlsym
        .type   dlsym, %function
        .hidden sp_real_dlsym
        .hidden sp_real_dlsym_find
        .hidden sp_on_dlsym

#if defined(__x86_64__)

        .p2align 4
dlsym:
        .cfi_startproc
        _CET_ENDBR
        testq   %rdi, %rdi
        je      .Lreal
        cmpq    $-1, %rdi
        je      .Lreal
        testq   %rsi, %rsi
        je      .Lreal
        cmpb    $'c', (%rsi)
        jne     .Lreal
        cmpb    $'u', 1(%rsi)
        jne     .Lreal
        movzbl  2(%rsi), %eax
        subl    $'A', %eax
        cmpl    $25, %eax
        ja      .Lreal
        jmp     sp_on_dlsym
.Lreal:
        movq    sp_real_dlsym(%rip), %rax
        testq   %rax, %rax
        je      .Lfind
        jmp     *%rax
.Lfind:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    sp_real_dlsym_find
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   dlsym, .-dlsym

#elif defined(__aarch64__)

        .p2align 4
dlsym:
        .cfi_startproc
        hint    #34                     /* bti c */
        cbz     x0, .Lreal
        cmn     x0, #1
        b.eq    .Lreal
        cbz     x1, .Lreal
        ldrb    w16, [x1]
        cmp     w16, #'c'
        b.ne    .Lreal
        ldrb    w16, [x1, #1]
        cmp     w16, #'u'
        b.ne    .Lreal
        ldrb    w16, [x1, #2]
        sub     w16, w16, #'A'
        cmp     w16, #25
        b.hi    .Lreal
        b       sp_on_dlsym
.Lreal:
        adrp    x16, sp_real_dlsym
        ldr     x16, [x16, :lo12:sp_real_dlsym]
        cbz     x16, .Lfind
        br      x16
.Lfind:
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x0, x1, [sp, #16]
        bl      sp_real_dlsym_find
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_adjust_cfa_offset -32
        br      x16
        .cfi_endproc
        .size   dlsym, .-dlsym

#else
#error "dlsym is written for x86-64 and aarch64"
#endif

        .section .note.GNU-stack, "", %progbits
