#!/usr/bin/env bash
# Exactly once, shown: workers that are killed and paused past their leases, a server that is killed, and in the end one effect and
# one completion for each job, in PostgreSQL and in a second stream. README.md beside it says why that holds.
#
#   run.sh             the work ledger
#   run.sh --control   the same trouble with XREADGROUP, XAUTOCLAIM and XACK alone: duplicates
#
# Wanted: bash, Rust (or IMPEL=/path/to/impel) and PostgreSQL's programs. All that is started works in a folder of its own, on ports and
# sockets of its own, and is gone at the end.
set -euo pipefail
shopt -s inherit_errexit

usage="usage: run.sh [--control] [--jobs N] [--workers N] [--seed N] [--keep]"
mode=ledger jobs=200 workers=4 seed=$$ keep=
while (($#)); do
    case $1 in
        --control) mode=control ;;
        --jobs) jobs=$2 && shift ;;
        --workers) workers=$2 && shift ;;
        --seed) seed=$2 && shift ;;
        --keep) keep=yes ;;
        --help | -h) echo "$usage" && exit 0 ;;
        *) echo "$usage" >&2 && exit 64 ;;
    esac
    shift
done
if ((jobs < 3 || workers < 4)); then
    echo "run.sh: at least 3 jobs and 4 workers are wanted" >&2
    exit 64
fi
RANDOM=$seed
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lease_ms=700

# ------------------------------------------------------------------------------------------------------- what is needed

programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
if ! [[ -x $programs/initdb ]]; then
    programs=$(dirname "$(command -v initdb || echo /nowhere/initdb)")
fi
if ! [[ -x $programs/initdb && -x $programs/psql ]]; then
    echo "run.sh: PostgreSQL is not installed, and half of what is shown happens in it." >&2
    echo "On Debian and Ubuntu, as root: apt-get install postgresql" >&2
    exit 2
fi
if [[ -z ${IMPEL-} ]]; then
    root=$(cd "$here/../.." && pwd)
    echo "building impel (the first time takes minutes) ..."
    (cd "$root" && cargo build --quiet --release -p impel)
    IMPEL=${CARGO_TARGET_DIR:-$root/target}/release/impel
fi
export IMPEL PSQL=$programs/psql

# ------------------------------------------------------------------------------------- server, PostgreSQL, and the end

dir=$(mktemp -d /tmp/impel-once.XXXXXX)
mkdir "$dir/postgres" "$dir/stage" "$dir/go"
export STAGE=$dir/stage GO=$dir/go
export PGHOST=$dir/postgres PGUSER=demo PGDATABASE=postgres
declare -A pid_of=()
server=

as_postgres() { # PostgreSQL does not run as root.
    if ((EUID == 0)); then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

finish() {
    local code=$?
    trap - EXIT
    for pid in "${pid_of[@]}" $server; do
        kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    if [[ -e $dir/postgres/data/postmaster.pid ]]; then
        as_postgres "$programs/pg_ctl" -D "$dir/postgres/data" -m immediate stop >/dev/null || true
    fi
    if [[ $keep ]]; then echo "all is in $dir"; else rm -rf "$dir"; fi
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

# A command to the server, as redis-cli would send it; prints the reply, a line for each part. It may be away for a moment.
ask() {
    local wire answer
    for _ in {1..100}; do
        if { exec {wire}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
            answer=$(printf '%s\r\n' "$*" >&"$wire" 2>/dev/null && reply "$wire") || answer=-
            exec {wire}>&-
            if [[ $answer == -LOADING* || $answer == - ]]; then sleep 0.1 && continue; fi
            if [[ $answer == -* ]]; then echo "run.sh: $*: $answer" >&2 && return 1; fi
            echo "$answer" && return 0
        fi
        sleep 0.1
    done
    echo "run.sh: the server does not answer; see $dir/server.log" >&2
    keep=yes
    return 1
}

reply() {
    local line n
    IFS= read -r line <&"$1"
    line=${line%$'\r'}
    case $line in
        [+:]*) echo "${line:1}" ;;
        \$-1) echo ;;
        \$*) IFS= read -r line <&"$1" && echo "${line%$'\r'}" ;;
        \**) for ((n = ${line:1}; n > 0; n--)); do reply "$1"; done ;;
        *) echo "$line" ;;
    esac
}

sql() { "$PSQL" -X -q -t -A -v ON_ERROR_STOP=1 -c "$1"; }

start_server() {
    "$IMPEL" --port "$port" --bind 127.0.0.1 --dir "$dir/data" >>"$dir/server.log" 2>&1 &
    server=$!
}

