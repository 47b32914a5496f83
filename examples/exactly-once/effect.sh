#!/usr/bin/env bash
# What a worker runs for each job: moves money in PostgreSQL and says so. impel work has put the job into the environment.
set -euo pipefail

sql() {
    "$PSQL" -X -q -t -A -v ON_ERROR_STOP=1 --single-transaction -v job="$IMPEL_WORK" -v amount="$IMPEL_FIELD_amount" \
        -v consumer="$IMPEL_CONSUMER" -v delivery="$IMPEL_DELIVERY" || exit 75 # not reachable: later
}

if [[ $MODE == ledger ]]; then
    # One transaction. The key of done lets one payment of a job in, whoever else tries and whenever; who is kept out finds
    # what the first one wrote, and says the same.
    said=$(sql <<'SQL'
INSERT INTO runs VALUES (:'job', :'consumer', :'delivery');
WITH first AS (
    INSERT INTO done (work_id, digest, receipt)
    VALUES (:'job', encode(sha256(convert_to(:'job' || ' ' || :'amount', 'UTF8')), 'hex'), 'tx-' || txid_current())
    ON CONFLICT DO NOTHING RETURNING work_id
)
INSERT INTO payments SELECT work_id, :'amount' FROM first;
SELECT json_build_object('job', work_id, 'digest', digest, 'receipt', receipt) FROM done WHERE work_id = :'job';
SQL
    )
else
    # The usual thing: it is done when it is told to be done.
    sql <<'SQL'
INSERT INTO runs VALUES (:'job', :'consumer', :'delivery');
INSERT INTO payments VALUES (:'job', :'amount');
SQL
    "$IMPEL" add results job "$IMPEL_WORK" >/dev/null 2>&1 || exit 75
    said=$IMPEL_WORK
fi

# The money has moved and nobody knows yet: here run.sh stops three jobs, the first time.
case $IMPEL_WORK in
    job-[123])
        if [[ $IMPEL_DELIVERY == 1 ]]; then
            echo "$IMPEL_CONSUMER" >"$STAGE/.$IMPEL_WORK" && mv "$STAGE/.$IMPEL_WORK" "$STAGE/$IMPEL_WORK"
            while ! [[ -e $GO/$IMPEL_WORK ]]; do sleep 0.05; done
        fi
        ;;
    *) sleep "0.0$((RANDOM % 10))" ;;
esac
echo "$said" # The last line: the receipt, the digest, and the entry of results. impel work tells the server.
