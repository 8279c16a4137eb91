//~ kinds: step(edi)
//~ chosen: LINE:chosen(op)
//~ heights: LINE:pushed(height)
//~ amounts: sum height in LINE:pushed
#include "seen.h"

static long stack[64];

__attribute__((noipa)) void push(long height, long value)
{
    stack[height & 63] = value;
}

__attribute__((noipa)) long step(unsigned op, long height)
{
    saw("kinds", NUMBER, op, 0);
    saw("chosen", NUMBER, op, 0);
    switch (op) { //@chosen
    case 0: push(height, 1); return height + 1;
    case 1: push(height, 2); return height + 1;
    case 2: return height > 0 ? height - 1 : 0;
    case 3: return height / 2;
    case 4: return height ^ 1;
    case 5: push(0, height); return height;
    case 6: return 0;
    case 7: return height + 3;
    default: break;
    }
    saw("heights", NUMBER, height, 0);
    saw("amounts", NUMBER, 0, height);
    push(height, height * 2); //@pushed
    return height;
}

int main(void)
{
    unsigned long seed = 9;
    long height = 0;
    for (int i = 0; i < 4000; i++)
        height = step(dice(&seed) % 12, height) % 40;
    tell();
    return stack[3] == 77;
}