kill_server() {
    kill -KILL "$server" && wait "$server" 2>/dev/null || true
    sleep 0.2
    start_server
    [[ $(ask PING) == PONG ]]
    servers_killed=$((servers_killed + 1))
}

workers_born=0 workers_killed=0 workers_paused=0 servers_killed=0

start_worker() {
    local name=worker-$((++workers_born))
    "$IMPEL" work --url "redis://127.0.0.1:$port" --stream jobs --group billing --consumer "$name" --work-field job \
        --lease "$lease_ms" --retry-in 100 "$@" -- bash "$here/effect.sh" >>"$dir/workers.log" 2>&1 &
    pid_of[$name]=$!
}

tell() { kill "-$1" "${pid_of[$2]}" 2>/dev/null || true; }

kill_worker() {
    tell KILL "$1"
    replace "$1"
    workers_killed=$((workers_killed + 1))
}

replace() {
    wait "${pid_of[$1]}" 2>/dev/null || true
    unset "pid_of[$1]"
    start_worker "${how[@]}"
}

# A worker that begins while there is no server ends at once; like anyone who keeps services running we begin another.
tend() {
    local name
    for name in "${!pid_of[@]}"; do
        kill -0 "${pid_of[$name]}" 2>/dev/null || replace "$name"
    done
}

# Waits until a command succeeds.
until_true() {
    local what=$1 deadline=$((SECONDS + 120))
    shift
    until "$@"; do
        tend
        if ((SECONDS >= deadline)); then
            echo "run.sh: $what: not within two minutes; see $dir" >&2
            keep=yes
            exit 1
        fi
        sleep 0.1
    done
}

echo "starting PostgreSQL and impel ..."
if ((EUID == 0)); then
    chmod 755 "$dir" && chown postgres "$dir/postgres"
fi
as_postgres "$programs/initdb" -D "$dir/postgres/data" -U demo -A trust --no-sync >"$dir/postgres.log"
as_postgres "$programs/pg_ctl" -D "$dir/postgres/data" -w -l "$dir/postgres/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$dir/postgres" start >>"$dir/postgres.log"
port=${PORT:-$((20000 + RANDOM % 10000))}
start_server
[[ $(ask PING) == PONG ]]
export IMPEL_URL=redis://127.0.0.1:$port MODE=$mode

# ----------------------------------------------------------------------------------------------------- tables and jobs

# Every run of a worker's command is in runs, every effect in payments. done is the evidence: a work id, once.
sql "CREATE TABLE runs (job text, consumer text, delivery int);
     CREATE TABLE payments (job text, amount bigint);
     CREATE TABLE done (work_id text PRIMARY KEY, digest text, receipt text, completed_at timestamptz DEFAULT now());"
ask XGROUP CREATE jobs billing 0 MKSTREAM >/dev/null
if [[ $mode == ledger ]]; then
    ask XWORK POLICY jobs billing EVIDENCE require WORKFIELD job IDEMPOTENT yes LEASE $lease_ms >/dev/null
    how=(--emit results --receipt --digest)
else
    how=(--plain)
fi
for ((n = 1; n <= jobs; n++)); do echo "{\"job\":\"job-$n\",\"amount\":\"$n\"}"; done |
    "$IMPEL" add jobs --json >/dev/null
for ((n = 0; n < workers; n++)); do start_worker "${how[@]}"; done
echo "$jobs jobs, $workers workers, leases of $lease_ms ms, seed $seed"

# ------------------------------------------------------------------------------------------------------------- trouble

# Three jobs are stopped in the middle: their money has moved, and nobody was told yet (effect.sh waits there the first time).
for job in job-1 job-2 job-3; do until_true "$job is paid" test -s "$STAGE/$job"; done
slow=$(<"$STAGE/job-1")
tell STOP "$slow" # a worker that is away past its lease,
workers_paused=$((workers_paused + 1))
touch "$GO/job-1"
kill_worker "$(<"$STAGE/job-2")" # one that never comes back,
touch "$GO/job-2" "$GO/job-3"
kill_server # and a server that is away when it should hear of it.
has_run_again() { [[ $(sql "SELECT count(*) > 1 FROM runs WHERE job = 'job-1'") == t ]]; }
until_true "another worker takes job-1" has_run_again
tell CONT "$slow" # It goes on as if nothing had happened.

