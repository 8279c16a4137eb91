# Programs in C and C++, built in every way that compilers and linkers know, and those themselves.

# A program that calls through tables, throws, has threads and signals, and states its results.
cxx() {
cat > it.cc <<'Q'
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <csetjmp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct Shape { virtual ~Shape() {} virtual int area() const = 0; };
struct Square : Shape { int n; Square(int n) : n(n) {} int area() const override { return n * n; } };
struct Bar : Shape { int n; Bar(int n) : n(n) {} int area() const override { return n; } };
static int parse(const char *s) {
    int v = 0;
    for (; *s; s++) switch (*s) {
        case '0' ... '9': v = v * 10 + *s - '0'; break;
        case '-': v = -v; break; case 'x': v *= 2; break; case 'y': v *= 3; break; case 'z': v *= 5; break; case 'w': v *= 7; break;
        default: throw std::invalid_argument(s);
    }
    return v;
}
static volatile sig_atomic_t met; static void handler(int) { met = met + 1; }
static jmp_buf there; static void jumper(int n) { if (n == 0) longjmp(there, 5); jumper(n - 1); }
int main() {
    std::vector<std::unique_ptr<Shape>> all; for (int i = 0; i < 1000; i++) if (i % 3) all.emplace_back(new Square(i % 10)); else all.emplace_back(new Bar(i));
    long sum = 0; for (auto &it : all) sum += it->area(); printf("%ld\n", sum);
    std::map<std::string, int> counts; for (int i = 0; i < 5000; i++) counts["k" + std::to_string(i * 7919 % 97)] += i; for (auto &[k, v] : counts) sum = (sum * 31 + v + k.size()) % 65521; printf("%ld\n", sum);
    int caught = 0; for (const char *s : {"12x", "1?", "7yz", "9-w", "q"}) try { sum += parse(s); } catch (const std::exception &e) { caught += strlen(e.what()); } printf("%ld %d\n", sum, caught);
    std::vector<long> parts(8); std::vector<std::thread> ts; for (int t = 0; t < 8; t++) ts.emplace_back([&, t] { for (int i = 0; i < 20000; i++) parts[t] = (parts[t] * 31 + i * t) % 65521; }); for (auto &t : ts) t.join(); for (long p : parts) printf("%ld ", p); puts("");
    signal(SIGUSR1, handler); for (int i = 0; i < 20; i++) raise(SIGUSR1); printf("%d\n", (int)met); int r = setjmp(there); if (r == 0) jumper(10); printf("%d\n", r);
    std::vector<int> v(3000); for (int i = 0; i < 3000; i++) v[i] = i * 7919 % 3001; std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; }); printf("%d %d\n", v[0], v[2999]); double d = 0; for (int i = 1; i < 1000; i++) d += 1.0 / i; printf("%.6f\n", d); return 3;
}
Q
}

# The same without threads and exceptions, for the smallest of C libraries.
c() {
cat > it.c <<'Q'
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int a(int x) { return x + 1; } static int b(int x) { return x * 2; } static int c(int x) { return x ^ 5; }
static int (*const table[])(int) = { a, b, c };
static int compare(const void *p, const void *q) { return *(const int *)p - *(const int *)q; }
static volatile sig_atomic_t met; static void handler(int s) { (void)s; met = met + 1; }
static jmp_buf there; static void jumper(int n) { if (!n) longjmp(there, 5); jumper(n - 1); }
static int classify(int x) { switch (x % 9) { case 0: return 3; case 1: return 14; case 2: return 15; case 3: return 92; case 4: return 65; case 5: return 35; case 6: return 89; case 7: return 79; default: return 32; } }
int main(void) {
    int v[2000], s = 0; for (int i = 0; i < 2000; i++) { v[i] = i * 7919 % 2003; s = (table[i % 3](s) + classify(i)) % 65521; }
    qsort(v, 2000, sizeof *v, compare); printf("%d %d %d\n", s, v[0], v[1999]);
    signal(SIGUSR1, handler); for (int i = 0; i < 20; i++) raise(SIGUSR1); int r = setjmp(there); if (!r) jumper(10);
    char *t = malloc(1000); memset(t, 'x', 999); t[999] = 0; printf("%d %d %zu %.4f %s\n", (int)met, r, strlen(t), 2.0 / 3, getenv("TZ")); free(t); fflush(stdout); return 3;
}
Q
}
each() { for it in "$@"; do echo "$it"; ./$it || echo "status $?"; done; }

