// Not counted itself. Loads the plug-ins named on the command line, out of each other's sight;
// four threads call work(100000) in each, and main too. Then closes them, and does it all again,
// TIMES times.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#ifndef TIMES
#define TIMES 1
#endif
#ifndef THREADS
#define THREADS 4
#endif
#ifndef ROUNDS
#define ROUNDS 100000
#endif

static void (*works[16])(long);
static int plugins;

static void *all(void *nothing) {
    for (int i = 0; i < plugins; i++) works[i](ROUNDS);
    return nothing;
}

int main(int argc, char **argv) {
    for (int time = 0; time < TIMES; time++) {
        pthread_t threads[THREADS ? THREADS : 1];
        void *handles[16];
        plugins = argc - 1;
        for (int i = 0; i < plugins; i++) {
            handles[i] = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
            if (!handles[i]) return puts(dlerror()), 1;
            works[i] = (void (*)(long))dlsym(handles[i], "work");
        }
        for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, all, NULL);
        all(NULL);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < plugins; i++) dlclose(handles[i]);
    }
    return 0;
}
