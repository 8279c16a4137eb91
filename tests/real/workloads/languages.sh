# Compilers, interpreters and the programs that come out of them.

## ghc-compiles
# packages: ghc
prepare() { cat > It.hs <<'Q'
module Main where
import qualified Data.Map.Strict as M
import Data.List (sortOn)
main :: IO ()
main = do
  let m = M.fromListWith (+) [(x * 7919 `mod` 101, x) | x <- [1 .. 20000 :: Int]]
  mapM_ print (take 5 (sortOn (negate . snd) (M.toList m)))
  print (sum (takeWhile (< 100000) (filter odd (map (^ (2 :: Int)) [1 ..]))) :: Integer)
Q
}
run() { ghc -v0 -O1 It.hs; ./It; ghc -v0 -e 'sum [1..100]' ; ghc --version; }
settle() { rm -f It; }

## haskell-plain
# packages: ghc
prepare() { cat > It.hs <<'Q'
import Control.Exception
import qualified Data.Map as M
import System.Exit
import Text.Read (readMaybe)
queens :: Int -> Int
queens n = go n [] where
  go 0 _ = 1
  go k qs = sum [go (k - 1) (q : qs) | q <- [1 .. n], safe q qs]
  safe q qs = and [q /= c && abs (q - c) /= d | (d, c) <- zip [1 ..] qs]
main :: IO ()
main = do
  print (queens 8)
  print (M.foldr (+) 0 (M.fromList (zip [1 .. 5000 :: Integer] (iterate (* 3) 1))) `mod` 1000007)
  r <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
  print r
  r2 <- try (evaluate (head ([] :: [Int]))) :: IO (Either SomeException Int)
  putStrLn (either (const "no head") show r2)
  print (readMaybe "12" :: Maybe Int, product [1 .. 50 :: Integer])
  exitWith (ExitFailure 3)
Q
ghc -v0 -O1 It.hs; }
run() { ./It || echo "status $?"; ./It +RTS -A64k -RTS || echo "status $?"; ./It +RTS -s 2>&1 | wc -l; }

## haskell-threaded
# packages: ghc
prepare() { cat > It.hs <<'Q'
import Control.Concurrent
import Control.Monad
import qualified Data.IORef as R
main :: IO ()
main = do
  box <- newMVar (0 :: Int)
  done <- newEmptyMVar
  forM_ [1 .. 200] $ \i -> forkIO $ do
    forM_ [1 .. 100] $ \j -> modifyMVar_ box (pure . (+ (i * j `mod` 7)))
    putMVar done ()
  replicateM_ 200 (takeMVar done)
  readMVar box >>= print
  c <- newChan
  _ <- forkOS (mapM_ (writeChan c) [1 .. 1000 :: Int])
  xs <- replicateM 1000 (readChan c)
  print (sum xs)
  threadDelay 1000
  t <- forkIO (threadDelay 100000000)
  killThread t
  r <- R.newIORef (0 :: Int)
  forM_ [1 .. 100000] $ \i -> R.modifyIORef' r (+ i)
  R.readIORef r >>= print
Q
ghc -v0 -O1 -threaded -rtsopts It.hs; }
run() { ./It +RTS -N2; ./It +RTS -N4 -A256k; ./It; }

## haskell-dynamic
# packages: ghc
prepare() { echo 'main = interact (unlines . map (show . (* 2) . read) . lines)' > It.hs; ghc -v0 -O0 It.hs; strip It; }
run() { seq 1 2000 | ./It | md5sum; echo x | ./It || echo "status $?"; }

## shellcheck
# packages: shellcheck
prepare() { printf '#!/bin/sh\nfor f in `ls *.txt`; do\n  cat $f | grep x\n  [ $f == "a" ] && rm -rf $UNSET/*\ndone\n' > it.sh; }
run() { shellcheck it.sh || echo "status $?"; shellcheck -f json it.sh | md5sum; shellcheck /usr/bin/ldd > out || echo "status $?"; }

## pandoc
# packages: pandoc
prepare() { printf '# Title\n\nSome *text* with [link](http://x.org) and $x^2$.\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n' > it.md; }
run() { for to in html latex rst org man docbook5 native plain; do pandoc -t $to it.md; done; pandoc it.md -o it.html; pandoc -f html -t markdown it.html; pandoc nothing.md || echo "status $?"; }

## hledger
# packages: hledger
prepare() { awk 'BEGIN { for (i = 1; i < 300; i++) printf "2020-%02d-%02d p%d\n  expenses:e%d  %d.%02d EUR\n  assets:cash\n\n", i % 12 + 1, i % 28 + 1, i, i % 7, i, i % 100 }' > it.journal; }
run() { hledger -f it.journal balance; hledger -f it.journal register -M expenses | tail -5; hledger -f it.journal is -O csv; hledger -f it.journal stats | grep -c .; hledger -f it.journal print | md5sum; }

## xmonad-compiles
# packages: ghc libghc-xmonad-dev
prepare() { printf 'import XMonad\nimport qualified XMonad.StackSet as W\nmain = print (W.integrate (W.insertUpStack)) `seq` print (borderWidth def)\ninstance Show (a -> b) where show _ = "f"\n' > it.hs; printf 'import XMonad\nmain :: IO ()\nmain = print (borderWidth def) >> print (workspaces def)\n' > it.hs; }
run() { ghc -v0 it.hs -o it; ./it; }
settle() { rm -f it; }

## happy-alex
# packages: happy alex
prepare() { printf '{\nmodule Main where\n}\n%%wrapper "basic"\ntokens :-\n  [a-z]+ { id }\n  . ;\n{\nmain = print (alexScanTokens "ab cd")\n}\n' > l.x; printf '{\nmodule P where\n}\n%%name p\n%%tokentype { Char }\n%%error { const undefined }\n%%token a { '"'a'"' }\n%%%%\nS : a S { 1 + $2 } | { 0 }\n' > p.y; }
run() { alex l.x; happy p.y -i; wc -l l.hs p.hs p.info; }

## hlint
# packages: hlint
prepare() { printf 'module M where\nf x = map (\\y -> g y) x\ng y = if y == True then not (not y) else concat (map h [y])\nh z = (z)\n' > it.hs; }
run() { hlint it.hs || echo "status $?"; }