## cxx-optimised
# packages: g++
prepare() { cxx; for o in O0 O1 O2 O3 Os Ofast; do g++ -$o -pthread it.cc -o $o; done; g++ -O2 -g -fno-omit-frame-pointer -pthread it.cc -o frames; g++ -O3 -march=native -funroll-loops -pthread it.cc -o unrolled; }
run() { each O0 O1 O2 O3 Os Ofast frames unrolled; }

## cxx-clang
# packages: clang g++
prepare() { cxx; for o in O0 O2 O3 Oz; do clang++ -$o -pthread it.cc -o $o; done; }
run() { each O0 O2 O3 Oz; }

## cxx-lto-split
# packages: g++ clang lld
prepare() { cxx; g++ -O2 -flto -pthread it.cc -o lto; g++ -O2 -freorder-blocks-and-partition -ffunction-sections -Wl,--gc-sections -pthread it.cc -o split; g++ -O2 -fprofile-generate -pthread it.cc -o gen; ./gen > /dev/null || true; g++ -O2 -fprofile-use -fprofile-correction -freorder-functions -pthread it.cc -o pgo -Wno-missing-profile || true; clang++ -O2 -flto=thin -fuse-ld=lld -pthread it.cc -o thin; g++ -O2 -falign-functions=1 -fno-align-loops -fno-align-jumps -pthread it.cc -o tight; rm -f *.gcda; }
run() { each lto split pgo thin tight; }

## cxx-static
# packages: g++
prepare() { cxx; g++ -O2 -static -pthread it.cc -o static; g++ -O2 -static-pie -pthread it.cc -o staticpie; g++ -O2 -no-pie -pthread it.cc -o nopie; g++ -O2 -static -s -pthread it.cc -o stripped; }
run() { each static staticpie nopie stripped; }

## cxx-cet-retpoline
# packages: g++ clang lld libclang-rt-14-dev
prepare() { cxx; g++ -O2 -fcf-protection=full -Wl,-z,ibt,-z,shstk -pthread it.cc -o cet; g++ -O2 -fcf-protection=none -mindirect-branch=thunk -mfunction-return=thunk -pthread it.cc -o thunk; g++ -O2 -fcf-protection=none -mindirect-branch=thunk-inline -pthread it.cc -o inline; clang++ -O2 -mretpoline -pthread it.cc -o retpoline; g++ -O2 -fstack-protector-all -D_FORTIFY_SOURCE=2 -fstack-clash-protection -Wl,-z,relro,-z,now -pthread it.cc -o hardened; g++ -O2 -fsplit-stack -fuse-ld=bfd -pthread it.cc -o splitstack 2>/dev/null || cp cet splitstack; clang++ -O2 -flto -fuse-ld=lld -fvisibility=hidden -fsanitize=cfi -pthread it.cc -o cfi; clang++ -O2 -fsanitize=safe-stack -pthread it.cc -o safestack; }
run() { each cet thunk inline retpoline hardened splitstack cfi safestack; }

## cxx-asan
# packages: g++ clang lld libclang-rt-14-dev
prepare() { cxx; g++ -O1 -g -fsanitize=address -pthread it.cc -o asan; clang++ -O1 -g -fsanitize=address -pthread it.cc -o clang; printf '#include <stdlib.h>\nint main(void) { char *p = malloc(4); p[4] = 1; return 0; }\n' > bad.c; gcc -g -fsanitize=address bad.c -o bad; }
run() { export ASAN_OPTIONS=detect_leaks=0; each asan clang bad; }
settle() { sed -i 's/0x[0-9a-f]*//g; s/==[0-9]*==//; s/[(][^)]*BuildId[^)]*[)]//' "$ERR"; }

