# The tools that every script uses.

# Some thousand lines that are the same every time.
words() {
    awk 'BEGIN { for (i = 1; i <= 3000; i++) { x = (x * 7919 + i) % 100003; print x, "word" x % 97, "line " i } }'
}

## coreutils-text
# packages: coreutils
prepare() { words > words; }
run() {
    sort words | uniq -c | sort -rn | head -20
    sort -k2,2 -k1n words | tail -5
    cut -d' ' -f2 words | sort -u | wc
    tr a-z A-Z < words | nl | tail -3
    paste -d, words words | fold -w 20 | tail -2
    comm -12 words words 2>&1 | head -3
    split -l 1000 words part. && cat part.* | cksum
    tac words | head -2; expand words | unexpand -a | md5sum
    shuf --random-source=words words | sha256sum; factor 1234567890123 97
    join -1 2 -2 2 words words 2>/dev/null | wc -l || true
    od -Ax -tx1z words | head -3; base64 words | tail -1; seq -w 1 3 100 | tail -1
    numfmt --to=iec 123456789; printf '%05.2f|%s\n' 3.14159 x; expr 6 \* 7; b2sum words; sum words
}

## coreutils-files
# packages: coreutils
run() {
    mkdir -p a/b/c && touch a/x a/b/y && ln -s ../x a/b/link && ln a/x a/hard
    cp -a a d && chmod 640 d/x && mv d/x d/z && rm -r d/b && stat -c '%n %a %h %F' a/x a/b/link d/z
    install -m 700 a/x bin && dd if=/dev/zero of=zero bs=1k count=100 status=none && truncate -s 5000 zero
    ls -lR --time-style=+ a | sed 's/ [a-z]* *root/ root/' | wc -l
    readlink -f a/b/link | xargs basename; realpath --relative-to=a d/z; mktemp -u x.XXXX | wc -c
    du -a --apparent-size a | sort | head -3; df / > /dev/null; tee copy < zero | wc -c; test -f copy && [ -L a/b/link ]
    timeout 5 true; nice -n 5 nice; env -i A=1 env; id -u; nproc > /dev/null; date -u -d @0 +%F; sync; rmdir nothing || echo "status $?"
}

## grep-sed-find
# packages: grep sed findutils
prepare() { words > words; mkdir -p t/u && cp words t/u/a.txt && cp words t/b.c; }
run() {
    grep -c word1 words; grep -E '^[0-9]{3} ' words | head -3; grep -rnP 'word(?=9)\d 'line' 1' . | sort | head -3 || true
    grep -Fxvf words words || echo none
    sed -n '/word5/,/word7/p' words | wc -l; sed -E 's/([0-9]+) (word[0-9]+)/\2 \1/;t;d' words | tail -2
    sed -i.bak '1~2d' t/b.c; find . -name '*.c*' -size +1k -printf '%p %s\n' | sort
    find . -type f -print0 | sort -z | xargs -0 -n1 -P2 cksum | sort | head -3
}

## awks
# packages: mawk gawk
prepare() { words > words; }
run() {
    for it in mawk gawk "gawk --posix"; do
        $it '{ n[$2]++; s += $1 } END { for (k in n) m += n[k] * length(k); printf "%d %d %.3f\n", NR, m, s / NR }' words
        $it 'BEGIN { for (i = 0; i < 200000; i++) x = (x * 31 + i) % 65521; print x, sin(1), substr("abcdef", 2, 3), toupper("x") }'
        $it '{ gsub(/[0-9]+/, "<&>"); if (NR % 1000 == 0) print | "sort -r" }' words
    done
    gawk 'BEGIN { PROCINFO["sorted_in"] = "@ind_str_asc"; a["x"]; a["b"]; for (k in a) print k; print strftime("%Y", 0, 1), gensub(/(a)(b)/, "\\2\\1", "g", "abab") }'
}

## bc-dc
# packages: bc dc
run() {
    echo 'scale=200; 4*a(1); define f(n) { if (n < 2) return 1; return n * f(n - 1); } f(100)' | bc -l
    dc -e '50k2vp 100 [d1-d1<f*]sf 10 lfxp 16o255p [5 6 7] P'
}