## go-goroutines
# packages: golang-go
prepare() { cat > it.go <<'Q'
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type shape interface{ area() int }
type sq struct{ n int }

func (s sq) area() int { return s.n * s.n }

func worker(in <-chan int, out chan<- int, wg *sync.WaitGroup) {
	defer wg.Done()
	for x := range in {
		m := map[int]string{}
		for i := 0; i < 50; i++ {
			m[i*x%37] += "x"
		}
		out <- len(m) + sq{x % 5}.area()
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	in, out := make(chan int, 10), make(chan int, 10)
	var wg sync.WaitGroup
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go worker(in, out, &wg)
	}
	go func() {
		for i := 0; i < 5000; i++ {
			in <- i
		}
		close(in)
		wg.Wait()
		close(out)
	}()
	sum := 0
	for x := range out {
		sum += x
	}
	fmt.Println(sum)
	runtime.GC()
	select {
	case <-time.After(time.Millisecond):
		fmt.Println("timeout")
	}
	words := strings.Fields(strings.Repeat("the quick brown fox ", 100))
	sort.Strings(words)
	fmt.Println(words[0], words[399], len(words))
	var mu sync.Mutex
	n := 0
	var g sync.WaitGroup
	for i := 0; i < 100; i++ {
		g.Add(1)
		go func() { defer g.Done(); for j := 0; j < 1000; j++ { mu.Lock(); n++; mu.Unlock() } }()
	}
	g.Wait()
	fmt.Println(n)
	os.Exit(5)
}
Q
export GOCACHE=$PWD/../gocache GO111MODULE=off; go build -o it it.go; go build -ldflags '-s -w' -o stripped it.go; go build -buildmode=pie -o pie it.go; }
run() { ./it || echo "status $?"; ./stripped || echo "status $?"; ./pie || echo "status $?"; }

## go-panics
# packages: golang-go
prepare() { cat > it.go <<'Q'
package main

import (
	"errors"
	"fmt"
)

func divide(a, b int) (q int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %v", r)
		}
	}()
	return a / b, nil
}

func nested(n int) (s string) {
	defer func() { s += fmt.Sprint(n, recover() != nil) }()
	if n > 0 {
		s = nested(n - 1)
		panic(errors.New("deep"))
	}
	var p *int
	return fmt.Sprint(*p)
}

func main() {
	for i := 0; i < 300; i++ {
		if _, err := divide(1, i%3); err != nil && i < 3 {
			fmt.Println(err)
		}
	}
	fmt.Println(nested(5))
	var a []int
	defer fmt.Println("deferred")
	defer func() { fmt.Println(recover()); panic("last") }()
	fmt.Println(a[3])
}
Q
export GOCACHE=$PWD/../gocache GO111MODULE=off; go build -o it it.go; go build -ldflags '-s -w' -o stripped it.go; }
run() { ./it || echo "status $?"; ./stripped || echo "status $?"; }
settle() { sed -i 's/0x[0-9a-f]*//g; s/goroutine [0-9]*//' "$ERR"; }

## go-cgo-plugin
# packages: golang-go gcc libc6-dev
prepare() {
export GOCACHE=$PWD/../gocache GO111MODULE=off
cat > cgo.go <<'Q'
package main

/*
#include <stdlib.h>
#include <string.h>
typedef int (*cmp)(const void *, const void *);
extern int goCompare(void *, void *);
static void sortThem(int *x, int n) { qsort(x, n, sizeof *x, (cmp)goCompare); }
*/
import "C"
import (
	"fmt"
	"unsafe"
)

//export goCompare
func goCompare(a, b unsafe.Pointer) C.int { return *(*C.int)(a) - *(*C.int)(b) }

func main() {
	x := make([]C.int, 500)
	for i := range x {
		x[i] = C.int(i * 7919 % 503)
	}
	C.sortThem(&x[0], C.int(len(x)))
	s := C.CString("hello")
	fmt.Println(x[0], x[499], C.strlen(s))
	C.free(unsafe.Pointer(s))
	done := make(chan int)
	for i := 0; i < 20; i++ {
		go func() { C.sortThem(&make([]C.int, 10)[0], 10); done <- 1 }()
	}
	for i := 0; i < 20; i++ {
		<-done
	}
}
Q
go build -o cgo cgo.go
mkdir p m; printf 'package main\nimport "fmt"\nfunc Hello(n int) string { return fmt.Sprint("hello ", n) }\n' > p/p.go
printf 'package main\nimport ("fmt"; "plugin")\nfunc main() {\n p, err := plugin.Open("p.so"); if err != nil { panic(err) }\n f, _ := p.Lookup("Hello"); fmt.Println(f.(func(int) string)(3))\n _, err = p.Lookup("Nothing"); fmt.Println(err != nil)\n}\n' > m/m.go
go build -buildmode=plugin -o p.so p/p.go; go build -o main m/m.go
}
run() { ./cgo; ./main; }

## go-builds
# packages: golang-go
prepare() { mkdir it; printf 'package it\nfunc F(n int) int { if n < 2 { return n }; return F(n-1) + F(n-2) }\n' > it/it.go; printf 'package it\nimport "testing"\nfunc TestF(t *testing.T) { if F(20) != 6765 { t.Fail() } }\n' > it/it_test.go; printf 'module it\n\ngo 1.19\n' > it/go.mod; }
run() { export GOCACHE=$PWD/gocache GOFLAGS=-mod=mod GOPROXY=off; cd it; go vet; go test | sed 's/\t[0-9.]*s$//'; gofmt -l .; go list; go version > /dev/null; }
settle() { rm -rf gocache; }

## go-http
# packages: golang-go
prepare() { cat > it.go <<'Q'
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

func main() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path})
	}))
	defer s.Close()
	var wg sync.WaitGroup
	sums := make([][32]byte, 40)
	for i := range sums {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			r, err := http.Get(fmt.Sprintf("%s/%d", s.URL, i))
			if err != nil {
				panic(err)
			}
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			sums[i] = sha256.Sum256(b)
		}(i)
	}
	wg.Wait()
	h := sha256.New()
	for _, x := range sums {
		h.Write(x[:])
	}
	fmt.Printf("%x\n", h.Sum(nil))
}
Q
export GOCACHE=$PWD/../gocache GO111MODULE=off; go build -o it it.go; }
run() { ./it; }

