# Projects of other people, as they publish them; `projects.rs` says what is done with them.

autotools() {
    configure() { ./configure -q --disable-dependency-tracking; }
    build() { make -s; make -s check TESTS=; }
    suite() { make -k check; }
    # How fine a clock the file system has is measured, and depends on how busy the machine is.
    found() { sed -n '/^## Cache variables/,$p' config.log | grep -v timestamp_resolution; find . -name config.h | sort | xargs cat; test ! -e libtool || ./libtool --config; }
    results() { find . -name '*.trs' | sort | xargs grep -H '^:test-result:'; }
}
cmake_ninja() {
    configure() { cmake -G Ninja -B out; }
    build() { ninja -C out; }
    suite() { ctest --test-dir out -V --timeout 1500; }
    # All that the cache and the facts about the compilers say, but not how they are called.
    found() { grep -hv '^#\|^//\|^$\|_COMPILER:\|_ARG1\|_LAUNCHER' out/CMakeCache.txt; grep -hv '_COMPILER "\|_ARG1' out/CMakeFiles/3.*/CMakeC*Compiler.cmake; }
    results() { grep -ai 'pass\|fail' "$OUT" | sed 's/ *[0-9.]* sec$//'; }
}
meson_ninja() {
    configure() { meson setup out; }
    build() { ninja -C out; }
    suite() { meson test -C out --timeout-multiplier 50; }
    found() { cat out/build.ninja; find out -name config.h | sort | xargs -r cat; }
    results() { sed -n 's/^ *[0-9]*\/[0-9]* \(.*[A-Z]\) *[0-9.]*s.*/\1/p' "$OUT" | sort; }
}
# Makefiles by hand take compilers as variables, and their suites say what they say.
by_hand() {
    configure() { :; }
    build() { make CC="$CC" CXX="$CXX" FC="$FC"; }
    suite() { make CC="$CC" CXX="$CXX" FC="$FC" check; }
    found() { :; }
    results() { cat "$OUT"; }
}

## jansson
# packages: gcc make autoconf automake libtool
prepare() { autoreconf -fi; grep -q export-symbols-regex src/Makefile.in; }
autotools
# One of its tests is about all that the library exports, and does not know of versions.
configure() { ./configure -q --disable-dependency-tracking ac_cv_have_decl___GLIBC__=no; }
results() { find . -name '*.trs' | sort | xargs grep -H '^:test-result:'; cat test/run-suites.log; }

## hello
# packages: gcc make
autotools

## sed
# packages: gcc make
prepare() { mkdir none; printf '#!/bin/sh\nexit 1\n' > none/valgrind; chmod +x none/valgrind; }
autotools
# Three of its tests want valgrind, which reads and runs other programs' code, and so cannot be counted.
suite() { PATH=$PWD/none:$PATH make -k check; }

## libyaml
# packages: gcc make autoconf automake libtool
prepare() { ./bootstrap; }
autotools

## fribidi-autotools
# packages: gcc make
# source: fribidi
prepare() { grep -q export-symbols-regex lib/Makefile.in; }
autotools

## cjson
# packages: gcc cmake ninja-build
cmake_ninja

## pugixml
# packages: g++ cmake ninja-build
cmake_ninja
# The other way to put something before a compiler.
configure() { before=$(echo ${CXX%g++} | tr ' ' ';'); CXX=g++ CC=gcc cmake -G Ninja -B out -DPUGIXML_BUILD_TESTS=ON -DCMAKE_CXX_COMPILER_LAUNCHER="$before"; }

## muparser
# packages: g++ cmake ninja-build
cmake_ninja

## fribidi
# packages: gcc meson
meson_ninja
configure() { meson setup out -Ddocs=false; }

## libjsoncpp
# packages: g++ meson
meson_ninja

## bzip2
# packages: gcc make
by_hand

## scdoc
# packages: gcc make
by_hand

## tinyxml2
# packages: g++ make
by_hand
results() { grep -v milli-seconds "$OUT"; }

## lapack
# packages: gcc gfortran make
prepare() { cp INSTALL/make.inc.gfortran make.inc; }
by_hand
build() { make -s FC="$FC" CC="$CC" blaslib cblaslib; make -s -C BLAS/TESTING FC="$FC"; }
suite() { make -s FC="$FC" CC="$CC" blas_testing cblas_testing; }
results() { cat BLAS/TESTING/*.out CBLAS/testing/*.out; }