## cxx-lsan
# packages: g++
prepare() { printf '#include <stdlib.h>\nint main(void) { volatile char *p = malloc(4); p = 0; return p != 0; }\n' > leak.c; gcc -g -fsanitize=address leak.c -o leak; printf 'int main() { return 0; }' > none.c; gcc -fsanitize=address none.c -o none; }
run() { each leak none; }
settle() { sed -i 's/0x[0-9a-f]*//g; s/==[0-9]*==//; s/[(][^)]*BuildId[^)]*[)]//' "$ERR"; }

## cxx-ubsan
# packages: g++ clang lld libclang-rt-14-dev
prepare() { cxx; g++ -O1 -g -fsanitize=undefined -pthread it.cc -o ubsan; clang++ -O1 -g -fsanitize=undefined -pthread it.cc -o clang; printf '#include <stdio.h>\nint main(int c, char **v) { int x = 0x7fffffff; x += c; (void)v; printf("%%d\\n", x << 31); return 0; }\n' > bad.c; gcc -g -fsanitize=undefined bad.c -o bad; gcc -fsanitize=undefined -fsanitize-undefined-trap-on-error bad.c -o trap; }
run() { each ubsan clang bad trap; }

## cxx-tsan
# packages: g++ clang lld libclang-rt-14-dev
prepare() { cxx; g++ -O1 -g -fsanitize=thread -pthread it.cc -o tsan; clang++ -O1 -g -fsanitize=thread -pthread it.cc -o clang; }
run() { for it in tsan clang; do setarch -R ./$it || echo "status $?"; done; }

