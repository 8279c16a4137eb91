# Servers and databases, started on loopback, driven, asked what they did, and stopped; and programs
# that change who they are or what they see.

# Waits until somebody listens on this port.
listens() { for i in $(seq 600); do grep -q ":$(printf %04X "$1") 00000000:0000 0A\|:$(printf %04X "$1") 0\{32\}:0000 0A" /proc/net/tcp /proc/net/tcp6 && return 0; sleep 0.1; done; echo "nobody listens on $1"; return 1; }
# Waits until this file is there.
appears() { for i in $(seq 600); do test -e "$1" && return 0; sleep 0.1; done; echo "$1 does not appear"; return 1; }

## redis
# packages: redis-server redis-tools
run() {
    redis-server --port 6400 --save '' --dir "$PWD" --logfile log --daemonize no & listens 6400
    redis-benchmark -p 6400 -n 2000 -c 10 -q -t set,get,lpush,incr > bench; redis-cli -p 6400 config resetstat; for i in 1 2 3 4 5; do redis-cli -p 6400 set k$i v$i; done; redis-cli -p 6400 --raw keys 'k?' | sort
    redis-cli -p 6400 eval 'local s = 0 for i = 1, 1000 do s = s + i end return s' 0; redis-cli -p 6400 info stats | tr -d '\r' | grep total_commands; redis-cli -p 6400 save; redis-cli -p 6400 bgsave > /dev/null; sleep 1; redis-cli -p 6400 shutdown nosave; wait; wc -l < bench
}
settle() { rm -f log bench dump.rdb; }

## redis-threads
# packages: redis-server redis-tools
run() { redis-server --port 6401 --save '' --appendonly yes --io-threads 4 --io-threads-do-reads yes --dir "$PWD" --logfile log & listens 6401; redis-benchmark -p 6401 -n 3000 -c 30 -P 4 -q -t set,get > bench; redis-cli -p 6401 bgrewriteaof > /dev/null; sleep 1; redis-cli -p 6401 dbsize; redis-cli -p 6401 flushall async; redis-cli -p 6401 shutdown save; wait; }
settle() { rm -rf log bench dump.rdb appendonlydir; }

## memcached
# packages: memcached
run() { u=$(id -un); memcached -u "$u" -l 127.0.0.1 -p 11300 -t 4 & listens 11300; printf 'set a 0 0 5\r\nhello\r\nget a\r\nincr n 1\r\nset n 0 0 1\r\n1\r\nincr n 41\r\ndelete a\r\nget a\r\nquit\r\n' | bash -c 'exec 3<>/dev/tcp/127.0.0.1/11300; cat >&3; cat <&3'; kill $!; wait || true; }

## memcached-other-user
# packages: memcached
# needs: root
run() { memcached -u memcache -l 127.0.0.1 -p 11301 -t 16 & listens 11301; for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do bash -c 'exec 3<>/dev/tcp/127.0.0.1/11301; for i in $(seq 100); do printf "set k$i 0 0 1\r\nx\r\nget k$i\r\n"; done >&3; printf "quit\r\n" >&3; cat <&3' | md5sum; done; printf 'stats\r\nquit\r\n' | bash -c 'exec 3<>/dev/tcp/127.0.0.1/11301; cat >&3; cat <&3' | grep -E 'cmd_(get|set)'; kill $!; wait || true; }