## mono
# packages: mono-runtime mono-mcs
prepare() { cat > it.cs <<'Q'
using System; using System.Collections.Generic; using System.Linq; using System.Threading; using System.Threading.Tasks;
class It {
  static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
  static int Main() {
    Console.WriteLine(Fib(20));
    var d = Enumerable.Range(1, 5000).GroupBy(x => x % 7).ToDictionary(g => g.Key, g => g.Sum());
    foreach (var k in d.Keys.OrderBy(x => x)) Console.WriteLine(k + " " + d[k]);
    try { object o = null; o.ToString(); } catch (NullReferenceException) { Console.WriteLine("null"); }
    try { int z = 0; Console.WriteLine(1 / z); } catch (DivideByZeroException) { Console.WriteLine("zero"); }
    int n = 0; var ts = Enumerable.Range(0, 8).Select(i => new Thread(() => { for (int j = 0; j < 1000; j++) Interlocked.Increment(ref n); })).ToList();
    ts.ForEach(t => t.Start()); ts.ForEach(t => t.Join()); Console.WriteLine(n);
    Console.WriteLine(Task.Run(() => 42).Result); GC.Collect(); Console.WriteLine(string.Format("{0:F3}", Math.Sqrt(2))); return 3;
  }
}
Q
mcs it.cs; }
run() { mono it.exe || echo "status $?"; mono -O=-all it.exe || echo "status $?"; }

## mono-compiles
# packages: mono-runtime mono-mcs
prepare() { echo 'class X { static void Main() { System.Console.WriteLine("hello"); } }' > x.cs; }
run() { mcs x.cs; mono x.exe; mcs nothing.cs || echo "status $?"; }
settle() { rm -f x.exe; }

## php
# packages: php-cli
prepare() { cat > it.php <<'Q'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
echo fib(20), "\n";
$a = []; for ($i = 0; $i < 20000; $i++) $a["k" . $i % 997] = ($a["k" . $i % 997] ?? 0) + $i; ksort($a); echo count($a), " ", md5(json_encode($a)), "\n";
class P { public function __construct(public int $x) {} public function __get($n) { return "no $n"; } }
function gen() { for ($i = 0; $i < 1000; $i++) { $r = yield $i; } return 7; }
$s = 0; $g = gen(); foreach ($g as $v) $s += $v; echo $s, $g->getReturn(), (new P(3))->y, "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo get_class($e), "\n"; } finally { echo "finally\n"; }
echo preg_replace_callback('/\d+/', fn($m) => $m[0] * 2, "a1b22c333"), " ", sprintf("%08.3f|%'*10s", 3.14159, "x"), "\n";
usort($b = range(100, 1), fn($x, $y) => $x <=> $y); echo strlen(serialize($a)), " ", crc32(str_repeat("ab", 999)), " ", number_format(1234567.891, 2), "\n";
echo match(true) { PHP_INT_SIZE == 8 => "64\n", default => "?\n" }; exit(4);
Q
}
run() { php it.php || echo "status $?"; php -r 'echo PHP_MAJOR_VERSION;'; php -l it.php; php -m | wc -l; }

## php-opcache
# packages: php-cli php-common php8.2-opcache
prepare() { printf '<?php\nfunction f($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s = ($s * 31 + $i) %% 65521; } return $s; }\nfor ($j = 0; $j < 50; $j++) $x = f(2000 + $j);\necho $x, " ", opcache_get_status(false)["opcache_enabled"] ? "on" : "off", "\\n";\n' > it.php; }
run() { php -d zend_extension=opcache -d opcache.enable_cli=1 it.php; php -d zend_extension=opcache -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=1255 it.php; php -d zend_extension=opcache -d opcache.enable_cli=1 -d opcache.file_update_protection=0 -d opcache.file_cache="$PWD" it.php; php -d zend_extension=opcache -d opcache.enable_cli=0 -r 'echo 1+1;'; }
settle() { find . -name '*.bin' -delete; }

## ruby
# packages: ruby
prepare() { cat > it.rb <<'Q'
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
puts fib(20)
h = Hash.new(0); 20000.times { |i| h["k#{i % 97}"] += i }; p h.sort.first(2), h.values.sum
puts "a1b22".gsub(/\d+/) { |m| (m.to_i * 2).to_s }, (2**200).to_s, [3, 1, 2].sort_by { -_1 }.inspect
begin; raise ArgumentError, "no"; rescue => e; puts e.class; ensure; puts "ensured"; end
q = Queue.new; ts = 8.times.map { |i| Thread.new { 100.times { |j| q << i * j } } }; ts.each(&:join); s = 0; s += q.pop until q.empty?; p s
f = Fiber.new { 3.times { |i| Fiber.yield i }; :done }; p 4.times.map { f.resume }
p catch(:x) { 10.times { |i| throw :x, i if i == 7 } }, (1..Float::INFINITY).lazy.select(&:even?).first(3), `echo sub`.chomp, Process.wait2(fork { exit 3 })[1].exitstatus
def deep(n) = deep(n + 1)
begin; deep(0); rescue SystemStackError; puts "deep"; end
require "json"; puts JSON.generate({a: [1, nil, 2.5]}); GC.start; at_exit { puts "bye" }; exit 2
Q
}
run() { ruby it.rb || echo "status $?"; ruby --yjit -e 'x = 0; 100000.times { |i| x += i }; p x' 2>/dev/null || ruby -e 'p 1'; ruby -e 'raise "x"' || echo "status $?"; ruby -rzlib -e 'p Zlib.crc32("x" * 1000)'; erb -v 2>&1 | wc -l; }