## cxx-msan
# packages: clang libclang-rt-14-dev
prepare() { c; clang -O1 -g -fsanitize=memory it.c -o msan; printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { int *p = malloc(8); if (p[1]) puts("x"); return 0; }\n' > bad.c; clang -g -fsanitize=memory bad.c -o bad; }
run() { each msan; ./bad 2>/dev/null >/dev/null || echo "status $?"; }

## cxx-coverage-pg
# packages: g++
prepare() { cxx; c; }
run() { g++ -O1 --coverage -pthread it.cc -o cov; ./cov || echo "status $?"; gcov -n cov-it.cc 2>/dev/null || gcov -n it.cc; gcc -O1 -pg it.c -o pg; ./pg || echo "status $?"; gprof ./pg gmon.out | grep -c . > /dev/null; gcc -O1 -finstrument-functions it.c -o instr; ./instr || echo "status $?"; }
settle() { rm -f cov *.gcno *.gcda pg gmon.out instr; }

## c-musl
# packages: musl-tools
prepare() { c; musl-gcc -O2 it.c -o dynamic; musl-gcc -O2 -static it.c -o static; musl-gcc -O0 -static-pie -fPIE it.c -o pie 2>/dev/null || musl-gcc -O0 -static it.c -o pie; }
run() { each dynamic static pie; }

## c-omagic
# packages: gcc libc6-dev musl-tools
prepare() { c; musl-gcc -O2 -Wl,-N -static it.c -o omagic; gcc -O2 -Wl,-z,noseparate-code it.c -o together; gcc -O2 -Wl,-z,separate-code,-z,max-page-size=0x200000 it.c -o huge; gcc -O2 -Wl,-z,execstack it.c -o execstack; gcc -O2 -Wl,-Ttext-segment=0x10000000 -no-pie it.c -o moved; gcc -O2 -Wl,-z,norelro,--hash-style=sysv it.c -o sysv; gcc -O2 -mcmodel=large -no-pie it.c -o large; gcc -O2 -fno-plt -fno-asynchronous-unwind-tables it.c -o noplt; gcc -O2 -Wl,-z,lazy -fplt it.c -o lazy; }
run() { each omagic together huge execstack moved sysv large noplt lazy; }

## c-m32-nested
# packages: gcc libc6-dev
prepare() { c; printf '#include <stdio.h>\nint apply(int (*f)(int), int x) { return f(x); }\nint main(void) { int k = 40; int add(int x) { return x + k; } printf("%%d\\n", apply(add, 2)); void *l[] = { &&a, &&b, &&c }; int i = 0, s = 0; for (;;) { goto *l[i++ %% 3]; a: s += 1; continue; b: s += 10; if (i < 3000) continue; break; c: s += 100; } printf("%%d\\n", s); return 0; }\n' > nested.c; gcc -O2 -z execstack nested.c -o nested; gcc -O2 -m16 -c /dev/null -x c -o /dev/null 2>/dev/null || true; gcc -O3 -mavx2 -ffast-math it.c -o avx; tcc -v >/dev/null 2>&1 || true; }
run() { each nested avx; }

## c-tcc
# packages: tcc
prepare() { c; }
run() { tcc it.c -o it; ./it || echo "status $?"; tcc -run it.c || echo "status $?"; tcc -bench -c it.c -o it.o > /dev/null 2>&1; }

## gcc-compiles
# packages: gcc libc6-dev
prepare() { c; printf 'int main(void) { return x; }\n' > bad.c; }
run() { gcc -O2 -g -Wall -Wextra it.c -o it; ./it || echo "status $?"; gcc -O3 -S -o - it.c | wc -l; gcc -E it.c | md5sum; gcc bad.c || echo "status $?"; gcc -fanalyzer -O2 -c it.c; gcc -flto -O2 it.c -o lto; ./lto || echo "status $?"; objdump -d it.o | wc -l; nm it | wc -l; readelf -aW it | wc -l; size it.o; strip -o s it; objcopy -O binary -j .text it text; ar rcD l.a it.o; ranlib -D l.a; strings it | wc -l; addr2line -e it main || true; c++filt _ZN1a1bEi; ld --version | head -1; }

## g++-compiles
# packages: g++
prepare() { cxx; }
run() { g++ -O2 -Wall -std=c++20 -pthread it.cc -o it; ./it || echo "status $?"; g++ -O0 -g -pthread -c it.cc; c++filt < /dev/null; nm -C it.o | md5sum; }

## clang-compiles
# packages: clang g++ lld
prepare() { cxx; c; printf 'int main(void) { return x; }\n' > bad.c; }
run() { clang -O2 -g it.c -o it; ./it || echo "status $?"; clang++ -O2 -std=c++20 -pthread it.cc -o itxx; ./itxx || echo "status $?"; clang -fuse-ld=lld -O1 it.c -o lld; ./lld || echo "status $?"; clang bad.c || echo "status $?"; clang -O1 -emit-llvm -S it.c -o it.ll; wc -l it.ll; clang --analyze it.c; }
settle() { rm -f it itxx lld *.plist; }

## linkers
# packages: g++ lld mold
prepare() { cxx; c; g++ -O2 -pthread -c it.cc -o itxx.o; gcc -O2 -c it.c -o itc.o; }
run() { for l in bfd gold lld; do g++ -fuse-ld=$l -pthread itxx.o -o $l; ./$l || echo "status $?"; gcc -fuse-ld=$l -static itc.o -o $l.c; ./$l.c || echo "status $?"; done; mold -run g++ -pthread itxx.o -o mold; ./mold || echo "status $?"; ld.lld --version | wc -l; mold --version | wc -l; mold nothing.o || echo "status $?"; }

## llvm-tools
# packages: llvm clang
prepare() { c; clang -O1 -emit-llvm -c it.c -o it.bc; }
run() { llvm-dis it.bc -o it.ll; opt -O3 it.bc -o opt.bc; llc -O2 opt.bc -o it.s; lli it.bc || echo "status $?"; llvm-as it.ll -o - | md5sum; llvm-nm it.bc; clang it.s -no-pie -o it || clang it.s -o it; ./it || echo "status $?"; llvm-objdump -d it | wc -l; }
settle() { rm -f it; }

## valgrind-lists
# packages: valgrind
run() { valgrind --version; valgrind --help | wc -l; }

## nasm-yasm
# packages: nasm binutils
prepare() { printf 'global _start\nsection .text\n_start: mov rcx, 1000\n xor rdi, rdi\n.l: add rdi, rcx\n loop .l\n and rdi, 127\n mov rax, 60\n syscall\n' > it.asm; nasm -f elf64 it.asm; ld it.o -o it; strip -o stripped it; ld -N it.o -o omagic; }
run() { each it stripped omagic; nasm -f elf64 -l list it.asm; (echo 'bits 64'; cat it.asm) > flat.asm; nasm -f elf64 -O0 -o flat flat.asm; wc -c flat list; }
