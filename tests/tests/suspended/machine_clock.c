/*
 * Clocks of a machine that a test suspends, for LD_PRELOAD. The file MACHINE_CLOCK is shared with the test, one byte a
 * field, so that no reader sees half a change:
 *
 *   0  minutes by which CLOCK_REALTIME is ahead, signed
 *   1  minutes by which CLOCK_BOOTTIME is ahead, signed
 *   2  1 makes the main thread hang where it next reads a clock
 *   3  1 once it hangs
 *   4  1 once a process has read a CLOCK_REALTIME that is ahead
 *
 * CLOCK_MONOTONIC stays as it is: it does not run while a machine is suspended.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct machine {
    signed char wall_minutes, boot_minutes;
    unsigned char hang, hangs, was_read;
};

static volatile struct machine *machine;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("MACHINE_CLOCK");
    if (path == NULL)
        return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *memory = mmap(NULL, sizeof *machine, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || memory == MAP_FAILED)
        abort();
    close(file);
    machine = memory;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    volatile struct machine *state = machine;
    if (state != NULL && state->hang && syscall(SYS_gettid) == getpid()) {
        state->hangs = 1;
        for (;;)
            pause();
    }
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || state == NULL)
        return failed;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        now->tv_sec += 60 * state->wall_minutes;
        if (state->wall_minutes != 0)
            state->was_read = 1;
    } else if (clock == CLOCK_BOOTTIME) {
        now->tv_sec += 60 * state->boot_minutes;
    }
    return 0;
}
