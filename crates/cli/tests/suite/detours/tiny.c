// A program without a library: it takes five steps and ends.
__attribute__((noipa)) int step(int x)
{
    return x + 1;
}

void _start(void)
{
    int status = 0;
    for (int i = 0; i < 5; i++)
        status = step(status);
    __asm__ volatile("syscall" : : "a"(60L), "D"((long)status) : "rcx", "r11", "memory");
    __builtin_unreachable();
}
