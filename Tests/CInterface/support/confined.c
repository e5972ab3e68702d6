// Runs a program as a container of Docker's would be, as far as system calls and capabilities go:
//
//   confined PROGRAM ARGUMENT...
//
// The filter refuses what Docker's default profile refuses to a container without further capabilities, and io_uring,
// which the profile leaves out since 2023. The profile is a list of what is allowed, and this one of the rest: a call that
// is newer than the profile returns ENOSYS, as `runc` arranges it.

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The newest call of the profile's list (`futex_waitv`), on all processors.
#define LAST_KNOWN 449
// The name spaces of `clone`.
#define NAME_SPACES 0x7e020000

static const int refused[] = {
#ifdef __x86_64__
    SYS_create_module, SYS_get_kernel_syms, SYS_query_module, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl,
    SYS_iopl, SYS_ioperm,
#endif
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_bpf, SYS_fanotify_init, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_mount, SYS_move_mount,
    SYS_open_tree, SYS_perf_event_open, SYS_quotactl, SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_syslog,
    SYS_umount2, SYS_unshare, SYS_pivot_root, SYS_swapon, SYS_swapoff, SYS_nfsservctl, SYS_vhangup,
    SYS_open_by_handle_at, SYS_reboot, SYS_delete_module, SYS_init_module, SYS_finit_module, SYS_acct,
    SYS_kcmp, SYS_process_madvise, SYS_pidfd_getfd, SYS_settimeofday, SYS_clock_settime, SYS_kexec_load,
    SYS_kexec_file_load, SYS_get_mempolicy, SYS_mbind, SYS_set_mempolicy, SYS_migrate_pages, SYS_move_pages,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_userfaultfd,
};

// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD,
// AUDIT_WRITE, SETFCAP.
static const unsigned kept[] = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31};

static void fail(const char *what) {
  perror(what);
  exit(125);
}

static void drop_capabilities(void) {
  unsigned mask = 0;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) mask |= 1u << kept[i];
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
    if (capability < 32 && (mask >> capability & 1)) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) fail("PR_CAPBSET_DROP");
  }
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{.effective = mask, .permitted = mask}, {0}};
  if (syscall(SYS_capset, &header, data) != 0) fail("capset");
}

int main(int count, char **arguments) {
  (void)count;
  struct sock_filter code[256];
  unsigned short length = 0;
#define ADD(...) code[length++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define RETURN(value) ADD(BPF_STMT(BPF_RET | BPF_K, (value)))
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define UNLESS(test, value, skipped) ADD(BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (skipped)))
#ifdef __x86_64__
  const unsigned processor = AUDIT_ARCH_X86_64;
#else
  const unsigned processor = AUDIT_ARCH_AARCH64;
#endif
  LOAD(arch);
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, processor, 1, 0));
  RETURN(SECCOMP_RET_ALLOW);
  LOAD(nr);
  UNLESS(BPF_JGT, LAST_KNOWN, 1);
  REFUSE(ENOSYS);
  UNLESS(BPF_JEQ, SYS_clone3, 1);
  REFUSE(ENOSYS);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    UNLESS(BPF_JEQ, (unsigned)refused[i], 1);
    REFUSE(EPERM);
  }
  UNLESS(BPF_JEQ, SYS_clone, 4);
  LOAD(args[0]);
  UNLESS(BPF_JSET, NAME_SPACES, 1);
  REFUSE(EPERM);
  RETURN(SECCOMP_RET_ALLOW);
  UNLESS(BPF_JEQ, SYS_socket, 4);
  LOAD(args[0]);
  UNLESS(BPF_JEQ, 40 /* AF_VSOCK */, 1);
  REFUSE(EPERM);
  RETURN(SECCOMP_RET_ALLOW);
  RETURN(SECCOMP_RET_ALLOW);

  drop_capabilities();
  struct sock_fprog program = {.len = length, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("PR_SET_SECCOMP");
  execvp(arguments[1], arguments + 1);
  perror(arguments[1]);
  return 126;
}