## perl
# packages: perl
prepare() { cat > it.pl <<'Q'
use strict; use warnings; use List::Util qw(sum max); use Digest::MD5 qw(md5_hex); use POSIX qw(floor);
my %h; $h{"k" . $_ % 97} += $_ for 1 .. 20000; print join(",", map { "$_=$h{$_}" } (sort keys %h)[0 .. 2]), "\n";
my $t = join " ", map { $_ * 7919 % 1009 } 1 .. 2000; my $n = () = $t =~ /\b(\d)\d\1\b/g; print "$n ", md5_hex($t), "\n";
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(18), "\n";
eval { die { code => 3 } }; print $@->{code}, "\n"; local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 5; }; print $@;
my $pid = fork; if (!$pid) { exit 5 } waitpid $pid, 0; print $? >> 8, "\n"; print sprintf("%.3f %s", sqrt 2, scalar reverse "abc"), " ", sum(1 .. 10), "\n";
my @s = sort { $a <=> $b } map { $_ * 31 % 101 } 1 .. 100; print "@s[0 .. 4]\n"; open my $f, "|-", "sort -r" or die; print $f "b\na\n"; close $f; printf "%s\n", `echo sub`; use bigint; print 2 ** 100, "\n"; exit 6;
Q
}
run() { perl it.pl || echo "status $?"; perl -ne 'print if /^root/' /etc/passwd; perl -e 'use threads; my @t = map { threads->create(sub { my $s = 0; $s += $_ for 1 .. 1000; $s }) } 1 .. 5; print $_->join, "\n" for @t'; perldoc -l strict >/dev/null 2>&1 || true; perl -MO=Deparse -e 'print 1+2' 2>&1; }

## python
# packages: python3
prepare() { cat > it.py <<'Q'
import asyncio, collections, concurrent.futures as cf, decimal, functools, hashlib, json, multiprocessing as mp, os, re, signal, sqlite3, subprocess, sys, threading, zlib
@functools.lru_cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def sq(x): return x * x
if __name__ == "__main__":
    print(fib(90), sum(i * i for i in range(50000)), collections.Counter("mississippi").most_common(2))
    with cf.ThreadPoolExecutor(8) as p: print(sum(p.map(sq, range(1000))))
    with mp.get_context("fork").Pool(3) as p: print(sum(p.map(sq, range(500))))
    with mp.get_context("spawn").Pool(2) as p: print(p.map(sq, [1, 2, 3]))
    async def go(): return await asyncio.gather(*(asyncio.sleep(0.001 * (i % 3), i) for i in range(50)))
    print(sum(asyncio.run(go())), re.sub(r"(\d+)", lambda m: str(int(m[1]) * 2), "a1b22"), decimal.Decimal(2).sqrt())
    print(hashlib.sha256(b"x" * 9999).hexdigest()[:16], zlib.crc32(b"abc"), json.dumps({"b": [1, None], "a": 1.5}, sort_keys=True))
    c = sqlite3.connect(":memory:"); c.execute("create table t(a)"); c.executemany("insert into t values(?)", ((i,) for i in range(1000))); print(c.execute("select sum(a) from t").fetchone())
    signal.signal(signal.SIGUSR1, lambda *_: print("usr1")); os.kill(os.getpid(), signal.SIGUSR1)
    print(subprocess.run(["sh", "-c", "echo out; exit 3"], capture_output=True)); sys.setrecursionlimit(5000)
    def deep(n): return deep(n + 1)
    try: deep(0)
    except RecursionError: print("deep")
    sys.exit(7)
Q
}
run() { python3 -B it.py || echo "status $?"; python3 -c '1/0' || echo "status $?"; python3 -c 'import this' | tail -1; python3 -m json.tool < /dev/null || echo "status $?"; python3 -m zipfile -h | wc -l; python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; }

## python-numpy
# packages: python3-numpy python3-scipy
prepare() { cat > it.py <<'Q'
import numpy as np, scipy.linalg as la, scipy.optimize as so, scipy.fft as sf
r = np.random.default_rng(1); a = r.random((120, 120)); b = a @ a.T + np.eye(120)
print(round(float(np.linalg.det(b[:5, :5])), 6), round(float(np.linalg.norm(la.solve(b, a) @ np.ones(120))), 6), np.sort(r.integers(0, 1000, 2000))[:5], round(float(np.linalg.eigvalsh(b).sum()), 6))
print(round(abs(sf.fft(np.arange(1000.0)))[3], 5), so.brentq(lambda x: x * x - 2, 0, 2), np.histogram(r.normal(size=5000), 5)[0], la.svdvals(a)[:2].round(6))
print(np.einsum("ij,jk->", a, a).round(6), np.array(["b", "a"]).astype("U5"), (np.arange(10) ** 3).cumsum()[-1], np.float32(0.1) + np.float16(1))
try: np.linalg.inv(np.zeros((2, 2)))
except np.linalg.LinAlgError as e: print(e)
Q
}
run() { OPENBLAS_NUM_THREADS=2 python3 -B it.py; }

## python-tests
# packages: libpython3.11-testsuite python3
run() { for t in test_bisect test_heapq test_dict test_list test_struct test_json test_re test_zlib test_hashlib test_generators test_coroutines test_exceptions test_math test_decimal test_array test_deque; do mkdir -p tmp; python3 -B -m test -q --tempdir tmp $t 2>&1 | grep -v -i -e duration -e ' sec' -e 'min' || true; done; }
settle() { sed -i '/^Total\|^Tests\|load avg/d' "$OUT"; }

## python-tests-processes
# packages: libpython3.11-testsuite python3
run() { for t in test_subprocess test_signal test_threading test_fork1 test_popen test_pipes test_wait4 test_poll test_select test_threadsignals test_queue test_faulthandler; do mkdir -p tmp; python3 -B -m test -q --tempdir tmp $t 2>&1 | grep -v -i -e duration -e ' sec' -e 'min' || true; done; }
settle() { sed -i '/^Total\|^Tests\|load avg/d' "$OUT"; rm -rf .cache tmp; }

