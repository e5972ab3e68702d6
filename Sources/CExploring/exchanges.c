// Swift's `Mutex` takes and releases a free lock with one instruction in the program's own code, a compare-and-exchange,
// which no library can come in front of. Here each such instruction of a program that uses `Mutex` begins with a trap:
// the handler comes to a point, and does what the instruction does.
//
// Code is changed only where a locked compare-and-exchange with memory is followed by a use of its result, in objects
// that call the slow path of `Mutex`: the program, and libraries that are not beside Swift's own.

#include "exploring.h"

#if defined(__x86_64__)

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MOST_EXCHANGES = 1 << 14, LOCK = 0xF0, TRAP = 0xCC };
/// Their addresses, which ascend. The byte that the trap has taken the place of is LOCK.
static const uint8_t *exchanges[MOST_EXCHANGES];
static uint32_t exchange_count;

/// A decoded instruction.
struct exchange {
  uint8_t length;
  /// Of the operands, in bytes: 1, 4 or 8.
  uint8_t size;
  /// The register with the new value: an index in the processor's order.
  uint8_t desired;
  /// Of the address; -1 for none. RIP counts as 16.
  int8_t base, index;
  uint8_t scale;
  int32_t displacement;
};
enum { NO_REGISTER = -1, RIP = 16 };

/// Reads the instruction whose LOCK is at `code`; false if it is another one. At least 16 bytes can be read.
static bool decode(const uint8_t *code, struct exchange *result) {
  const uint8_t *next = code + 1;
  uint8_t rex = (*next & 0xF0) == 0x40 ? *next++ : 0;
  if (next[0] != 0x0F || (next[1] & 0xFE) != 0xB0) return false;
  bool is_byte = next[1] == 0xB0;
  uint8_t mode = next[2] >> 6, low = next[2] & 7;
  next += 3;
  // The registers AH to BH, which only code without this prefix has.
  if (mode == 3 || (is_byte && !rex)) return false;
  result->size = is_byte ? 1 : rex & 8 ? 8 : 4;
  result->desired = (uint8_t)((next[-1] >> 3 & 7) | (rex & 4) << 1);
  result->base = (int8_t)(low | (rex & 1) << 3);
  result->index = NO_REGISTER;
  result->scale = 0;
  if (low == 4) {
    uint8_t sib = *next++;
    int8_t index = (int8_t)((sib >> 3 & 7) | (rex & 2) << 2);
    result->base = (int8_t)((sib & 7) | (rex & 1) << 3);
    result->scale = sib >> 6;
    if (index != 4) result->index = index;
    if (mode == 0 && (sib & 7) == 5) result->base = NO_REGISTER, mode = 2;
  } else if (mode == 0 && low == 5) {
    result->base = RIP;
    mode = 2;
  }
  result->displacement = 0;
  if (mode == 1) result->displacement = (int8_t)*next++;
  if (mode == 2) memcpy(&result->displacement, next, 4), next += 4;
  result->length = (uint8_t)(next - code);
  return true;
}

/// Whether the instruction uses the flags or the value that the exchange has left.
static bool uses_result(const uint8_t *code) {
  bool jumps = (code[0] & 0xF0) == 0x70 || (code[0] == 0x0F && (code[1] & 0xF0) == 0x80);
  bool sets = code[0] == 0x0F && (code[1] & 0xF0) == 0x90;
  bool moves = code[0] == 0x89 || ((code[0] & 0xF8) == 0x48 && code[1] == 0x89);
  return jumps || sets || moves;
}

// MARK: Finding them

