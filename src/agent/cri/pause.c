/* The program of a sandbox under a container runtime: it holds the pod's namespaces and does nothing. Built without a C
 * library, so that it is small and runs in an empty image. Children that processes leave behind in a shared process
 * namespace vanish by themselves, because nobody wants to know of their end. */
enum { kSigchld = 17, kIgnore = 1 };

/* As the kernel has it. */
struct action {
  long handler, flags, restorer, mask;
};
static const struct action ignore = {kIgnore, 0, 0, 0};

#if defined(__x86_64__)
enum { kRtSigaction = 13, kPause = 34 };
static long call(long number, long a, long b, long c, long d) {
  long out = number;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "+a"(out) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return out;
}
static void wait_for_signal(void) { call(kPause, 0, 0, 0, 0); }
#elif defined(__aarch64__)
enum { kRtSigaction = 134, kPpoll = 73 };
static long call(long number, long a, long b, long c, long d) {
  register long nr __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(nr), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
static void wait_for_signal(void) { call(kPpoll, 0, 0, 0, 0); }
#endif

__attribute__((noreturn)) void _start(void) {
  call(kRtSigaction, kSigchld, (long)&ignore, 0, sizeof ignore.mask);
  for (;;) wait_for_signal();
}