# Then whatever comes, until nine tenths are done.
jobs_done() { sql "SELECT count(DISTINCT job) FROM payments"; }
is_nearly_over() { (($(jobs_done) * 10 >= jobs * 9)); }
paused=()
until is_nearly_over; do
    tend
    names=("${!pid_of[@]}")
    victim=${names[RANDOM % ${#names[@]}]}
    case $((RANDOM % 8)) in
        0 | 1 | 2) kill_worker "$victim" ;;
        3 | 4 | 5)
            tell STOP "$victim"
            workers_paused=$((workers_paused + 1))
            (sleep "1.$((RANDOM % 9))" && tell CONT "$victim") &
            paused+=($!)
            ;;
        6) ((servers_killed < 1 + jobs / 60)) && kill_server ;;
        7) ;;
    esac
    sleep "0.$((2 + RANDOM % 3))"
done
for one in "${paused[@]}"; do wait "$one" 2>/dev/null || true; done

# ------------------------------------------------------------------------------------------------------------- the end

is_over() { [[ $(jobs_done) == "$jobs" && $(ask XPENDING jobs billing | head -n 1) == 0 ]]; }
until_true "all jobs are done" is_over
for name in "${!pid_of[@]}"; do tell TERM "$name"; done
for name in "${!pid_of[@]}"; do wait "${pid_of[$name]}" || true; done
pid_of=()

"$IMPEL" tail results --from 0 --no-wait --json | grep -o '"job":"[^"]*"' | sort >"$dir/results"
runs=$(sql "SELECT count(*) FROM runs")
payments=$(sql "SELECT count(*) FROM payments")
paid=$(sql "SELECT sum(amount) FROM payments")
emitted=$(wc -l <"$dir/results")
emitted_jobs=$(sort -u "$dir/results" | wc -l)
wanted=$((jobs * (jobs + 1) / 2))
decided() { sed -n "s/^$1 *//p" "$2"; } # How many entries an audit has decided so.

echo
echo "trouble         $workers_killed workers killed with -9, $workers_paused paused past their leases, the server killed with -9 $servers_killed times"
echo "the command     ran $runs times for $jobs jobs: $((runs - jobs)) runs too many"
echo "PostgreSQL      $payments payments for $(jobs_done) jobs, $paid paid of $wanted due: $((payments - jobs)) duplicates"
echo "stream results  $emitted entries for $emitted_jobs jobs: $((emitted - emitted_jobs)) duplicates"

if [[ $mode == control ]]; then
    "$IMPEL" audit --stream jobs --group billing >"$dir/audit" || true
    echo "impel audit     $(decided UNKNOWN "$dir/audit") of $jobs UNKNOWN: an XACK says nothing of the work"
    echo
    if ((payments > jobs && emitted > jobs)); then
        echo "CONTROL: duplicates, as expected without evidence."
    else
        echo "CONTROL FAILED: no duplicates, so this trouble shows nothing."
        exit 1
    fi
    exit 0
fi

audit() { "$IMPEL" audit --stream jobs --group billing "$@"; }
code=0 code_both=0 code_verify=0
audit >"$dir/audit" || code=$?
audit --ledger "postgres:host=$PGHOST user=$PGUSER dbname=$PGDATABASE#done" --out "$dir/evidence" >"$dir/audit-both" || code_both=$?
"$IMPEL" audit verify "$dir/evidence" >"$dir/audit-verify" || code_verify=$?
rows() { grep -c "\"outcome\":\"$1\"" "$dir/evidence/ledger.jsonl" || true; }
accepted() { decided ACCEPT "$1"; }
evidence=$(sql "SELECT count(*) FROM done")
echo "ledger          $(rows completed) completions, $(rows conflict) conflicts; $(($(rows begun) - jobs)) attempts begun again"
echo "blocked         $((runs - payments)) payments by the key in PostgreSQL; $(($(rows duplicate) + $(rows stale))) late or repeated ends by XWORK DONE"
echo "impel audit     server's ledger: $(accepted "$dir/audit") of $jobs ACCEPT, exit $code"
echo "                with PostgreSQL's: $(accepted "$dir/audit-both") of $jobs ACCEPT, $evidence completions, exit $code_both"
echo "                evidence: $(<"$dir/audit-verify")"
echo
if ((payments == jobs && paid == wanted && evidence == jobs && emitted == jobs && emitted_jobs == jobs)) &&
    (($(rows completed) == jobs && $(rows conflict) == 0 && code == 0 && code_both == 0 && code_verify == 0)) &&
    (($(accepted "$dir/audit") == jobs && $(accepted "$dir/audit-both") == jobs)); then
    echo "EXACTLY ONCE: one payment, one result and one completion for each job."
else
    echo "FAILED: see above, and $dir"
    keep=yes
    exit 1
fi