## r
# packages: r-base-core
prepare() { cat > it.R <<'Q'
set.seed(1); x <- rnorm(500); y <- 2 * x + rnorm(500, sd = .1)
print(summary(lm(y ~ x))$coefficients); print(quantile(x)); m <- matrix(runif(400), 20); print(round(sum(solve(m)), 6)); print(round(svd(m)$d[1:3], 6))
s <- sapply(split(mtcars$mpg, mtcars$cyl), mean); print(s); r <- tryCatch(stop("no"), error = function(e) conditionMessage(e), finally = cat("finally\n")); print(r)
f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2); print(f(18)); print(table(strsplit("mississippi", "")[[1]])); print(gsub("(\\d+)", "<\\1>", "a1b22")); print(optimize(function(x) (x - 2)^2, c(0, 5))$minimum)
pdf("out.pdf"); hist(x); invisible(dev.off()); print(parallel::mclapply(1:4, function(i) i^2, mc.cores = 2)[[4]]); quit(status = 3)
Q
}
run() { Rscript it.R || echo "status $?"; R --version | head -1; }
settle() { rm -f out.pdf; }

## octave
# packages: octave
prepare() { printf 'rand("seed", 1); a = magic(20); disp(trace(a)); disp(rank(a)); printf("%%.6f\\n", norm(inv(a + eye(20) * 7))); x = linspace(0, 1, 100); printf("%%.6f\\n", trapz(x, x .^ 2));\ns = 0; for i = 1:20000, s = mod(s * 31 + i, 65521); end; disp(s);\ntry, error("no"), catch e, disp(e.message), end; disp(regexprep("a1b22", "\\\\d+", "#")); c = {1, "two"}; disp(class(c{2})); f = @(x) x ^ 2; disp(fzero(@(x) f(x) - 2, [0 2])); exit(3)\n' > it.m; }
run() { octave-cli --norc it.m || echo "status $?"; }
settle() { rm -rf .config .local .cache; }

## erlang
# packages: erlang-base
prepare() { cat > it.erl <<'Q'
-module(it). -export([main/0]).
loop(0, P) -> P ! done; loop(N, P) -> P ! N, loop(N - 1, P).
get(0, S) -> S; get(D, S) -> receive done -> get(D - 1, S); N -> get(D, S + N) end.
fib(N) when N < 2 -> N; fib(N) -> fib(N - 1) + fib(N - 2).
main() ->
  Me = self(), [spawn(fun() -> loop(100, Me) end) || _ <- lists:seq(1, 100)], io:format("~p ~p~n", [get(100, 0), fib(18)]),
  io:format("~p~n", [catch 1 div list_to_integer("0")]), M = maps:from_list([{X rem 17, X} || X <- lists:seq(1, 1000)]), io:format("~p~n", [maps:get(3, M)]),
  T = ets:new(t, []), [ets:insert(T, {X, X * X}) || X <- lists:seq(1, 1000)], io:format("~p ~s~n", [ets:lookup(T, 77), binary:encode_hex(erlang:md5(<<"x">>))]), {ok, _} = timer:apply_after(1, erlang, self, []), halt(3).
Q
}
run() { erlc it.erl; erl -noshell -s it main || echo "status $?"; erl -noshell -emu_flavor emu -s it main || echo "status $?"; erl +S 2:2 -noshell -eval 'io:format("~p~n", [lists:sum(lists:seq(1,1000))]), halt().'; }
settle() { rm -f it.beam .erlang.cookie; }

## ocaml
# packages: ocaml-nox gcc libc6-dev
prepare() { cat > it.ml <<'Q'
exception Found of int
module M = Map.Make (String)
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let () =
  Printf.printf "%d\n" (fib 22);
  let m = ref M.empty in
  for i = 1 to 20000 do let k = "k" ^ string_of_int (i mod 97) in m := M.add k (i + try M.find k !m with Not_found -> 0) !m done;
  Printf.printf "%d %d\n" (M.cardinal !m) (M.fold (fun _ v s -> v + s) !m 0);
  (try List.iter (fun x -> if x * x > 500 then raise (Found x)) (List.init 100 Fun.id) with Found x -> Printf.printf "found %d\n" x);
  (try ignore ((Array.make 3 0).(5)) with Invalid_argument s -> print_endline s);
  let rec deep n = 1 + deep (n + 1) in (try ignore (deep 0) with Stack_overflow -> print_endline "deep");
  Gc.compact (); let h = Hashtbl.create 10 in for i = 0 to 999 do Hashtbl.replace h (i * 7919 mod 503) i done; Printf.printf "%d %s\n" (Hashtbl.length h) (Digest.to_hex (Digest.string "x"));
  at_exit (fun () -> print_endline "bye"); exit 3
Q
ocamlfind ocamlopt -version >/dev/null 2>&1 || true; ocamlopt -O3 it.ml -o native 2>/dev/null || ocamlopt it.ml -o native; ocamlc it.ml -o byte; ocamlc -custom it.ml -o custom; ocamlopt -g -inline 100 it.ml -o debug; }
run() { for it in native byte custom debug; do ulimit -s 8192; ./$it || echo "status $?"; done; }

## ocaml-compiles
# packages: ocaml-nox gcc libc6-dev
prepare() { echo 'let () = print_endline (String.concat "," (List.map string_of_int (List.sort compare [3; 1; 2])))' > it.ml; echo 'let x : int = "no"' > bad.ml; }
run() { ocamlopt it.ml -o a; ./a; ocamlc it.ml -o b; ./b; ocaml it.ml; ocamlopt bad.ml || echo "status $?"; ocamldep it.ml; }
settle() { rm -f a b it.o; }

## sbcl
# packages: sbcl
prepare() { printf '(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(print (fib 22)) (let ((h (make-hash-table :test (quote equal)))) (dotimes (i 20000) (incf (gethash (format nil "k~~d" (mod i 97)) h 0) i)) (print (hash-table-count h)))\n(print (handler-case (/ 1 0) (division-by-zero () :zero))) (print (expt 3 200)) (gc :full t) (print (handler-case (labels ((d (n) (1+ (d n)))) (d 0)) (storage-condition () :deep))) (terpri) (exit :code 3)\n' > it.lisp; }
run() { sbcl --script it.lisp || echo "status $?"; sbcl --noinform --non-interactive --eval '(compile-file "it.lisp")' > /dev/null; sbcl --noinform --no-userinit --eval '(print (mapcar (function 1+) (list 1 2)))' --eval '(exit)'; }
settle() { rm -f it.fasl; sed -i 's/0x[0-9a-fA-F]*//g; s/FORM-FUN-[0-9]*//; s/pid [0-9]* tid [0-9]*//' "$OUT" "$ERR"; }