## nginx
# packages: nginx-light curl
prepare() {
    mkdir www; seq 2000 > www/a.txt; printf 'daemon off; pid %s/pid; error_log %s/err; worker_processes 2; %s events { worker_connections 200; } http { access_log %s/access; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s; gzip on; gzip_types text/plain; server { listen 127.0.0.1:8080; root %s/www; location /proxy/ { proxy_pass http://127.0.0.1:8080/; } location /moved { return 301 /a.txt; } } }\n' "$PWD" "$PWD" "$(test "$(id -u)" = 0 && echo 'user www-data;')" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" > conf
}
run() {
    nginx -c "$PWD/conf" & listens 8080
    curl -s http://127.0.0.1:8080/a.txt | md5sum; curl -s --compressed http://127.0.0.1:8080/a.txt | md5sum; curl -sL http://127.0.0.1:8080/moved | md5sum; curl -s http://127.0.0.1:8080/proxy/a.txt | md5sum; curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/nothing
    curl -sZ 'http://127.0.0.1:8080/a.txt?[1-200]' 2>/dev/null | md5sum; nginx -c "$PWD/conf" -s reload; sleep 1; curl -s http://127.0.0.1:8080/a.txt | md5sum; nginx -c "$PWD/conf" -s quit; wait; wc -l < access
}
settle() { rm -f access err; sed -i '/signal process started/d' "$ERR"; }

## apache-event
# packages: apache2-bin apache2-utils curl
prepare() {
    mkdir www; seq 2000 > www/a.txt; m=/usr/lib/apache2/modules
    { for it in mpm_event authz_core dir mime status deflate filter headers alias; do echo "LoadModule ${it}_module $m/mod_$it.so"; done
    test "$(id -u)" = 0 && printf 'User www-data\nGroup www-data\n'
    printf 'ServerName localhost\nListen 127.0.0.1:8081\nPidFile %s/pid\nErrorLog %s/err\nDocumentRoot %s/www\nTypesConfig /etc/mime.types\nStartServers 2\nThreadsPerChild 25\nMaxRequestWorkers 50\nDefaultRuntimeDir %s\nExtendedStatus On\nLogFormat "%%r" x\nCustomLog %s/access x\n<Location /status>\nSetHandler server-status\n</Location>\n<Location /a.txt>\nSetOutputFilter DEFLATE\n</Location>\n' "$PWD" "$PWD" "$PWD" "$PWD" "$PWD"; } > conf
}
run() {
    apache2 -f "$PWD/conf" -DFOREGROUND & listens 8081
    curl -s http://127.0.0.1:8081/a.txt | md5sum; ab -q -n 500 -c 10 http://127.0.0.1:8081/a.txt | grep -E 'Complete|Failed|Document Length'; ab -q -k -n 500 -c 20 http://127.0.0.1:8081/a.txt | grep -E 'Complete|Failed'; curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8081/nothing
    apache2 -f "$PWD/conf" -k graceful; sleep 2; curl -s --retry 5 --retry-connrefused http://127.0.0.1:8081/a.txt | md5sum; kill "$(cat pid)"; wait || true; wc -l < access
}
settle() { rm -f access err; }