## diff-patch
# packages: diffutils patch
prepare() { words > a; sed '100,110d; s/line 2000$/changed/; 2500a new' a > b; }
run() {
    diff a b > it.diff || echo "status $?"
    diff -u a b | sed 's/\t.*//' > it.udiff || true
    patch -o c a it.udiff && cmp b c && sdiff -s a b | wc -l; diff3 a b c | head -5; cmp a b || echo "status $?"
}

## busybox
# packages: busybox-static
prepare() { words > words; }
run() {
    busybox sort words | busybox md5sum; busybox awk '{ s += $1 } END { print s }' words
    busybox gzip -k words && busybox zcat words.gz | busybox sha256sum; busybox tar c words | busybox tar t
    busybox sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $i'; busybox vi --help 2>&1 | head -1 || true
    busybox find . -type f | busybox xargs busybox wc -c | busybox sort; busybox sed -n 5p words; busybox expr 3 + 4
}

## ripgrep
# packages: ripgrep
prepare() { mkdir t; for i in 1 2 3 4 5 6; do words > t/$i.txt; done; }
run() { rg --sort path -c word12 t; rg -j4 'line (1|2)00\b' t | sort; rg -U --json 'word9\n?' t/1.txt | wc -l; rg nothing-there t || echo "status $?"; }
settle() { :; }

## tar
# packages: tar gzip bzip2 xz-utils zstd
prepare() { mkdir t; words > t/a; words | rev > t/b; ln -s a t/l; }
run() {
    for z in gzip bzip2 xz zstd; do
        tar -c --sort=name --mtime=@0 --owner=0 --group=0 --$z -f it.$z t && tar -tvf it.$z && mkdir out.$z && tar -xf it.$z -C out.$z
    done
    cat it.gzip | tar xzO t/b | cksum
}

## gzip
# packages: gzip
prepare() { words > words; }
run() { gzip -9nk words; gzip -l words.gz; zcat words.gz | cmp - words; gzip -t words.gz; head -c 2000 words.gz > broken.gz; zcat broken.gz | wc -c; gunzip broken.gz || echo "status $?"; }

## bzip2
# packages: bzip2
prepare() { words > words; }
run() { bzip2 -k words; bzcat words.bz2 | cmp - words; bzip2 -tv words.bz2; head -c 2000 words.bz2 > broken.bz2; bzip2 -t broken.bz2 || echo "status $?"; bzip2recover words.bz2; }

## xz
# packages: xz-utils
prepare() { words > words; }
run() { xz -9ek words; xz -T2 --block-size=20000 -c words > threads.xz; xz -lvv words.xz | grep -c .; xzcat words.xz threads.xz | wc; lzma -k words; unlzma -c words.lzma | cmp - words; }

## zstd
# packages: zstd
prepare() { words > words; for i in $(seq 60); do head -n $((i * 10)) words > s$i; done; }
run() { zstd -19 -k words; zstd -T2 -B100KB -c words > threads.zst; zstd -lv words.zst | wc -l; zstdcat words.zst | cmp - words; zstd --train s* -o dict -q; zstd -D dict s9 -c | zstd -d -D dict -c | cmp - s9; zstd -b1e3i0 words | wc -l; }
settle() { sed -i 's/.*%.*//; s/.*MB.s.*//' "$ERR" "$OUT"; }

## lz4
# packages: lz4
prepare() { words > words; }
run() { lz4 -9 words words.lz4; lz4cat words.lz4 | cmp - words; lz4 -tv words.lz4 2>&1 | tail -1; lz4 --list words.lz4; }
settle() { sed -i 's/.*MB.s.*//' "$ERR" "$OUT"; }

## 7z
# packages: p7zip-full
prepare() { words > words; touch -d @0 words; }
run() { 7z a -mx=9 -mmt=2 it.7z words | grep -v -i -e cpu -e threads; 7z l it.7z | tail -3; 7z t it.7z | tail -5; 7z x -oout it.7z > /dev/null; cmp words out/words; 7z a -tzip it.zip words > /dev/null; 7z l it.zip | tail -2; }
settle() { sed -i '/^p7zip\|Intel\|AMD\|CPU/d' "$OUT"; }