/// Whether the object calls the slow path. Symbols without a definition come before those of the hash table.
static bool uses_mutex(const struct dl_phdr_info *object) {
  static const char wanted[] = "$s15Synchronization12_MutexHandleV9_lockSlow";
  const char *names = NULL;
  const ElfW(Sym) *symbols = NULL;
  const uint32_t *table = NULL;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn) *entry = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++) {
      // The loader has made the addresses absolute.
      if (entry->d_tag == DT_STRTAB) names = (const char *)entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) symbols = (const void *)entry->d_un.d_ptr;
      if (entry->d_tag == DT_GNU_HASH) table = (const void *)entry->d_un.d_ptr;
    }
  }
  if (!names || !symbols || !table || (uintptr_t)names < object->dlpi_addr) return false;
  for (uint32_t i = 1; i < table[1]; i++)
    if (strncmp(names + symbols[i].st_name, wanted, sizeof wanted - 1) == 0) return true;
  return false;
}

static void change(uint8_t *begin, uint8_t *end) {
  const size_t page = 4096;
  uint8_t *first = (uint8_t *)((uintptr_t)begin & -page);
  bool is_writable = false;
  for (uint8_t *code = begin; code + 32 < end && exchange_count < MOST_EXCHANGES; code++) {
    code = memchr(code, LOCK, (size_t)(end - 32 - code));
    if (!code) break;
    struct exchange found;
    // Before it would be prefixes: another segment, or operands of 16 bits.
    if (code[-1] == 0x64 || code[-1] == 0x65 || code[-1] == 0x66 || !decode(code, &found) || !uses_result(code + found.length))
      continue;
    if (!is_writable && mprotect(first, (size_t)(end - first), PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    is_writable = true;
    exchanges[exchange_count++] = code;
    *code = TRAP;
    code += found.length - 1;
  }
  if (is_writable) mprotect(first, (size_t)(end - first), PROT_READ | PROT_EXEC);
}

/// The folder of Swift's own libraries, with its last slash.
static const char *swift_folder;
static size_t swift_folder_length;

static int note_folder(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  const char *name = strstr(object->dlpi_name, "/libswiftCore.so");
  if (!name) return 0;
  swift_folder = object->dlpi_name;
  swift_folder_length = (size_t)(name - object->dlpi_name) + 1;
  return 1;
}

static int search(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  if (strncmp(object->dlpi_name, swift_folder, swift_folder_length) == 0 || !uses_mutex(object)) return 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    uint8_t *begin = (uint8_t *)(object->dlpi_addr + segment->p_vaddr);
    if (segment->p_type == PT_LOAD && segment->p_flags == (PF_R | PF_X)) change(begin + 1, begin + segment->p_filesz);
  }
  return 0;
}

// MARK: The signal

// The kernel ends a process whose thread blocks or ignores the signal of a trap.
INTERPOSED(int, sigaction, int signal, const struct sigaction *action, struct sigaction *former) {
  if (signal != SIGTRAP || !exchange_count) return REAL(sigaction)(signal, action, former);
  if (former) *former = (struct sigaction){.sa_handler = SIG_DFL};
  return 0;
}

INTERPOSED(sighandler_t, signal, int signal, sighandler_t handler) {
  return signal == SIGTRAP && exchange_count ? SIG_DFL : REAL(signal)(signal, handler);
}

static const sigset_t *without_trap(const sigset_t *set, sigset_t *copy) {
  if (!set || !exchange_count) return set;
  *copy = *set;
  sigdelset(copy, SIGTRAP);
  return copy;
}

INTERPOSED(int, pthread_sigmask, int how, const sigset_t *set, sigset_t *former) {
  sigset_t copy;
  return REAL(pthread_sigmask)(how, without_trap(set, &copy), former);
}

INTERPOSED(int, sigprocmask, int how, const sigset_t *set, sigset_t *former) {
  sigset_t copy;
  return REAL(sigprocmask)(how, without_trap(set, &copy), former);
}

// MARK: What one does

static uintptr_t value_of(const greg_t *all, int8_t number) {
  // The processor's order of the registers, in that of the context.
  static const uint8_t places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8,
                                   REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  return number == NO_REGISTER ? 0 : (uintptr_t)all[places[number]];
}

#define EXCHANGE(type, address, expected, desired)                                                                   \
  ({                                                                                                                 \
    type old = (type)(expected);                                                                                     \
    __asm__ volatile("lock cmpxchg %[new], %[word]"                                                                  \
                     : "+a"(old), [word] "+m"(*(type *)(address)), "=@ccz"(zero), "=@ccc"(carry), "=@ccs"(sign),     \
                       "=@cco"(overflow), "=@ccp"(parity)                                                            \
                     : [new] "r"((type)(desired))                                                                    \
                     : "memory");                                                                                    \
    old;                                                                                                             \
  })

/// Does what the instruction does, with the registers of the context.
static void perform(const struct exchange *exchange, uintptr_t address, greg_t *all) {
  uintptr_t desired = value_of(all, (int8_t)exchange->desired);
  uint64_t expected = (uint64_t)all[REG_RAX], old;
  bool zero, carry, sign, overflow, parity;
  if (exchange->size == 8) old = EXCHANGE(uint64_t, address, expected, desired);
  else if (exchange->size == 4) old = EXCHANGE(uint32_t, address, expected, desired);
  else old = (expected & ~0xFFull) | EXCHANGE(uint8_t, address, expected, desired);
  all[REG_RAX] = (greg_t)old;
  // CF, PF, ZF, SF and OF. No code reads AF after it.
  all[REG_EFL] = (all[REG_EFL] & ~(greg_t)0x8C5) | carry | parity << 2 | zero << 6 | sign << 7 | overflow << 11;
}

static int compare(const void *first, const void *second) {
  uintptr_t a = (uintptr_t)*(const uint8_t *const *)first, b = (uintptr_t)*(const uint8_t *const *)second;
  return (a > b) - (a < b);
}

static bool is_exchange(const uint8_t *code) {
  return bsearch(&code, exchanges, exchange_count, sizeof *exchanges, compare) != NULL;
}

static void trap(int signal, siginfo_t *information, void *context) {
  (void)information;
  greg_t *all = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *code = (const uint8_t *)all[REG_RIP] - 1;
  struct exchange exchange;
  if (!is_exchange(code) || !decode(code, &exchange)) {
    // A trap of the program. It ends as if there were no handler.
    struct sigaction usual = {.sa_handler = SIG_DFL};
    REAL(sigaction)(signal, &usual, NULL);
    SYSTEM3(SYS_tgkill, SYSTEM1(SYS_getpid, 0), SYSTEM1(SYS_gettid, 0), signal);
    return;
  }
  all[REG_RIP] = (greg_t)(code + exchange.length);
  uintptr_t address = value_of(all, exchange.base) + (value_of(all, exchange.index) << exchange.scale) +
                      (uintptr_t)(intptr_t)exchange.displacement;
  struct explored *self = explore_current();
  // As with other locks: before it is taken, and after it is released.
  bool releases = exchange.size == 4 && (uint32_t)all[REG_RAX] != 0 && (uint32_t)value_of(all, (int8_t)exchange.desired) == 0;
  const uintptr_t place[2] = {(uintptr_t)all[REG_RBP], (uintptr_t)all[REG_RIP]};
  int failure = errno;
  if (releases) perform(&exchange, address, all);
  if (self) explore_point(self, OP_EXCHANGE, (void *)address, place);
  if (!releases) perform(&exchange, address, all);
  errno = failure;
}

void explore_find_exchanges(void) {
  dl_iterate_phdr(note_folder, NULL);
  if (!swift_folder) return;
  // The handler comes first. Within it another exchange may come, of a handler of the program.
  struct sigaction action = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART}, former;
  if (REAL(sigaction)(SIGTRAP, &action, &former) != 0) return;
  dl_iterate_phdr(search, NULL);
  qsort(exchanges, exchange_count, sizeof *exchanges, compare);
  if (exchange_count == 0) REAL(sigaction)(SIGTRAP, &former, NULL);
}

#else

void explore_find_exchanges(void) {}

#endif
