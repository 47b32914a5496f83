//! What is sent about work: few consumers and few works, so that they meet, and mostly of the newest entries.

use super::{Book, own};
use crate::random::Random;

impl Book {
    /// The next command, as good as what is known allows. `pick` is the same for all of a life: bounds of the ledger are only
    /// ever set to what it says, since what was forgotten under a smaller bound does not come back with a greater one.
    pub fn next(&self, pick: u64, random: &mut Random) -> Vec<Vec<u8>> {
        let line = if self.there { self.line(pick, random) } else { "XGROUP CREATE s g 0 MKSTREAM".to_owned() };
        // Two quotes are a word without letters.
        line.split(' ').map(|word| word.trim_matches('\'').as_bytes().to_vec()).collect()
    }

    fn line(&self, pick: u64, random: &mut Random) -> String {
        let consumer = *random.pick(&["a", "b", "c"]);
        let last = self.last.max(1);
        let entry = own(last.saturating_sub(random.below(14)).max(1));
        let job = format!("w{}", random.below(40));
        let mut given = match random.below(6) {
            0 => format!(" WORK {job}"),
            1 => format!(" WORK {}", own(last.saturating_sub(random.below(5)).max(1))),
            _ => String::new(),
        };
        // Who has it says so, as a rule.
        let pending = self.pending.get(&entry.trim_end_matches("-0").parse().unwrap_or(0));
        let owner = pending.and_then(|pend| pend.owner.as_deref()).filter(|_| random.chance(60)).unwrap_or(consumer);
        if random.chance(25) {
            let n = pending.map_or(1, |pend| pend.n).saturating_sub(random.below(4) / 3).max(1);
            given.push_str(&format!(" DELIVERY {n}"));
        }
        match random.below(30) {
            0..4 => format!("XADD s {} job {job}", own(self.last + 1 + random.below(4) / 3)),
            4..8 => format!("XREADGROUP GROUP g {consumer} COUNT {} STREAMS s >", 1 + random.below(4)),
            8..12 => format!("XWORK BEGIN s g {owner} {entry}{given}"),
            12..17 => {
                let digest = *random.pick(&["", " DIGEST x", " DIGEST x", " DIGEST y"]);
                let emit = if random.chance(60) { format!(" EMIT out * w {job}") } else { String::new() };
                format!("XWORK DONE s g {owner} {entry}{given}{digest}{emit}")
            }
            17 => {
                let option = *random.pick(&["", " RETRYIN 60"]);
                let delivery = given.find(" DELIVERY").map_or("", |at| &given[at..]);
                format!("XWORK FAIL s g {owner} {entry}{delivery}{option}")
            }
            18 | 19 => format!("XCLAIM s g {consumer} 0 {entry}{}", random.pick::<&str>(&["", " JUSTID"])),
            20 => format!("XACK s g {entry} {}", own(last)),
            21 => format!("XWORK HOLD s g IDS 1 {entry}"),
            22 => format!("XWORK RELEASE s g IDS 1 {entry}"),
            23 => format!("XDEL s {entry}"),
            24 => "XWORK AUDIT s g".to_owned(),
            25 => format!("XWORK GET s g {job}"),
            26 => random.pick::<&str>(&["XRANGE out - +", "XRANGE out - +", "XLEN dlq"]).to_string(),
            27 => random.pick::<&str>(&["XPENDING s g - + 9999", "XWORK LOG s g - +"]).to_string(),
            _ => format!("XWORK POLICY s g {}", option(pick, random)),
        }
    }
}

fn option(pick: u64, random: &mut Random) -> String {
    match random.below(13) {
        0..3 => format!("EVIDENCE {}", random.pick::<&str>(&["off", "record", "require"])),
        3 => format!("WORKFIELD {}", random.pick::<&str>(&["job", "''"])),
        4 => format!("IDEMPOTENT {}", random.pick::<&str>(&["yes", "no"])),
        5..8 => format!("LEASE {}", random.pick::<&str>(&["0", "40", "40", "150"])),
        8 => format!("MAXDELIVERIES {}", random.pick::<&str>(&["0", "2", "3"])),
        9 => format!("DEADLETTER {}", random.pick::<&str>(&["dlq", "''"])),
        10 if pick.is_multiple_of(3) => format!("LEDGERAGE {}", [200, 2000][(pick / 3 % 2) as usize]),
        11 if pick.is_multiple_of(4) => format!("LEDGERLEN {}", [5, 40][(pick / 4 % 2) as usize]),
        _ => format!("CONSUMERTTL {}", random.pick::<&str>(&["0", "30", "500"])),
    }
}
