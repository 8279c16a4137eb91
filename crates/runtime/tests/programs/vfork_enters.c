// Not counted. The first to come to the plug-in's code, of this thread, is a child of vfork.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*first)(long), (*second)(long);

static void *in_thread(void *nothing) {
    first(10);
    pid_t pid = vfork();
    if (pid == 0) {
        second(100);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    first(1);
    second(1000);
    return nothing;
}

int main(int argc, char **argv) {
    (void)argc;
    void *plugins[2] = {dlopen(argv[1], RTLD_NOW), dlopen(argv[2], RTLD_NOW)};
    pthread_t thread;
    if (!plugins[0] || !plugins[1]) return puts(dlerror()), 1;
    first = (void (*)(long))dlsym(plugins[0], "work");
    second = (void (*)(long))dlsym(plugins[1], "work");
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}