## guile
# packages: guile-3.0
prepare() { printf '(use-modules (srfi srfi-1) (ice-9 format))\n(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(format #t "~~a ~~a\\n" (fib 20) (fold + 0 (iota 1000)))\n(display (catch (quote misc-error) (lambda () (error "no")) (lambda (k . r) k))) (newline)\n(display (call/cc (lambda (k) (for-each (lambda (x) (if (> x 5) (k x))) (iota 100)) 0))) (newline) (display (expt 3 100)) (newline) (gc) (exit 3)\n' > it.scm; }
run() { guile --no-auto-compile it.scm || echo "status $?"; GUILE_JIT_THRESHOLD=-1 guile --no-auto-compile it.scm || echo "status $?"; guile --no-auto-compile -c '(use-modules (system base compile)) (compile-file "it.scm" #:output-file "it.go")'; }
settle() { rm -rf .cache; }

## chez
# packages: chezscheme
prepare() { printf '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(display (fib 22)) (newline) (let ([h (make-hashtable equal-hash equal?)]) (do ([i 0 (+ i 1)]) ((= i 20000)) (hashtable-update! h (mod i 97) (lambda (x) (+ x i)) 0)) (display (hashtable-ref h 5 #f))) (newline)\n(display (call/cc (lambda (k) (with-exception-handler (lambda (e) (k "caught")) (lambda () (car 5)))))) (newline) (collect) (display (expt 3 100)) (newline) (exit 3)\n' > it.ss; }
run() { chezscheme --script it.ss || scheme --script it.ss || echo "status $?"; }

## racket
# packages: racket
prepare() { printf '#lang racket/base\n(require racket/list racket/string)\n(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(displayln (fib 20)) (displayln (sum 10))\n(define-syntax-rule (sum n) (apply + (range n)))\n(displayln (with-handlers ([exn:fail? (lambda (e) "caught")]) (car 5))) (define c (make-channel)) (void (thread (lambda () (for ([i 10]) (channel-put c i))))) (displayln (for/sum ([i 10]) (channel-get c))) (collect-garbage) (exit 3)\n' > it.rkt; }
run() { racket it.rkt || echo "status $?"; racket -e '(+ 1 2)'; }
settle() { rm -rf .local .cache compiled; }

## prolog
# packages: swi-prolog-nox
prepare() { printf ':- initialization(main).\nqueens(N, Qs) :- numlist(1, N, L), permutation(L, Qs), safe(Qs).\nsafe([]). safe([Q|Qs]) :- no(Q, Qs, 1), safe(Qs). no(_, [], _). no(Q, [R|Rs], D) :- Q =\\= R + D, Q =\\= R - D, D1 is D + 1, no(Q, Rs, D1).\nmain :- queens(6, Qs), writeln(Qs), aggregate_all(sum(X), between(1, 1000, X), S), writeln(S), catch(X is 1 / 0, error(E, _), (writeln(E))), Y is 3 ** 100, writeln(Y), writeln(X), halt(3).\n' > it.pl; }
run() { swipl it.pl 2>&1 || echo "status $?"; swipl -g 'atom_length(hello, N), print(N), nl' -t halt; }
settle() { sed -i 's/_[G0-9]*/_/' "$OUT"; rm -rf .config .cache .local; }

## tcl
# packages: tcl
prepare() { printf 'proc fib n { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }\nputs [fib 17]; for {set i 0} {$i < 5000} {incr i} { dict incr d [expr {$i %% 17}] $i }; puts [dict get $d 3]; puts [catch {error no} m]$m; puts [regsub -all {\\d+} a1b22 <&>]; puts [expr {3 ** 100}]; after 1 {set x 1}; vwait x; puts [exec echo sub]; set t [clock format 0 -gmt 1 -format %%Y]; puts $t; exit 3\n' > it.tcl; }
run() { tclsh it.tcl || echo "status $?"; }

## gforth
# packages: gforth
run() { gforth -e ': fib dup 2 < if else dup 1- recurse swap 2 - recurse + then ; 20 fib . cr : t 0 10000 0 do i + loop . ; t cr 1 0 ['"'"'] / catch . cr bye' || echo "status $?"; gforth-itc -e '1 2 + . bye' 2>/dev/null || echo none; }
settle() { sed -i 's/\$7F[0-9A-F]*//' "$ERR"; }

## java
# packages: openjdk-17-jdk-headless
prepare() { cat > It.java <<'Q'
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class It {
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) throws Exception {
    System.out.println(fib(25)); Map<Integer, Integer> m = IntStream.range(0, 20000).boxed().collect(Collectors.groupingBy(x -> x % 7, TreeMap::new, Collectors.summingInt(x -> x))); System.out.println(m);
    ExecutorService p = Executors.newFixedThreadPool(8); long s = 0; for (Future<Integer> f : p.invokeAll(IntStream.range(0, 200).mapToObj(i -> (Callable<Integer>) () -> i * i).toList())) s += f.get(); p.shutdown(); System.out.println(s);
    try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null"); } try { deep(0); } catch (StackOverflowError e) { System.out.println("deep"); }
    System.gc(); Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("bye"))); System.exit(3);
  }
  static int deep(int n) { return deep(n + 1) + 1; }
}
Q
javac It.java; }
run() { java -Xshare:auto It || echo "status $?"; java -Xint It || echo "status $?"; java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 It || echo "status $?"; }
settle() { rm -f *.log; }

## javac
# packages: openjdk-17-jdk-headless
prepare() { printf 'public class A { interface F { int f(int x); } public static void main(String[] a) { F g = x -> x + 1; System.out.println(g.f(41)); } }\n' > A.java; printf 'class B { int x = "no"; }\n' > B.java; }
run() { javac A.java; java A; javac B.java || echo "status $?"; javap -c A | md5sum; jar cf a.jar A*.class; jar tf a.jar; }
settle() { rm -f a.jar; }