## apache-prefork-php-free
# packages: apache2-bin apache2-utils
prepare() { mkdir www; echo hello > www/i.html; m=/usr/lib/apache2/modules; { for it in mpm_prefork authz_core dir mime cgi; do echo "LoadModule ${it}_module $m/mod_$it.so"; done; test "$(id -u)" = 0 && printf 'User www-data\nGroup www-data\n'; printf 'ServerName localhost\nListen 127.0.0.1:8082\nPidFile %s/pid\nErrorLog %s/err\nDocumentRoot %s/www\nTypesConfig /etc/mime.types\nDefaultRuntimeDir %s\nStartServers 3\nMaxRequestWorkers 5\n<Directory %s/www>\nOptions +ExecCGI\nAddHandler cgi-script .cgi\n</Directory>\n' "$PWD" "$PWD" "$PWD" "$PWD" "$PWD"; } > conf; printf '#!/bin/sh\nprintf "Content-Type: text/plain\\n\\n$QUERY_STRING $REQUEST_METHOD\\n"\n' > www/x.cgi; chmod 755 www/x.cgi; }
run() { setsid apache2 -f "$PWD/conf" -DFOREGROUND & listens 8082; ab -q -n 100 -c 4 http://127.0.0.1:8082/i.html | grep -E 'Complete|Failed'; curl -s 'http://127.0.0.1:8082/x.cgi?a=1'; kill "$(cat pid)"; wait || true; }
settle() { rm -f err cgisock*; }

## haproxy
# packages: haproxy python3 curl
prepare() { seq 500 > a.txt; printf 'global\n  stats socket %s/sock\n  nbthread 4\ndefaults\n  mode http\n  timeout client 20s\n  timeout server 20s\n  timeout connect 20s\nfrontend f\n  bind 127.0.0.1:8090\n  http-response set-header X-Via haproxy\n  default_backend b\nbackend b\n  server s1 127.0.0.1:8091\n' "$PWD" > conf; }
run() { python3 -m http.server 8091 --bind 127.0.0.1 > log 2>&1 & p=$!; listens 8091; haproxy -c -f conf; haproxy -f conf & h=$!; listens 8090; curl -sZ 'http://127.0.0.1:8090/a.txt?[1-50]' 2>/dev/null | md5sum; curl -sI http://127.0.0.1:8090/a.txt | tr -d '\r' | grep -i x-via; python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("sock"); s.send(b"show stat\n"); d = b"".join(iter(lambda: s.recv(9999), b"")); print([l.split(",")[7] for l in d.decode().splitlines() if l.startswith("f,FRONTEND")])'; kill $h; wait $h || true; kill $p; wait || true; }
settle() { rm -f log sock; sed -i '/Terminated/d' "$ERR"; }

## postgresql
# packages: postgresql postgresql-contrib
# needs: root
prepare() { mkdir d; chown postgres d; PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; setpriv --reuid=postgres --regid=postgres --clear-groups initdb -D d -A trust --no-sync > /dev/null; printf "listen_addresses = '127.0.0.1'\nport = 5433\nunix_socket_directories = ''\nfsync = off\nautovacuum = off\n" >> d/postgresql.conf; }
run() {
    PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; as="setpriv --reuid=postgres --regid=postgres --clear-groups"; export PGHOST=127.0.0.1 PGPORT=5433 PGUSER=postgres
    $as pg_ctl -D d -w -t 300 -l d/log start > /dev/null; pgbench -i -q -s 1 postgres 2>/dev/null; pgbench -c 4 -j 2 -t 50 postgres 2>/dev/null | grep -E 'processed|failed'; psql -Atc 'select count(*) from pgbench_history; select sum(x) from generate_series(1, 10000) x; select 1/0' postgres || echo "status $?"
    psql -Atc 'create table t as select x, md5(x::text) m from generate_series(1, 5000) x; create index on t(m); analyze t; set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; select count(*), min(m), max(m) from t; do $$ begin raise exception $q$no$q$; exception when others then raise notice $q$caught$q$; end $$' postgres; pg_dump -t t postgres | grep -v '^--\|restrict' | md5sum; $as pg_ctl -D d -w -m fast stop > /dev/null; grep -c ERROR d/log
}
settle() { rm -rf d; }

## mariadb
# packages: mariadb-server mariadb-client
# needs: root
prepare() { mkdir d t; mariadb-install-db --no-defaults --user=root --datadir="$PWD/d" --tmpdir="$PWD/t" --auth-root-authentication-method=normal --skip-test-db > /dev/null 2>&1; }
run() {
    mariadbd --no-defaults --user=root --datadir="$PWD/d" --tmpdir="$PWD/t" --socket="$PWD/sock" --bind-address=127.0.0.1 --port=3310 --pid-file="$PWD/pid" --log-error="$PWD/err" --innodb-buffer-pool-size=32M & listens 3310; m="mariadb --no-defaults -h127.0.0.1 -P3310 -uroot"
    $m -e 'create database x; use x; create table t(a int primary key auto_increment, b varchar(40), key(b)) engine=innodb; insert into t(b) select md5(seq) from seq_1_to_3000; select count(*), min(b), max(b) from t; update t set b = reverse(b) where a % 3 = 0; select left(b, 4), count(*) c from t group by 1 order by 2 desc, 1 limit 3; start transaction; delete from t; rollback; select count(*) from t'
    mariadb-slap --no-defaults -h127.0.0.1 -P3310 -uroot -a -c 4 --number-of-queries 200 -s > slap; $m -e 'select * from nothing.nothing' || echo "status $?"; $m -Ne "show global status like 'Com_rollback'"; mariadb-dump --no-defaults -h127.0.0.1 -P3310 -uroot --compact x | md5sum; mariadb-admin --no-defaults -h127.0.0.1 -P3310 -uroot shutdown; wait
}
settle() { rm -rf d t slap err*; sed -i '/Warning/d' "$ERR"; }

## sshd
# packages: openssh-server openssh-client
# needs: root
prepare() { ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f me; mkdir -p etc; cp me.pub keys; printf 'Port 2222\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/keys\nStrictModes no\nPidFile %s/pid\nUsePAM no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n' "$PWD" "$PWD" "$PWD" > conf; }
run() {
    mkdir -p /run/sshd; /usr/sbin/sshd -D -e -f "$PWD/conf" 2> log & listens 2222; o="-p 2222 -i me -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes"
    ssh $o root@127.0.0.1 'echo hello; exit 7' || echo "status $?"; seq 20000 | ssh -C $o root@127.0.0.1 md5sum; seq 1000 > f; scp -q -P 2222 -i me -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR f root@127.0.0.1:"$PWD/g"; cmp f g; ssh -tt $o root@127.0.0.1 'tty > /dev/null && echo terminal' | tr -d '\r'; rsync -e "ssh $o" root@127.0.0.1:"$PWD/f" h; cmp f h; kill "$(cat pid)"; wait || true
}
settle() { rm -f log pid; }

## sudo-su
# packages: sudo util-linux passwd
# needs: root
run() { sudo -n id -un; sudo -n -u nobody id -un; sudo -n -u nobody sh -c 'kill -9 $$' || echo "status $?"; sudo -n -u nobody sh -c 'cat /etc/shadow' || echo "status $?"; su -s /bin/sh nobody -c 'id -un'; runuser -u nobody -- id -un; setpriv --reuid=65534 --regid=65534 --clear-groups id -u; setpriv --no-new-privs --bounding-set=-all id -u; getent passwd nobody; }
settle() { sed -i 's/sudo: unable to resolve host.*//' "$ERR"; }

## capabilities-acl
# packages: libcap2-bin acl attr util-linux
# needs: root
run() { capsh --print | grep -c Current; capsh --drop=cap_net_raw -- -c 'echo dropped'; cp /bin/true t; setcap cap_net_bind_service+ep t; getcap t; ./t; touch f; setfacl -m u:nobody:r f 2>/dev/null; getfacl -c f || true; setfattr -n user.x -v y f 2>/dev/null; getfattr -n user.x --only-values f || true; chroot / id -u; unshare -m -u -i sh -c 'hostname inside; hostname'; nsenter -t $$ -u id -u; }
settle() { setfattr -x user.x f 2>/dev/null || true; }

## chroot
# packages: busybox-static
# needs: root
prepare() { mkdir -p root/bin; cp /bin/busybox root/bin/; for it in sh ls echo cat; do ln -s busybox root/bin/$it; done; echo inside > root/file; }
run() { chroot root /bin/sh -c 'cat /file; ls /; exit 3' || echo "status $?"; unshare -r --root=root /bin/echo hi; }

## bubblewrap
# packages: bubblewrap
run() { bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all --die-with-parent sh -c 'id -u; echo $$; ls /tmp; hostname > /dev/null; seq 1000 | md5sum; exit 3' || echo "status $?"; bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --unshare-pid --new-session ls /; bwrap --ro-bind / / nothing || echo "status $?"; }

## firejail
# packages: firejail
run() { firejail --quiet --noprofile sh -c 'echo inside; exit 3' || echo "status $?"; firejail --quiet --noprofile --private --net=none --seccomp --caps.drop=all --nonewprivs sh -c 'seq 1000 | md5sum; id -u'; firejail --version | head -1; }
settle() { rm -rf .config; }

## systemd-tools
# packages: systemd
run() { systemd-analyze calendar --base-time='2020-01-01 00:00:00' 'Mon *-*-* 03:00' | grep -v -i -e 'from now' -e left; systemd-analyze timespan 90m; systemd-analyze timestamp @0 | grep -v -i ago; systemd-escape 'a b/c'; systemd-path user-binaries; systemd-id128 new | wc -c; systemd-detect-virt > /dev/null || true; printf 'd %s/dir 0750\nf %s/dir/file 0640 - - - hello\nL %s/link - - - - /etc/hostname\n' "$PWD" "$PWD" "$PWD" > t.conf; systemd-tmpfiles --create "$PWD/t.conf"; ls dir; systemd-cat --version | head -1; journalctl --version | head -1; systemd-analyze verify /lib/systemd/system/cron.service /lib/systemd/system/ssh.service 2>&1 | wc -l; systemd-analyze security --offline=1 /lib/systemd/system/systemd-journald.service | tail -1; systemctl --version | head -1; systemctl list-units || echo "status $?"; busctl --version | head -1; systemd-sysusers --dry-run --root="$PWD" --inline 'u x 500' 2>&1 | head -2 || true; systemd-machine-id-setup --root="$PWD" --print 2>/dev/null | wc -c || true; }
settle() { rm -rf etc; sed -i 's/0x[0-9a-f]*//' "$ERR" "$OUT"; }

## dbus
# packages: dbus dbus-bin
run() { dbus-daemon --session --address="unix:path=$PWD/bus" --nofork --nopidfile & appears bus; export DBUS_SESSION_BUS_ADDRESS="unix:path=$PWD/bus"; dbus-send --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames | grep -c string; dbus-send --print-reply --dest=no.such.name / a.b.c || echo "status $?"; dbus-run-session -- sh -c 'echo in a session; exit 3' || echo "status $?"; busctl --address="unix:path=$PWD/bus" list | grep -c org.freedesktop.DBus; kill $!; wait || true; }
settle() { rm -f bus; sed -i 's/[[][0-9]*[]]//; s/pid=[0-9]*//' "$ERR"; }

## chrony
# packages: chrony
# needs: root
run() { printf 'cmdport 0\nport 0\nlocal stratum 5\ndriftfile %s/drift\n' "$PWD" > conf; chronyd -p -f conf; chronyd -x -Q -t 2 -f conf 'server 127.0.0.1 iburst maxsamples 1' || echo "status $?"; chronyd --version; chronyc -h 127.0.0.1 -p 1 tracking || echo "status $?"; }
settle() { sed -i 's/^[0-9TZ:-]* //' "$ERR"; rm -f drift; }

## dnsmasq-dig
# packages: dnsmasq-base dnsutils
run() { dnsmasq -k --no-resolv --no-hosts --port=5300 --listen-address=127.0.0.1 --bind-interfaces --user="$(id -un)" --address=/a.test/10.0.0.1 --txt-record=t.test,hello --pid-file & for i in $(seq 100); do grep -q ':14B4 ' /proc/net/udp && break; sleep 0.1; done; for i in 1 2 3; do dig -p 5300 @127.0.0.1 +short x.a.test; done; dig -p 5300 @127.0.0.1 +short t.test txt; dig -p 5300 @127.0.0.1 nothing.test | grep -c REFUSED; kill $!; wait || true; }

## bind-named
# packages: bind9 dnsutils
prepare() { printf '$TTL 60\n@ IN SOA a. b. (1 60 60 60 60)\n IN NS ns.z.test.\nns IN A 127.0.0.1\nwww IN A 10.0.0.7\n' > zone; printf 'options { directory "%s"; listen-on port 5301 { 127.0.0.1; }; listen-on-v6 { none; }; pid-file "%s/pid"; recursion no; session-keyfile "%s/k"; managed-keys-directory "%s"; };\ncontrols {};\nzone "z.test" { type primary; file "zone"; };\n' "$PWD" "$PWD" "$PWD" "$PWD" > conf; chmod 777 .; }
run() { named-checkconf conf; named-checkzone z.test zone; named -g -c conf -n 2 2> log & listens 5301; for i in 1 2 3 4 5; do dig -p 5301 @127.0.0.1 +short www.z.test; done; dig -p 5301 @127.0.0.1 +tcp +short ns.z.test; dig -p 5301 @127.0.0.1 +short axfr z.test | wc -l; kill $!; wait || true; }
settle() { rm -f log k pid managed-keys* *.jnl; }

## socat-nc
# packages: socat netcat-openbsd
run() { socat TCP-LISTEN:7000,reuseaddr,fork,bind=127.0.0.1 EXEC:'tr a-z A-Z' & s=$!; listens 7000; for i in 1 2 3; do echo "hello $i" | nc -N 127.0.0.1 7000; done; kill $s; wait || true; nc -l 127.0.0.1 7001 > got & listens 7001; seq 5000 | nc -N 127.0.0.1 7001; wait; md5sum < got; socat -u EXEC:'seq 3' STDOUT; socat - PTY,raw < /dev/null; }

## stunnel
# packages: stunnel4 openssl socat netcat-openbsd
prepare() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -subj /CN=localhost -out cert 2>/dev/null; printf 'foreground = yes\npid =\n[s]\naccept = 127.0.0.1:7443\nconnect = 127.0.0.1:7080\ncert = %s/cert\nkey = %s/key\n' "$PWD" "$PWD" > conf; }
run() { socat TCP-LISTEN:7080,reuseaddr,fork,bind=127.0.0.1 EXEC:'tr a-z A-Z' & s=$!; stunnel conf 2> log & t=$!; listens 7443; listens 7080; for i in 1 2 3; do (echo hello; sleep 1) | timeout 20 openssl s_client -quiet -no_ign_eof -connect 127.0.0.1:7443 -CAfile cert 2>/dev/null; done; kill $t $s; wait || true; }
settle() { rm -f log; }

## mosquitto
# packages: mosquitto mosquitto-clients
run() { printf 'listener 1884 127.0.0.1\nallow_anonymous true\n' > conf; mosquitto -c conf 2> log & m=$!; listens 1884; mosquitto_sub -p 1884 -t 'a/#' -C 20 > got & s=$!; sleep 1; for i in $(seq 20); do mosquitto_pub -p 1884 -q 1 -t a/b -m "message $i"; done; wait $s; sort got; kill $m; wait || true; }
settle() { rm -f log; }

## squid-free-proxy
# packages: tinyproxy-bin python3 curl
prepare() { seq 100 > a.txt; printf 'Port 8888\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nAllow 127.0.0.1\nLogFile "%s/log"\n' "$PWD" > conf; }
run() { python3 -m http.server 8092 --bind 127.0.0.1 > plog 2>&1 & p=$!; listens 8092; tinyproxy -d -c conf > out 2>&1 & t=$!; listens 8888; for i in 1 2 3 4 5; do http_proxy=http://127.0.0.1:8888 curl -s http://127.0.0.1:8092/a.txt | md5sum; done; kill $t $p; wait || true; }
settle() { rm -f log plog out; }

## slapd-free-sql
# packages: sqlite3 unixodbc
run() { isql --version; odbcinst -j | wc -l; }

## cron-at-free-timers
# packages: procps
run() { timeout -s INT 0.3 sleep 5 || echo "status $?"; timeout 0.3 sh -c 'trap "echo term; exit 9" TERM; while :; do sleep 0.05; done' || echo "status $?"; timeout -k 0.3 0.3 sh -c 'trap "" TERM; while :; do sleep 0.05; done' || echo "status $?"; watch -h > /dev/null 2>&1; bash -c 'sleep 100 & p=$!; kill -SEGV $p; wait $p; echo $?; (ulimit -t 1; while :; do :; done); echo $?; (ulimit -f 1; yes > big); echo $?; ls -l big | cut -d" " -f5; (kill -ABRT $BASHPID); echo $?' 2>/dev/null; }
settle() { rm -f big; }
