// Two libraries come and go in turns, usually at the same place.
#include <dlfcn.h>

static int call(const char *path, const char *name, int x)
{
    void *library = dlopen(path, RTLD_NOW);
    int (*function)(int) = (int (*)(int))dlsym(library, name);
    x = function(x) + function(x);
    dlclose(library);
    return x;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 25; i++) {
        sum += call("./one", "one", i);
        sum += call("./two", "two", i);
    }
    return sum != 25 * 6 + 24 * 25 * 2;
}
