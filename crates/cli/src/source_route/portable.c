#if !defined(__GNUC__) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__STDC_NO_ATOMICS__)
_Atomic headcount_long_@TAG@ headcount_counters_@TAG@[@SIZE@];
#else
headcount_long_@TAG@ headcount_counters_@TAG@[@SIZE@];
#endif
int headcount_started_@TAG@;
static long headcount_process_@TAG@;

static long headcount_pid_@TAG@(void)
{
#if defined(__unix__) || defined(__linux__) || defined(__APPLE__)
    return (long)getpid();
#else
    return 0;
#endif
}

/* Adds a text or a number to a name, and says where that ends. */
static unsigned headcount_add_@TAG@(char *name, unsigned at, const char *text, unsigned long number)
{
    char digits[24];
    unsigned some = 0;
    while (text && *text && at < 1000)
        name[at++] = *text++;
    if (!text)
        do
            digits[some++] = (char)('0' + number % 10);
        while ((number /= 10) != 0);
    while (some && at < 1000)
        name[at++] = digits[--some];
    name[at] = 0;
    return at;
}

static void headcount_number_@TAG@(@FILE@ *file, headcount_long_@TAG@ number)
{
    unsigned char bytes[8];
    unsigned at;
    for (at = 0; at < 8; at++)
        bytes[at] = (unsigned char)(number >> 8 * at);
    fwrite(bytes, 1, 8, file);
}

/* The words of the program's command, each with a 0 behind it, and how many bytes they take: as
   /proc tells, or only the first, where the C library has that; or none. */
static void headcount_command_@TAG@(@FILE@ *file)
{
    headcount_long_@TAG@ length = 0;
#if defined(__unix__) || defined(__linux__) || defined(__APPLE__)
    static char bytes[4096];
    const char *name = 0;
#if defined(__gnu_linux__) && !defined(__ANDROID__)
    char **invoked = &program_invocation_name;
#endif
    @FILE@ *command = fopen("/proc/self/cmdline", "rb");
    if (command) {
        unsigned long some;
        while ((some = (unsigned long)fread(bytes, 1, sizeof bytes, command)) != 0) {
            fwrite(bytes, 1, some, file);
            length += some;
        }
        fclose(command);
    }
#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__) || defined(__DragonFly__)
    name = getprogname();
#elif defined(__gnu_linux__) && !defined(__ANDROID__)
    name = invoked ? *invoked : 0;
#endif
    if (!length && name)
        do
            fwrite(name, 1, 1, file);
        while (length++, *name++);
#endif
    headcount_number_@TAG@(file, length);
}

/* A file that is new: several runs do not get into each other's way. */
static @FILE@ *headcount_open_@TAG@(void)
{
    static char name[1024];
    const char *folder = getenv("HEADCOUNT_DIR");
    @FILE@ *file = 0;
    unsigned long number;
    unsigned at, end;
    if (!folder || !*folder)
        folder = "headcount.counts";
#if defined(__unix__) || defined(__linux__) || defined(__APPLE__)
    (void)mkdir(folder, 0700);
#endif
    at = headcount_add_@TAG@(name, 0, folder, 0);
    at = headcount_add_@TAG@(name, at, "/@STEM@-@TAG@-", 0);
    at = headcount_add_@TAG@(name, at, 0, (unsigned long)headcount_process_@TAG@);
    at = headcount_add_@TAG@(name, at, "-", 0);
    for (number = 0; !file && number < 100000; number++) {
        end = headcount_add_@TAG@(name, at, 0, number);
        headcount_add_@TAG@(name, end, "@SUFFIX@", 0);
        file = fopen(name, "wbx");
    }
    return file;
}

static void headcount_finish_@TAG@(void)
{
    @FILE@ *file;
    unsigned long at;
    /* A forked child has its parent's counts as well as its own: they cannot be told apart. */
    if (headcount_pid_@TAG@() != headcount_process_@TAG@)
        return;
    file = headcount_open_@TAG@();
    if (!file)
        return;
    fwrite("@MAGIC@", 1, 8, file);
    headcount_number_@TAG@(file, @VERSION@);
    headcount_number_@TAG@(file, (headcount_long_@TAG@)headcount_process_@TAG@);
    headcount_number_@TAG@(file, @LENGTH@);
    fwrite(headcount_map_@TAG@, 1, @LENGTH@, file);
    headcount_number_@TAG@(file, @COUNT@);
    for (at = 0; at < @COUNT@; at++)
        headcount_number_@TAG@(file, headcount_counters_@TAG@[at]);
    headcount_command_@TAG@(file);
    fclose(file);
}

void headcount_start_@TAG@(void)
{
#if defined(__GNUC__)
    if (__atomic_exchange_n(&headcount_started_@TAG@, 1, __ATOMIC_ACQ_REL))
        return;
#else
    headcount_started_@TAG@ = 1;
#endif
    headcount_process_@TAG@ = headcount_pid_@TAG@();
    atexit(headcount_finish_@TAG@);
}
