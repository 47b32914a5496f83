//! Inputs to begin with: what the server itself writes, and what clients send, so that a fuzzer need not find the formats first.

use impel_core::record::Record;
use impel_core::snapshot;
use impel_core::state::codec::Reader;

use super::commands::World;
use crate::random::Random;
use crate::workload::{Generator, Profile, Step};

/// Sequences that records and snapshots are taken from.
const SEQUENCES: u64 = 12;
const STEPS: usize = 60;

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.number() as u8).collect()
}

pub fn resp() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 9] = [
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\nPING\r\n",
        b"PING\r\n  get  \"a\\x41\\n\" 'it\\'s'\r\n\r\n*0\r\n*-1\r\n",
        b"*2\r\n$4\r\nECHO\r\n$12\r\n0123456789ab\r\n*1\r\n$0\r\n\r\n",
        b"*1048577\r\n$1\r\na\r\n",
        b"*1\r\n:1\r\n",
        b"*2\r\n$-1\r\n$536870913\r\n",
        b"*9223372036854775807\r\n",
        b"get \"unbalanced\r\n",
        b"*11\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n",
    ];
    texts
        .iter()
        .enumerate()
        .flat_map(|(at, text)| (0..3).map(move |caps| [&[caps | (4 * (at as u8 & 1)), at as u8], *text].concat()))
        .collect()
}

pub fn commands() -> Vec<Vec<u8>> {
    (0..24).map(|seed| noise(seed, 200 << (seed % 5))).collect()
}

/// Plays random sequences, and tells what `take` makes of each.
fn played(take: impl Fn(World) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let play = |seed| {
        let mut world = World::new();
        for step in Generator::new(seed, Profile { clients: 3, blocking: false, ..Profile::SIMULATED }).steps(STEPS) {
            if let Step::Command { client, words } = step {
                world.send(client, &[words]);
                world.settle();
            }
        }
        take(world)
    };
    (0..SEQUENCES).flat_map(play).collect()
}

pub fn records() -> Vec<Vec<u8>> {
    let mut all = played(|world| vec![world.records]);
    // And each kind of record alone behind a stream with a group.
    let mut short = Vec::new();
    for log in &all {
        let mut reader = Reader::new(log);
        while !reader.is_empty() {
            let before = reader.rest;
            if Record::decode(&mut reader).is_err() {
                break;
            }
            short.push(before[..before.len() - reader.rest.len()].to_vec());
        }
    }
    short.sort();
    short.dedup_by_key(|record| record[0]);
    all.extend(short);
    all
}

pub fn snapshots() -> Vec<Vec<u8>> {
    played(|mut world| {
        world.engine.snapshot_abort();
        world.engine.snapshot_begin();
        let (keys, _) = world.engine.snapshot_continue(1000);
        let whole = |keys: &[_]| {
            let mut bytes = vec![0, 0, 0];
            keys.iter().for_each(|key| snapshot::encode(key, &mut bytes));
            bytes
        };
        let mut all: Vec<Vec<u8>> = keys.chunks(1).map(whole).collect();
        all.push(whole(&keys));
        // In two pieces.
        let mut pieces = whole(&keys);
        pieces[2] = 1;
        let cut = pieces.len() / 2;
        pieces.insert(cut, 0);
        pieces[..2].copy_from_slice(&((cut - 2) as u16).to_be_bytes());
        all.push(pieces);
        all
    })
}

pub fn segments() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..16).map(|seed| [&[12, (seed * 37) as u8][..], &noise(seed, 60)].concat()).collect();
    all.extend((0..8u8).map(|kind| [&[14, 1 | kind << 3, kind, 16, kind][..], &noise(u64::from(kind), 40)].concat()));
    all.extend([vec![], vec![9, 3], vec![15, 3 | 16 | 32], vec![12, 4, 1, 1, 0, 32, 1, 1, 115]]);
    all
}

pub fn config() -> Vec<Vec<u8>> {
    let files: [&str; 5] = [
        "port 7000\nbind 127.0.0.1 ::1\n# a comment\nsave 900 1\nsave 300 10\nappendonly yes\n",
        "client-output-buffer-limit pubsub 32mb 8mb 60\nmaxmemory 1gb\nrequirepass \"a b\\x00\"\n",
        "user alice on >secret ~cached:* +get\nuser default off\naclfile /tmp/x\n",
        "notify-keyspace-events KEA\nstream-node-max-bytes 4kb\ninclude other.conf\nhz 10\n",
        "loglevel verbose\nlogfile 'a b'\nunixsocketperm 700\nstream-lag compat\n",
    ];
    let lines: [&str; 3] =
        ["--port\x007000\0--save\0\0--appendonly\0no", "redis.conf\0--loglevel\0debug", "--requirepass\0--x"];
    let sets: [&str; 4] = [
        "maxmemory 100mb maxclients 10 timeout 3",
        "save \"10 1 20 2\" notify-keyspace-events Kgx$",
        "client-output-buffer-limit \"normal 1mb 0 0 replica 0 0 0 pubsub 1 2 3\"",
        "slowlog-log-slower-than -1 appendfsync everysec requirepass secret",
    ];
    let users: [&str; 3] = [
        "user a on nopass ~* &* +@all\nuser b off -@all +get|x (~k* +set)\n",
        "# users\nuser c >p1 <p2 #0123456789012345678901234567890123456789012345678901234567890123 %R~a %W~b allchannels\n",
        "user d resetkeys resetchannels reset sanitize-payload +xadd -xgroup|create\n",
    ];
    let kinds = [&files[..], &lines, &sets, &users];
    let with = |kind: usize| move |text: &&str| [&[kind as u8], text.as_bytes()].concat();
    kinds.iter().enumerate().flat_map(|(kind, texts)| texts.iter().map(with(kind))).collect()
}