## node
# packages: nodejs
prepare() { cat > it.js <<'Q'
const { Worker, isMainThread, parentPort } = require('worker_threads'); const crypto = require('crypto'), zlib = require('zlib'), { execSync } = require('child_process'), http = require('http');
if (!isMainThread) { let s = 0; for (let i = 0; i < 100000; i++) s = (s * 31 + i) % 65521; parentPort.postMessage(s); } else (async () => {
  const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); console.log(fib(22)); const m = new Map(); for (let i = 0; i < 20000; i++) m.set(i % 97, (m.get(i % 97) || 0) + i); console.log(m.size, m.get(5));
  console.log(crypto.createHash('sha256').update('x').digest('hex'), zlib.gzipSync('a'.repeat(1000)).length, execSync('echo sub').toString().trim()); try { null.x } catch (e) { console.log(e.name) }
  console.log(await Promise.all([1, 2, 3].map(() => new Promise(r => new Worker(__filename).on('message', r))))); const s = http.createServer((q, r) => r.end(q.url)).listen(0, '127.0.0.1', async () => { const r = await fetch('http://127.0.0.1:' + s.address().port + '/p'); console.log(await r.text()); s.close(); process.exit(3) });
  function deep() { deep() } try { deep() } catch (e) { console.log(e instanceof RangeError) } console.log(2n ** 100n, 'a1b22'.replace(/\d+/g, x => x * 2), [3, 1, 2].sort());
})();
Q
}
run() { node it.js || echo "status $?"; node --jitless -e 'let s = 0; for (let i = 0; i < 1e5; i++) s += i; console.log(s)'; node -e 'throw new Error("x")' 2>/dev/null || echo "status $?"; node -p 'process.versions.v8.length > 3'; }
settle() { rm -rf .npm; }

## lua
# packages: lua5.4
prepare() { printf 'local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(20))\nlocal t = {} for i = 1, 20000 do t[i %% 97] = (t[i %% 97] or 0) + i end print(#t, t[5]) print(pcall(error, {1})~=nil, select(2, pcall(error, "no", 0)))\nlocal co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(co(), co(), co()) print(("a1b22"):gsub("%%d+", "<%%0>")) local s = setmetatable({}, {__index = function(_, k) return k .. "!" end}) print(s.x) print(pcall(function() local function d() return 1 + d() end return d() end) == false) collectgarbage() os.exit(3)\n' > it.lua; }
run() { lua5.4 it.lua || echo "status $?"; luac5.4 -o it.out it.lua; lua5.4 it.out || echo "status $?"; }

## luajit
# packages: luajit
prepare() { printf 'local ffi = require("ffi") ffi.cdef("int abs(int); double sqrt(double);") local s = 0 for i = 1, 1000000 do s = (s * 31 + ffi.C.abs(-i)) %% 65521 end print(s, ffi.C.sqrt(2))\nlocal t = {} for i = 1, 20000 do t[#t + 1] = tostring(i * 7 %% 101) end table.sort(t) print(t[1], t[20000], #table.concat(t)) print(pcall(error, "no")) local b = require("bit") print(b.tohex(b.bxor(0xff, 0x0f)))\n' > it.lua; }
run() { luajit it.lua; luajit -joff it.lua; luajit -O1 it.lua; luajit -jv -e 'for i = 1, 100 do end' 2>/dev/null | wc -l; luajit -b it.lua it.out; luajit it.out; }

## pascal
# packages: fp-compiler
prepare() { printf 'program it; uses sysutils; var i, s: longint; function fib(n: longint): longint; begin if n < 2 then fib := n else fib := fib(n - 1) + fib(n - 2) end;\nbegin writeln(fib(22)); s := 0; for i := 1 to 100000 do s := (s * 31 + i) mod 65521; writeln(s); try i := 0; writeln(1 div i) except on e: EDivByZero do writeln(e.ClassName) end; writeln(format(%s, [sqrt(2.0)])); halt(3) end.\n' "'%.4f'" > it.pas; }
run() { fpc -Mobjfpc -v0 it.pas > /dev/null; ./it || echo "status $?"; fpc -Mobjfpc -O3 -Xs -oopt it.pas > /dev/null; ./opt || echo "status $?"; }
settle() { rm -f it opt it.o; }

## fortran
# packages: gfortran
prepare() { printf 'program it\n use omp_lib\n implicit none\n integer :: i, s\n real(8) :: a(100,100), b(100,100)\n s = 0\n do i = 1, 100000\n  s = mod(s * 31 + i, 65521)\n end do\n print *, s\n call random_seed(put=[(i, i=1,33)])\n a = reshape([(mod(i * 7, 101) * 1d0, i=1,10000)], [100,100])\n b = matmul(a, transpose(a))\n print "(f20.3)", sum(b)\n s = 0\n !$omp parallel do reduction(+:s)\n do i = 1, 1000\n  s = s + i\n end do\n print *, s\n call exit(3)\nend program\n' > it.f90; gfortran -O2 -fopenmp it.f90 -o it; gfortran -O0 -g -fcheck=all -fopenmp it.f90 -o checked; }
run() { ./it || echo "status $?"; ./checked || echo "status $?"; gfortran -O3 -fopenmp it.f90 -o again; ./again || echo "status $?"; }

## ada
# packages: gnat
prepare() { printf 'with Ada.Text_IO; use Ada.Text_IO; with Ada.Command_Line;\nprocedure It is\n   protected Box is procedure Add (N : Integer); function Get return Integer; private V : Integer := 0; end Box;\n   protected body Box is procedure Add (N : Integer) is begin V := V + N; end Add; function Get return Integer is (V); end Box;\n   task type T; task body T is begin for I in 1 .. 100 loop Box.Add (I); end loop; end T;\n   A : array (1 .. 5) of Integer := (others => 1); N : Integer := 7;\nbegin\n   declare X : array (1 .. 10) of T; begin null; end;\n   Put_Line (Integer (Box.Get)'"'"'Image);\n   begin A (N) := 3; exception when Constraint_Error => Put_Line ("range"); end;\n   Put_Line (A (1)'"'"'Image); Ada.Command_Line.Set_Exit_Status (3);\nend It;\n' > it.adb; }
run() { gnatmake -q -O2 it.adb; ./it || echo "status $?"; }
settle() { rm -f it it.o; }