## zip
# packages: zip unzip
prepare() { words > words; touch -d @100000000 words; }
run() { zip -X9 it.zip words; unzip -v it.zip; unzip -d out it.zip; zip -P secret -X enc.zip words; unzip -P wrong -d no enc.zip || echo "status $?"; }
settle() { rm -f enc.zip; sed -i 's/incorrect password/wrong/' "$ERR"; }

## openssl-ciphers
# packages: openssl
prepare() { words > words; }
run() {
    for it in md5 sha1 sha256 sha512 sha3-256 blake2b512; do openssl dgst -$it words; done
    openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -pass pass:x -in words -out c && openssl enc -d -aes-256-cbc -pbkdf2 -S 0011223344556677 -pass pass:x -in c | cmp - words || echo "status $?"
    openssl enc -chacha20 -K 00 -iv 00 -in words 2>/dev/null | md5sum; openssl dgst -sha256 -hmac key words; openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt key:secret -kdfopt salt:salt HKDF
    openssl prime -generate -bits 64 | wc -c; openssl rand 100 | wc -c; openssl ciphers -tls1_3 -s
}

## openssl-keys
# packages: openssl
run() {
    openssl genrsa -out rsa 2048; openssl ecparam -name prime256v1 -genkey -out ec; openssl genpkey -algorithm ed25519 -out ed
    echo text > m; openssl dgst -sha256 -sign rsa -out s m; openssl rsa -in rsa -pubout -out pub; openssl dgst -sha256 -verify pub -signature s m
    openssl req -x509 -key ec -subj /CN=localhost -days 10 -out cert; openssl x509 -in cert -noout -subject; openssl verify -CAfile cert cert
    openssl pkeyutl -sign -rawin -inkey ed -in m -out s2; wc -c s2
}
settle() { rm -f rsa ec ed s s2 pub cert; sed -i '/^[.+*-]*$/d' "$ERR"; }

## openssl-tls
# packages: openssl
prepare() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -subj /CN=localhost -out cert; }
run() {
    openssl s_server -accept 4433 -key key -cert cert -naccept 1 -rev -quiet & 
    for i in $(seq 100); do nc_open 4433 && break; sleep 0.1; done
    (echo hello; sleep 1) | openssl s_client -connect 127.0.0.1:4433 -CAfile cert -verify_return_error -quiet -no_ign_eof; wait
}
nc_open() { grep -q ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null || grep -q ":$(printf %04X "$1") " /proc/net/tcp6; }

