// Exceptions pass twenty functions, each of which has something to tidy up.
static long tidied, caught;

struct Tidy {
    __attribute__((noipa)) ~Tidy() { tidied++; }
};

__attribute__((noipa)) int deep(int level)
{
    Tidy tidy;
    if (level == 0)
        throw level;
    return deep(level - 1) + 1;
}

__attribute__((noipa)) void attempt()
{
    try {
        deep(19);
    } catch (int) {
        caught++; // caught
    }
}

int main()
{
    for (int i = 0; i < 3000; i++)
        attempt();
    return tidied != 60000 || caught != 3000;
}
