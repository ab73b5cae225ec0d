/* What Debian's archives ask of C libraries newer than the one that the wheel
 * is linked for. Each answers as a C library may that lacks the service. */
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

/* libstdc++ uses atomic operations unless a process has one thread for certain.
 */
char __libc_single_threaded = 0;

uint32_t arc4random(void) {
  uint32_t value;
  unsigned char *next = (unsigned char *)&value;
  size_t left = sizeof(value);
  while (left > 0) {
    ssize_t got = getrandom(next, left, 0);
    if (got <= 0)
      abort();
    next += got;
    left -= (size_t)got;
  }
  return value;
}

/* LLVM reports it as memory in use, which is for statistics alone. Zig's
 * headers declare the newest functions for all C libraries. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct mallinfo2 mallinfo2(void) {
  struct mallinfo old = mallinfo();
  struct mallinfo2 result = {
      (unsigned)old.arena,    (unsigned)old.ordblks,  (unsigned)old.smblks,
      (unsigned)old.hblks,    (unsigned)old.hblkhd,   (unsigned)old.usmblks,
      (unsigned)old.fsmblks,  (unsigned)old.uordblks, (unsigned)old.fordblks,
      (unsigned)old.keepcost,
  };
  return result;
}

/* libgcc's unwinder walks the loaded objects itself then. */
int _dl_find_object(void *address, void *result) {
  (void)address;
  (void)result;
  return -1;
}