## d
# packages: ldc
prepare() { printf 'import std.stdio, std.algorithm, std.range, std.parallelism, std.conv;\nint fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\nint main() { writeln(fib(22)); auto a = iota(1000).map!(x => x * 7919 %% 1009).array; a.sort; writeln(a[0], " ", a[$ - 1]); writeln(taskPool.reduce!"a + b"(iota(1000))); try { writeln(to!int("x")); } catch (ConvException e) { writeln("conv"); } try { auto b = a[5000]; } catch (Error e) { writeln("range"); } string[string] h; h["a"] = "b"; writeln(h); return 3; }\n' > it.d; sed -i 's/std.conv;/std.conv, std.array;/' it.d; ldc2 -O it.d -of=it; }
run() { ./it || echo "status $?"; ldc2 it.d -of=debug; ./debug || echo "status $?"; }
settle() { rm -f *.o debug; }

## d-gdc
# packages: gdc
prepare() { printf 'import std.stdio, core.thread;\nclass E : Exception { this() { super("e"); } }\nvoid main() { int n; auto ts = new Thread[5]; foreach (ref t; ts) { t = new Thread({ synchronized { n += 10; } }); t.start(); } foreach (t; ts) t.join(); writeln(n); try throw new E; catch (E e) writeln(e.msg); scope (exit) writeln("out"); }\n' > it.d; gdc -O2 it.d -o it; }
run() { ./it; gdc -g it.d -o debug; ./debug; }
settle() { rm -f debug; }

## nim
# packages: nim gcc libc6-dev
prepare() { printf 'import strutils, tables, algorithm\nproc fib(n: int): int = (if n < 2: n else: fib(n - 1) + fib(n - 2))\necho fib(22)\nvar t = initCountTable[int]()\nfor i in 1 .. 20000: t.inc(i mod 97)\necho t.len, " ", t[5]\ntry:\n  echo parseInt("x")\nexcept ValueError:\n  echo "value"\nvar a = @[3, 1, 2]\na.sort()\necho a\nquit(3)\n' > it.nim; }
run() { nim c --hints:off -d:release --nimcache:nc it.nim; ./it || echo "status $?"; nim c --hints:off --nimcache:nc2 -o:debug it.nim; ./debug || echo "status $?"; }
settle() { rm -rf nc nc2 it debug; }

## vala
# packages: valac gcc libglib2.0-dev
prepare() { printf 'int main() { var h = new HashTable<int, int>(direct_hash, direct_equal); for (int i = 0; i < 1000; i++) h[i %% 17] = i; print("%%u\\n", h.size()); var t = new Thread<int>("t", () => { return 42; }); print("%%d\\n", t.join()); try { throw new IOError.FAILED("no"); } catch (Error e) { print("%%s\\n", e.message); } var l = new MainLoop(); Timeout.add(1, () => { l.quit(); return false; }); l.run(); return 3; }\n' > it.vala; }
run() { valac --pkg gio-2.0 -C it.vala; valac --pkg gio-2.0 it.vala -o it; ./it || echo "status $?"; }
settle() { rm -f it; }

## coq
# packages: coq
prepare() { printf 'Require Import Arith List Lia.\nTheorem t : forall n m : nat, n + m = m + n.\nProof. intros; apply Nat.add_comm. Qed.\nFixpoint f (n : nat) := match n with 0 => 1 | S k => S k * f k end.\nEval compute in f 6.\nLemma l : forall x y, x < y -> x + 1 <= y. Proof. intros; lia. Qed.\nPrint Assumptions t.\nExtraction f.\n' > it.v; sed -i '1s/.*/Require Import Arith List Lia. Require Extraction./' it.v; }
run() { coqc it.v; coqtop -batch -l it.v; printf 'Check nat.\nEval compute in 2 + 3.\nBad.\n' | coqtop -q 2>&1 | cat; }
settle() { rm -f *.vo *.vos *.vok .*.aux *.glob; }

## rust
# packages: rustc
prepare() { cat > it.rs <<'Q'
use std::{collections::HashMap, fmt, panic, process::exit, sync::{mpsc, Arc, Mutex}, thread};
#[derive(Debug)] struct E; impl fmt::Display for E { fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { write!(f, "E") } } impl std::error::Error for E {}
fn go(n: u32) -> Result<u32, Box<dyn std::error::Error>> { if n > 3 { Err(Box::new(E)) } else { Ok("12".parse::<u32>()? + n) } }
fn main() {
    let mut h = HashMap::new(); for i in 0..20000u64 { *h.entry(i % 97).or_insert(0) += i; } let mut v: Vec<_> = h.into_iter().collect(); v.sort(); println!("{:?}", &v[..2]);
    let m = Arc::new(Mutex::new(0)); let (s, r) = mpsc::channel(); let ts: Vec<_> = (0..10).map(|i| { let (m, s) = (m.clone(), s.clone()); thread::spawn(move || { for _ in 0..100 { *m.lock().unwrap() += i; } s.send(i).unwrap(); }) }).collect(); drop(s); for t in ts { t.join().unwrap(); } println!("{} {}", m.lock().unwrap(), r.iter().sum::<i32>());
    println!("{:?} {}", go(1), go(9).unwrap_err()); panic::set_hook(Box::new(|_| ())); println!("{}", panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[3] }).is_err()); println!("{}", thread::spawn(|| panic!("x")).join().is_err()); exit(3);
}
Q
rustc -O it.rs -o it; rustc -g it.rs -o debug; rustc -O -C panic=abort it.rs -o abort; }
run() { ./it || echo "status $?"; ./debug || echo "status $?"; ./abort || echo "status $?"; }

## rustc
# packages: rustc
prepare() { printf 'fn main() { let v: Vec<u32> = (1..10).collect(); println!("{}", v.iter().sum::<u32>()); }\n#[test] fn t() { assert_eq!(1, 1); }\n' > it.rs; printf 'fn main() { let x: u32 = "no"; }\n' > bad.rs; }
run() { rustc -O it.rs; ./it; rustc --test it.rs -o tests; ./tests | sed 's/finished in.*//'; rustc bad.rs || echo "status $?"; rustc -vV | head -1; }
settle() { rm -f it tests; }
