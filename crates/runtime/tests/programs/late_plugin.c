// Not counted. Loads a plug-in after making life hard for it: HOW says how. Then calls work(1000).
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Takes the first addresses where the table might be.
static void take(int protection) {
    for (unsigned long address = 0x3d0000000000; address >= 0x1d0000000000; address -= 1ul << 44)
        if (mmap((void *)address, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1, 0) == MAP_FAILED)
            exit(2);
}

// Uses gs for something else. (The memory around the moved counters is ours, too.)
static void use_gs(void) {
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, 0x1234000) != 0) exit(2);
}

int main(int argc, char **argv) {
    (void)argc;
    (void)take;
    (void)use_gs;
    HOW;
    void *plugin = dlopen(argv[1], RTLD_NOW);
    if (!plugin) return puts(dlerror()), 1;
    void (*work)(long) = (void (*)(long))dlsym(plugin, "work");
    work(ROUNDS);
    return 0;
}
