/* A disk that fails and is slow when it is told to: preloaded (faulty_disk.py), it stands before the system calls.

   The file named by FAULTY_DISK is shared with the test: see faulty_disk.py for its words. A call that fails does not
   reach the kernel. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

struct words {
    _Atomic unsigned sync_errno, sync_left, write_errno, write_left, delay_us, syncs_failed, writes_failed, syncs;
};

static struct words *told(void)
{
    static struct words *words;
    if (!words) {
        const char *path = getenv("FAULTY_DISK");
        int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *place = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (place == MAP_FAILED)
            _exit(99);
        close(file);
        words = place;
    }
    return words;
}

/* Takes one of the calls that are to fail; the errno of it, 0 when none is left. */
static int fails(_Atomic unsigned *left, _Atomic unsigned *code, _Atomic unsigned *failed)
{
    unsigned now = atomic_load(left);
    while (now && !atomic_compare_exchange_weak(left, &now, now - 1))
        ;
    if (!now)
        return 0;
    atomic_fetch_add(failed, 1);
    return (int)atomic_load(code);
}

static int sync_fails(void)
{
    struct words *words = told();
    unsigned delay_us = atomic_load(&words->delay_us);
    atomic_fetch_add(&words->syncs, 1);
    if (delay_us)
        usleep(delay_us);
    return errno = fails(&words->sync_left, &words->sync_errno, &words->syncs_failed);
}

static int write_fails(void)
{
    struct words *words = told();
    return errno = fails(&words->write_left, &words->write_errno, &words->writes_failed);
}

#define NEXT(name) ({ static __typeof__(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name); next; })

int fsync(int file) { return sync_fails() ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return sync_fails() ? -1 : NEXT(fdatasync)(file); }

ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t offset)
{
    return write_fails() ? -1 : NEXT(pwritev)(file, pieces, count, offset);
}

ssize_t pwritev64(int file, const struct iovec *pieces, int count, off64_t offset)
{
    return write_fails() ? -1 : NEXT(pwritev64)(file, pieces, count, offset);
}

ssize_t pwritev2(int file, const struct iovec *pieces, int count, off_t offset, int flags)
{
    return write_fails() ? -1 : NEXT(pwritev2)(file, pieces, count, offset, flags);
}

ssize_t pwritev64v2(int file, const struct iovec *pieces, int count, off64_t offset, int flags)
{
    return write_fails() ? -1 : NEXT(pwritev64v2)(file, pieces, count, offset, flags);
}