## curl-files
# packages: curl
prepare() { words > words; }
run() { curl -s "file://$PWD/words" | cksum; curl -s -r 0-99 "file://$PWD/words" -o part; curl -s http://127.0.0.1:1/ || echo "status $?"; curl --version | head -1; }

## curl-loopback
# packages: curl python3
prepare() { words > words; }
run() {
    python3 -u -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & server=$!
    curl -s --retry 50 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000/words | cksum
    curl -sZ 'http://127.0.0.1:8000/words?[1-20]' 2>/dev/null | cksum; curl -sI http://127.0.0.1:8000/nothing | head -1; wget -q -O w http://127.0.0.1:8000/words; cmp w words
    kill $server; wait $server 2> /dev/null || echo "status $?"
}
settle() { sed -i 's/\[[^]]*\]//' log; sort -o log log; }

## jq
# packages: jq
prepare() { words | awk '{ printf "{\"n\":%d,\"w\":\"%s\",\"l\":[%d,%d]}\n", $1, $2, NR, NR * 2 }' > words.json; }
run() { jq -s 'group_by(.w) | map({w: .[0].w, n: (map(.n) | add)}) | sort_by(-.n) | .[:3]' words.json; jq -c 'select(.n % 1000 == 0)' words.json | head -5; jq -n '[range(1000)] | map(. * .) | add, (now | type), ("aXbX" | gsub("X"; "-"))'; jq . < /dev/null; echo '{' | jq . || echo "status $?"; }

## sqlite3
# packages: sqlite3
run() {
    sqlite3 it.db <<'Q'
create table t(a integer primary key, b text, c real); create index i on t(b);
with recursive n(x) as (values(1) union all select x + 1 from n where x < 20000) insert into t select x, 'w' || (x * 7919 % 1009), x / 7.0 from n;
select count(*), sum(c), min(b), max(b) from t; select b, count(*) from t group by b order by 2 desc, 1 limit 3;
update t set c = c + 1 where b like 'w1%'; delete from t where a % 3 = 0; vacuum; pragma integrity_check;
create virtual table f using fts5(x); insert into f select b from t; select count(*) from f where f match 'w1*'; explain query plan select * from t where b = 'x';
select json_extract('{"a":[1,2]}', '$.a[1]'), printf('%.3f', sqrt(2));
Q
    sqlite3 it.db 'select * from none' || echo "status $?"
    sqlite3 it.db .dump | md5sum; sqlite3 it.db 'select hex(zeroblob(4))'
}

## m4-bison-flex
# packages: m4 bison flex gcc libc6-dev
prepare() {
    cat > c.y <<'Q'
%{
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%token N
%left '+' '-'
%left '*'
%%
all: | all e '\n' { printf("%d\n", $2); } | all error '\n' { yyerrok; };
e: N | e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; };
%%
int main(void) { return yyparse(); }
Q
    cat > c.l <<'Q'
%option noyywrap nounput noinput
%{
#include "c.tab.h"
#include <stdlib.h>
%}
%%
[0-9]+ { yylval = atoi(yytext); return N; }
[ ] ;
.|\n return *yytext;
Q
}
run() { bison -d c.y; flex c.l; gcc -O2 c.tab.c lex.yy.c -o c; printf '1+2*3\n(1+2)*3\n1+\n4*5-6\n' | ./c; echo 'define(`f'"'"', `ifelse($1, 0, 1, `eval($1 * f(decr($1)))'"'"')'"'"')f(10)' | m4; }

## make
# packages: make gcc libc6-dev
prepare() {
    for i in 1 2 3 4 5 6; do echo "int f$i(int x) { return x * $i; }" > f$i.c; done
    printf '#include <stdio.h>\nint f1(int); int f6(int); int main(void) { printf("%%d\\n", f1(6) + f6(7)); return 0; }\n' > main.c
    printf 'O = $(patsubst %%.c,%%.o,$(wildcard *.c))\nit: $O\n\t$(CC) -o $@ $^\n%%.o: %%.c\n\t$(CC) -O2 -c $<\nclean:; rm -f $O it\nfail: ; false\n' > Makefile
}
run() { make -j2 --output-sync=none | sort; ./it; make -q && echo "up to date"; touch f3.c; make -n; make fail || echo "status $?"; make clean; }

## cmake-ninja
# packages: cmake ninja-build g++
prepare() {
    printf 'cmake_minimum_required(VERSION 3.10)\nproject(It CXX)\nenable_testing()\nadd_library(l SHARED l.cpp)\nadd_executable(it it.cpp)\ntarget_link_libraries(it l)\nadd_test(NAME it COMMAND it)\n' > CMakeLists.txt
    echo 'int f(int x) { return x + 1; }' > l.cpp; echo 'int f(int); int main() { return f(-1); }' > it.cpp
}
run() { cmake -G Ninja -B b > log; ninja -C b | sed 's/^[[0-9/]*]//' | sort; ctest --test-dir b | grep -c Passed; ninja -C b -t targets | sort | head -3; }
settle() { rm -rf b/CMakeFiles b/.ninja_log b/.ninja_deps b/Testing; }

## git-local
# packages: git
prepare() { git config --global user.name N; git config --global user.email n@example.org; git config --global gc.auto 0; git config --global init.defaultBranch main; git config --global maintenance.auto false; }
run() {
    export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'
    git init -q r; cd r; for i in 1 2 3 4 5 6 7 8; do words | head -n $((i * 100)) > f; cp f g$i; git add .; git commit -qm "commit $i"; done
    git log --oneline --stat | cat; git checkout -qb side HEAD~3; echo x > f; git commit -qam side; git checkout -q main; git merge side || git checkout --ours f; git commit -qam merged
    git diff HEAD~2 --stat | cat; git blame f | md5sum; git log --graph --format=%h%d%s | cat; git rev-list --objects --all | wc -l; git fsck; git repack -adq; git verify-pack -v .git/objects/pack/*.idx | tail -2
    git stash list; git grep -c word12 HEAD | cat; git archive HEAD | md5sum; git bundle create ../b HEAD; git rebase -q --onto HEAD~4 HEAD~2 || git rebase --abort; git status --short
}
settle() { rm -rf r/.git/index; find r/.git -name '*.rev' -delete; find r -name '*.pack' -o -name '*.idx' | xargs rm -f; rm -f b; }

## git-clone-gc
# packages: git
prepare() { git config --global user.name N; git config --global user.email n@example.org; git init -q -b main r; cd r; for i in 1 2 3 4 5; do words | head -n $((i * 100)) > f; git add .; GIT_AUTHOR_DATE="1000000000 +0000" GIT_COMMITTER_DATE="1000000000 +0000" git commit -qm "commit $i"; done; }
run() { git clone -q --no-hardlinks "file://$PWD/r" c; git -C c log --oneline; git -C c gc -q; git -C c count-objects -v; git clone -q --depth 2 "file://$PWD/r" d; git -C d log --oneline; cd c; echo x >> f; git commit -qam more --date='1000000000 +0000'; git push -q origin HEAD:refs/heads/other; git -C ../r branch -a | cat; git fetch -q; git gc --auto; }
settle() { rm -rf c/.git r/.git d/.git; }

## rsync
# packages: rsync
prepare() { mkdir a; words > a/x; words | rev > a/y; ln -s x a/l; }
run() { rsync -a a/ b/; sed -i 100d a/x; rsync -avi --no-t --checksum a/ b/ | grep -v bytes; rsync -a --delete --exclude y a/ c/; diff -r a b && echo same; rsync -n nothing/ d/ || echo "status $?"; }

## bash
# packages: bash
prepare() { words > words; }
run() {
    bash -c 'declare -A n; while read -r a b c; do ((n[$b] += a)); done < words; for k in "${!n[@]}"; do echo "$k ${n[$k]}"; done | sort | md5sum
        f() { local x=$1; ((x < 2)) && echo 1 || echo $((x * $(f $((x - 1))))); }; f 12
        for i in {1..50}; do (exit $i) & p[$i]=$!; done; for j in "${p[@]}"; do wait $j || ((s += $?)); done; echo $s
        trap "echo usr1" USR1; kill -USR1 $$; trap "echo bye" EXIT; coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x; exec {COPROC[1]}>&-
        [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"; printf "%q\n" "a b"; cat <(echo sub) | tr a-z A-Z; echo ${PIPESTATUS[@]}; ulimit -n; set -o pipefail; false | true || echo pipefail; exit 3' || echo "status $?"
}

## dash
# packages: dash
run() { dash -c 'i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); x=$(printf %x $i); done; echo $x; sleep 0 & wait; trap "echo t" TERM; kill $$; (kill -9 $(sh -c "echo \$PPID")) || echo $?; exec sh -c "exit 4"' || echo "status $?"; }

## zsh
# packages: zsh
run() { zsh -fc 'typeset -A n; for i in {1..2000}; do (( n[k$((i % 17))] += i )); done; print -l ${(ok)n} | tail -2; print $n[k3]; x=(3 1 2); print ${(n)x} ${(j:,:)x}; zmodload zsh/mathfunc; print $((sqrt(2))); f() { return 7 }; f || print $?; print ${$(uname):l}; sleep 0 & wait; print -P %%; ls /nothing 2>/dev/null || print no; print *(N)'; }

## fish
# packages: fish
run() { fish --no-config -c 'for i in (seq 300); set -l x (math $i \* 2); end; echo $x; string replace -r "(a+)b" "\$1" aaab; function f; return 5; end; f; echo $status; printf "%s\n" (count (seq 10)); true | cat; set -U 2>/dev/null | wc -l' 2>&1 | sort; }
settle() { rm -rf .config .local .cache; }

## ed-vim-nano
# packages: ed vim
prepare() { words > words; }
run() { printf '1,5p\ng/word1/s//WORD/\n$=\nw out\nq\n' | ed -s words; vim -u NONE -es -c '%s/line \(\d\+\)/\1/g' -c 'sort n' -c 'g/word3/d' -c 'w vout' -c 'echo line("$")' -c 'qa!' words; vim -u NONE -es -c 'let x = 0 | for i in range(20000) | let x += i | endfor | call writefile([x, string(sqrt(2)), strftime("%Y", 0)], "vlog") | qa!'; xxd words | head -2; xxd words | xxd -r | cmp - words; }
settle() { rm -f .viminfo; }

## emacs
# packages: emacs-nox
prepare() { words > words; echo '(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (message "%d" (fib 18)) (with-temp-buffer (insert-file-contents "words") (sort-lines nil (point-min) (point-max)) (goto-char (point-min)) (while (re-search-forward "word\\([0-9]+\\)" nil t) (replace-match "<\\1>")) (write-region nil nil "out"))' > it.el; }
run() { emacs -Q --batch -l it.el; emacs -Q --batch -f batch-byte-compile it.el; emacs -Q --batch -l it.elc; emacs -Q --batch --eval '(princ (format "%S\n" (mapcar (lambda (x) (* x x)) (number-sequence 1 10))))' --eval '(kill-emacs 3)' || echo "status $?"; }
settle() { rm -rf .emacs.d .cache; sed -i 's/;;; .*//' it.elc; }

## tmux
# packages: tmux
run() {
    tmux -f /dev/null -S sock new-session -d -x 80 -y 24 'sh'
    tmux -S sock send-keys 'PS1=; clear; echo hello | tr a-z A-Z > out; echo done >> out; exit' Enter
    for i in $(seq 100); do grep -q done out 2>/dev/null && break; sleep 0.1; done
    cat out; for i in $(seq 100); do tmux -S sock ls >/dev/null 2>&1 || break; sleep 0.1; done; echo ended
}
settle() { rm -f sock; }

## screen
# packages: screen
run() { mkdir -m 700 s; export SCREENDIR=$PWD/s; screen -c /dev/null -dmS it sh -c 'echo in the screen > out'; for i in $(seq 100); do test -s out && break; sleep 0.1; done; cat out; sleep 1; screen -ls | tail -1 || true; }
settle() { sed -i 's/No Sockets.*//; s/.*Socket.*//' "$OUT"; }

## expect
# packages: expect
run() { expect -c 'set timeout 20; spawn -noecho sh; send "PS1=; stty -echo\r"; send "echo \$((6*7))-x\r"; expect -re {(\d+)-x}; puts "got $expect_out(1,string)"; send "exit 3\r"; expect eof; puts [lindex [wait] 3]' | tail -2; }

## gdb
# packages: gdb gcc libc6-dev
prepare() { echo 'int f(int x) { return x * 2; } int main(void) { int s = 0; for (int i = 0; i < 5; i++) s += f(i); return s; }' > it.c; gcc -g it.c -o it; }
run() { gdb -q -batch -ex 'info line f' -ex 'disassemble f' -ex 'print sizeof(long)' -ex 'python print(6*7)' ./it; }

## strace-ltrace
# packages: strace
run() { strace -o log -e trace=openat -f sh -c 'cat /dev/null; true'; grep -c exited log; strace -c -o sum true; test -s sum && echo sum; }
settle() { rm -f log sum; }

## procps
# packages: procps psmisc lsof
run() { sleep 30 & p=$!; until [ "$(ps -o comm= -p $p)" = sleep ]; do :; done; ps -o comm= -p $p; pgrep -c sleep; kill -STOP $p; ps -o stat= -p $p | cut -c1 | tr t T; kill -CONT $p; { kill $p; wait $p; } 2> /dev/null || echo "status $?"; uptime > /dev/null; free > /dev/null; top -b -n1 > /dev/null; vmstat > /dev/null; pstree > /dev/null; pwdx $$ > /dev/null; sysctl -n kernel.ostype; lsof -p $$ > /dev/null 2>&1; echo ok; }

## util-linux
# packages: util-linux bsdextrautils
run() { lscpu > /dev/null; flock lock sh -c 'echo locked'; (echo a 1; echo bbb 2) | column -t; rev < /etc/hostname > /dev/null; cal -h 2 2020 2>/dev/null || true; hexdump -C /etc/debian_version | tail -1; getopt -o ab: -- -a -b 3 x; setsid -w sh -c 'exit 3' || echo "status $?"; taskset -c 0 nproc; unshare -U id -u; fallocate -l 10000 f; script -qec 'echo in a terminal' /dev/null; prlimit --nofile=50 sh -c 'ulimit -n'; setarch -R uname; findmnt -n -o TARGET / ; uuidgen | wc -c; renice -n 1 $$ > /dev/null; chrt -b 0 true; mcookie | wc -c; logger --version | head -1; namei -m / | tail -1; look zzz /etc/services || true; lsns > /dev/null; mkfs.ext4 -q -U 00000000-0000-0000-0000-000000000001 -E hash_seed=00000000-0000-0000-0000-000000000001 -F f 2>/dev/null || echo small; blkid -p f || true; }
settle() { rm -f f; }

## file-man
# packages: file man-db groff-base less
prepare() { printf '.TH T 1\n.SH NAME\nt \\- thing\n.SH TEXT\nSome \\fBbold\\fR text.\n' > t.1; words > words; }
run() { file t.1 words /bin/sh -L | sed 's/BuildID.*//'; groff -man -Tascii t.1; man -l t.1 | cat; nroff -ms words | tail -3; less words | tail -1; }

## dpkg-apt
# packages: dpkg apt dpkg-dev
run() { dpkg -l coreutils | tail -1; dpkg -L bash | wc -l; dpkg --compare-versions 1.2 lt 1.10 && echo lt; apt-cache -o Dir::Cache="$PWD" -o Dir::State::Lists=/nothing show bash | grep -c Package; mkdir -p p/DEBIAN p/usr; printf 'Package: p\nVersion: 1\nArchitecture: all\nMaintainer: M <m@example.org>\nDescription: d\n' > p/DEBIAN/control; dpkg-deb --root-owner-group -b p p.deb; dpkg-deb -c p.deb; dpkg-deb -I p.deb; ar t p.deb; apt-config dump | wc -l; }
settle() { rm -f p.deb *.bin; sed -i 's/20[0-9-]* [0-9:]*//; s/ size [0-9]* bytes.*//' "$OUT"; }

## texts
# packages: gettext libxml2-utils xmlstarlet
prepare() { printf '<a><b i="1">x</b><b i="2">y</b></a>' > a.xml; }
run() { xmllint --format a.xml; xmllint --xpath '//b[@i=2]/text()' a.xml; echo; xmlstarlet sel -t -v 'count(//b)' -n a.xml; printf 'msgid "a"\nmsgstr "b"\n' | msgfmt -o it.mo -; msgunfmt it.mo; NAME=x envsubst '$NAME' < a.xml; gettext hello; iconv -f latin1 -t utf16 a.xml | od -c | head -2; locale -a | head -1; }

## ssh-keys-agent
# packages: openssh-client
run() { ssh-keygen -q -t ed25519 -N '' -C c -f k; ssh-keygen -q -t rsa -b 2048 -N '' -C c -f r; ssh-keygen -lf k.pub | cut -d' ' -f1,3-; eval "$(ssh-agent)" > /dev/null; ssh-add -q k r; ssh-add -l | cut -d' ' -f1,3-; echo text > t; ssh-keygen -q -Y sign -f k -n file t; printf 'me %s\n' "$(cat k.pub)" > allowed; ssh-keygen -Y verify -f allowed -I me -n file -s t.sig < t | sed 's/SHA256.*//'; ssh-agent -k > /dev/null; }
settle() { rm -f k* r r.pub t.sig allowed; }

## gpg
# packages: gnupg
run() { mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg -q --batch --passphrase '' --quick-generate-key 'N <n@example.org>' ed25519 sign never 2>/dev/null; gpg -q --batch --passphrase '' --quick-add-key "$(gpg --list-keys --with-colons | awk -F: '/^fpr/ { print $10; exit }')" cv25519 encr never; echo secret > t; gpg -q --batch -o t.gpg -er n@example.org t; gpg -q --batch -d t.gpg; gpg -q --batch --clearsign t; gpg --batch --verify t.asc 2>&1 | grep -c Good; gpg --batch -q -c --passphrase x --pinentry-mode loopback -o c t; gpg -q --batch -d --passphrase x --pinentry-mode loopback c; gpg --batch --print-md sha256 t; gpgconf --kill all; }
settle() { rm -rf g t.gpg t.asc c; }

## gpg-leaves-its-agent
# packages: gnupg
run() { mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg -q --batch --passphrase '' --quick-generate-key 'N <n@example.org>' ed25519 sign never 2>/dev/null; gpg -K --with-colons | grep -c ^sec; }
settle() { rm -rf g; }
