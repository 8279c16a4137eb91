# Servers that are attached to while they are under load.

listens() { for i in $(seq 600); do grep -q ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp && return 0; sleep 0.1; done; echo "nobody listens on $1"; return 1; }

## redis
# packages: redis-server redis-tools
# function: processCommand
# asking: 1
# unseen: 1
start() { exec redis-server --port 6400 --save '' --dir "$PWD" --logfile "$PWD/log"; }
ready() { listens 6400; }
load() { for i in 1 2 3 4 5; do redis-cli -p 6400 set k$i v$i; redis-cli -p 6400 get k$i; done; awk 'BEGIN { for (i = 0; i < 3000; i++) print "incr n" i % 50 }' | redis-cli -p 6400 | wc -l; redis-cli -p 6400 dbsize; }
asked() { redis-cli -p 6400 info stats | tr -d '\r' | sed -n 's/total_commands_processed://p'; }

## nginx-workers
# packages: nginx-light curl
# needs: root
# function: ngx_http_create_request
# attach: children
prepare() { mkdir www; seq 2000 > www/a.txt; printf 'daemon off; pid %s/pid; error_log %s/err; worker_processes 3; user www-data; events { worker_connections 200; } http { access_log %s/access; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s; gzip on; gzip_types text/plain; server { listen 127.0.0.1:8080 reuseport; root %s/www; } }\n' "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" > conf; }
start() { exec nginx -c "$PWD/conf"; }
ready() { listens 8080; }
load() { curl -sZ --compressed 'http://127.0.0.1:8080/a.txt?[1-300]' | md5sum; curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/nothing; ab -q -n 500 -c 8 http://127.0.0.1:8080/a.txt | grep -E 'Complete|Failed'; }
asked() { wc -l < access; }

## apache-event
# packages: apache2-bin apache2-utils curl
# needs: root
# function: ap_process_async_request
# attach: children
prepare() { mkdir www; seq 2000 > www/a.txt; m=/usr/lib/apache2/modules; { for it in mpm_event authz_core mime filter deflate; do echo "LoadModule ${it}_module $m/mod_$it.so"; done; printf 'User www-data\nGroup www-data\nServerName localhost\nListen 127.0.0.1:8081\nPidFile %s/pid\nErrorLog %s/err\nDocumentRoot %s/www\nTypesConfig /etc/mime.types\nStartServers 2\nMinSpareThreads 50\nMaxSpareThreads 100\nThreadsPerChild 25\nMaxRequestWorkers 50\nDefaultRuntimeDir %s\nLogFormat "%%r" x\nCustomLog %s/access x\nSetOutputFilter DEFLATE\n' "$PWD" "$PWD" "$PWD" "$PWD" "$PWD"; } > conf; }
start() { exec apache2 -f "$PWD/conf" -DFOREGROUND; }
ready() { listens 8081; sleep 2; }
load() { ab -q -n 500 -c 10 http://127.0.0.1:8081/a.txt | grep -E 'Complete|Failed|Length'; ab -q -k -n 500 -c 20 http://127.0.0.1:8081/a.txt | grep -E 'Complete|Failed'; curl -s --compressed http://127.0.0.1:8081/a.txt | md5sum; }
asked() { wc -l < access; }

## memcached
# packages: memcached
# needs: root
# function: sendmsg@plt
# unseen: 1
start() { exec memcached -u memcache -l 127.0.0.1 -p 11301 -t 16; }
ready() { listens 11301; }
load() { for j in 1 2 3 4 5 6 7 8; do python3 -c 'import socket
s = socket.create_connection(("127.0.0.1", 11301)); f = s.makefile("rb"); n = 0
for i in range(100):
    s.sendall(b"set k%d 0 0 1\r\nx\r\n" % i); n += f.readline() == b"STORED\r\n"; s.sendall(b"get k%d\r\n" % i); n += f.readline().startswith(b"VALUE"); f.readline(); f.readline()
print(n)' & done; wait; }
asked() { printf 'stats\r\nquit\r\n' | bash -c 'exec 3<>/dev/tcp/127.0.0.1/11301; cat >&3; cat <&3' | tr -d '\r' | awk '/cmd_(get|set)/ { n += $3 } END { print n }'; }

## postgresql
# packages: postgresql postgresql-contrib
# needs: root
# function: EndCommand
# asking: 1
# unseen: 1
prepare() {
    mkdir d; chown postgres d; PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; as="setpriv --reuid=postgres --regid=postgres --clear-groups"; $as initdb -D d -A trust --no-sync > /dev/null
    printf "listen_addresses = '127.0.0.1'\nport = 5433\nunix_socket_directories = ''\nfsync = off\nautovacuum = off\nshared_preload_libraries = 'pg_stat_statements'\n" >> d/postgresql.conf; client
    $as pg_ctl -D d -w -l d/log start > /dev/null; pgbench -i -q -s 1 postgres 2>/dev/null; psql -qAtc 'create extension pg_stat_statements; select pg_stat_statements_reset()' postgres > /dev/null; $as pg_ctl -D d -w -m fast stop > /dev/null; rm -f d/pg_stat/*
}
client() { export PGHOST=127.0.0.1 PGPORT=5433 PGUSER=postgres; }
start() { exec setpriv --reuid=postgres --regid=postgres --clear-groups $(echo /usr/lib/postgresql/*/bin/postgres) -D d > log 2>&1; }
ready() { listens 5433; client; for i in $(seq 300); do pg_isready -q && return 0; sleep 0.2; done; return 1; }
load() { client; pgbench -n -c 4 -j 2 -t 100 postgres 2>/dev/null | grep -E 'processed|failed'; psql -Atc 'select sum(x) from generate_series(1, 10000) x' postgres; }
asked() { client; psql -Atc 'select sum(calls) from pg_stat_statements' postgres; }

## mariadb
# packages: mariadb-server mariadb-client
# rests: 90
# needs: root
# function: _Z16dispatch_command*
# asking: 2
# unseen: 1
prepare() { mkdir d t; mariadb-install-db --no-defaults --user=root --datadir="$PWD/d" --tmpdir="$PWD/t" --auth-root-authentication-method=normal --skip-test-db > /dev/null 2>&1; }
start() { exec mariadbd --no-defaults --user=root --datadir="$PWD/d" --tmpdir="$PWD/t" --socket="$PWD/sock" --bind-address=127.0.0.1 --port=3310 --pid-file="$PWD/pid" --log-error="$PWD/err" --innodb-buffer-pool-size=32M; }
ready() { listens 3310; mariadb --no-defaults -h127.0.0.1 -P3310 -uroot -e 'create database x; use x; create table t(a int primary key, b varchar(40)) engine=innodb; insert into t select seq, md5(seq) from seq_1_to_2000'; }
load() { awk 'BEGIN { for (i = 1; i <= 300; i++) { print "update x.t set b = md5(b) where a = " i ";"; print "select count(*) from x.t where a < " i ";" } }' > q.$$; for j in 1 2 3 4; do mariadb --no-defaults -h127.0.0.1 -P3310 -uroot -N < q.$$ | md5sum & done; wait; rm -f q.$$; }
asked() { mariadb --no-defaults -h127.0.0.1 -P3310 -uroot -Ne "show global status like 'Questions'" | cut -f2; }
