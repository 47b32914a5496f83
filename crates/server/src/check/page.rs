//! What an examination found, as one page of plain text for an operator.

use std::fmt::Write;

use super::repair::Repaired;
use super::{Counts, Damage, Report, SegmentReport, SnapshotFault, Verdict};
use crate::calendar::timestamp;
use crate::disk::Holder;

/// Of more segments than this only the first, the last and the damaged ones are listed.
const SEGMENTS_LISTED: usize = 16;

/// Damages and records left out that are listed.
const LINES_MAX: usize = 50;

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{words}");
}

/// The page.
pub fn page(report: &Report) -> String {
    let mut text = String::new();
    let verdict = match report.verdict() {
        Verdict::Whole => "whole",
        Verdict::Damaged => "DAMAGED, a start would go on",
        Verdict::Refused => "a start WOULD REFUSE",
    };
    line(&mut text, format_args!("Data directory {}: {verdict}", report.folder));
    line(
        &mut text,
        format_args!(
            "  {}",
            match report.holder {
                Holder::Nobody => "no server works in it",
                Holder::Server =>
                    "A SERVER WORKS IN IT: this is what was there up to the last whole commit while it was read",
                Holder::Unknown => "whether a server works in it cannot be told: its lock cannot be read",
            }
        ),
    );
    snapshots(&mut text, report);
    segments(&mut text, &report.segments);
    gaps(&mut text, &report.gaps);
    state(&mut text, report);
    start(&mut text, report);
    damage(&mut text, &report.damage);
    text
}

fn snapshots(text: &mut String, report: &Report) {
    line(text, format_args!("\nSnapshots"));
    for snapshot in &report.snapshots {
        let position = snapshot.position;
        match &snapshot.contents {
            Ok(contents) => line(
                text,
                format_args!(
                    "  at position {position}, of {}: {}, {} bytes{}",
                    timestamp(contents.now_ms),
                    amount(&contents.counts),
                    contents.len_bytes,
                    if contents.with_log { "" } else { ", taken without a log" }
                ),
            ),
            Err(SnapshotFault::Damaged { offset, what }) => {
                line(text, format_args!("  at position {position}: DAMAGED at byte {offset}: {what}"));
            }
            Err(SnapshotFault::Foreign(version)) => {
                line(
                    text,
                    format_args!("  at position {position}: of format {version}, which this version does not know"),
                );
            }
            Err(SnapshotFault::Unknown(what)) => {
                line(text, format_args!("  at position {position}: whole, and of a later version: {what}"));
            }
        }
    }
    if report.snapshots.is_empty() {
        line(text, format_args!("  none"));
    }
    for name in &report.leftovers {
        let what =
            if name.ends_with(".tmp") { "unfinished, a start removes it" } else { "put aside by a start, never read" };
        line(text, format_args!("  {name}: {what}"));
    }
}

fn segments(text: &mut String, segments: &[SegmentReport]) {
    line(text, format_args!("\nLog"));
    let total = segments.iter().fold((0, 0), |sum, one| (sum.0 + one.commits, sum.1 + one.used_bytes));
    let (first, last) = match (segments.first(), segments.last()) {
        (Some(first), Some(last)) => (first.start, last.end),
        _ => return line(text, format_args!("  none")),
    };
    line(
        text,
        format_args!(
            "  {} segments, positions {first} to {last}, {} commits, {} bytes in use",
            segments.len(),
            total.0,
            total.1
        ),
    );
    let mut is_gap = false;
    for (index, one) in segments.iter().enumerate() {
        let near_an_end = index < SEGMENTS_LISTED / 2 || index + SEGMENTS_LISTED / 2 >= segments.len();
        if !near_an_end && one.is_whole {
            if !is_gap {
                line(text, format_args!("  ..."));
            }
            is_gap = true;
            continue;
        }
        is_gap = false;
        let times = match one.times {
            Some((first, last)) => format!(", {} to {}", timestamp(first), timestamp(last)),
            None => String::new(),
        };
        line(
            text,
            format_args!(
                "  from position {} to {}: {} commits{times}, {} bytes of {}{}",
                one.start,
                one.end,
                one.commits,
                one.used_bytes,
                one.len_bytes,
                if one.is_whole { "" } else { ", DAMAGED" }
            ),
        );
    }
}

fn state(text: &mut String, report: &Report) {
    let state = &report.state;
    let from = match report.start.snapshot {
        Some(position) => format!("snapshot at position {position}"),
        None => "no snapshot".into(),
    };
    line(
        text,
        format_args!(
            "\nState at position {}{} ({from}; {} records in {} commits of the log)",
            state.position,
            if report.start.refusal.is_some() { ", before the damage" } else { "" },
            state.records,
            state.commits
        ),
    );
    for (number, counts) in &state.databases {
        line(text, format_args!("  database {number}: {}", amount(counts)));
    }
    if state.databases.is_empty() {
        line(text, format_args!("  no keys"));
    }
    line(text, format_args!("  digest {}", state.digest));
    if let Some(older) = &report.older {
        let base = older.base;
        match &older.digest {
            Ok(digest) if *digest == state.digest => {
                line(text, format_args!("  the same from position {base} on by the log alone"));
            }
            Ok(digest) => line(text, format_args!("  ANOTHER from position {base} on: {digest}")),
            Err(why) => line(text, format_args!("  NOT REACHED from position {base} on: {why}")),
        }
    }
    match &state.fault {
        None => line(text, format_args!("  every invariant holds")),
        Some(fault) => line(text, format_args!("  AN INVARIANT DOES NOT HOLD: {fault}")),
    }
}

fn start(text: &mut String, report: &Report) {
    let start = &report.start;
    let (found, done) = start.row.meaning();
    line(text, format_args!("\nA start"));
    line(text, format_args!("  takes recovery row {:?}: {found}: {done}", start.row));
    if start.cut_bytes > 0 {
        line(text, format_args!("  cuts off {} bytes at the end, never known to be durable", start.cut_bytes));
    }
    if start.log_is_missing {
        line(
            text,
            format_args!(
                "  there is NO LOG, though one was kept when the snapshot was taken: what came after it is not here"
            ),
        );
    }
    if let Some(refusal) = &start.refusal {
        line(text, format_args!("  {refusal}"));
    }
    for position in report.unknown_commits.iter().take(LINES_MAX) {
        line(
            text,
            format_args!("  the commit at position {position} is whole, and holds what this version does not know"),
        );
    }
}

fn gaps(text: &mut String, gaps: &[Damage]) {
    for one in gaps.iter().take(LINES_MAX) {
        let Some((from, Some(to))) = one.positions else { continue };
        line(
            text,
            format_args!(
                "  positions {from} to {to} were never copied here: no start needs them, no moment in there can be restored"
            ),
        );
    }
    if gaps.len() > LINES_MAX {
        line(text, format_args!("  and {} more gaps", gaps.len() - LINES_MAX));
    }
}

fn damage(text: &mut String, damage: &[Damage]) {
    line(text, format_args!("\nDamage"));
    for one in damage.iter().take(LINES_MAX) {
        line(text, format_args!("  {}", describe(one)));
    }
    if damage.len() > LINES_MAX {
        line(text, format_args!("  and {} more places", damage.len() - LINES_MAX));
    }
    if damage.is_empty() {
        line(text, format_args!("  none"));
    }
}

/// One damage in a line.
pub fn describe(damage: &Damage) -> String {
    let mut text = damage.path.display().to_string();
    match damage.bytes {
        Some((from, Some(to))) => text += &format!(", bytes {from} to {to}"),
        Some((from, None)) => text += &format!(", from byte {from} on"),
        None => {}
    }
    text += &format!(": {}", damage.what);
    match damage.positions {
        Some((from, Some(to))) => text += &format!("; log positions {from} to {to} are lost ({} bytes)", to - from),
        Some((from, None)) => text += &format!("; what stood at log position {from} and behind it is not here"),
        None => return text,
    }
    let time = |ms: Option<u64>| ms.map(timestamp);
    match (time(damage.before_ms), time(damage.after_ms)) {
        (Some(before), Some(after)) => text += &format!(", written between {before} and {after}"),
        (Some(before), None) => text += &format!(", written after {before}"),
        (None, Some(after)) => text += &format!(", written before {after}"),
        (None, None) => {}
    }
    text
}

fn amount(counts: &Counts) -> String {
    let Counts { keys, streams, entries, groups, pending } = counts;
    format!("{keys} keys, {streams} streams, {entries} entries, {groups} groups, {pending} pending")
}

/// What a repair made, for the end of the page.
pub fn repaired(repaired: &Repaired, folder: &str) -> String {
    let mut text = String::new();
    let verdict = if repaired.is_complete() { "everything is in it" } else { "something is LOST" };
    line(&mut text, format_args!("\nRepaired into {folder}: {verdict}"));
    line(&mut text, format_args!("  a snapshot at position {}: {}", repaired.position, amount(&repaired.counts)));
    line(&mut text, format_args!("  digest {}", repaired.digest));
    let base = repaired.base.map_or("nothing".into(), |position| format!("the snapshot at position {position}"));
    line(
        &mut text,
        format_args!(
            "  made of {base} and {} commits of the log, {} of them behind what is lost",
            repaired.commits, repaired.commits_behind
        ),
    );
    for one in &repaired.salvaged {
        line(
            &mut text,
            format_args!(
                "  {} keys are from the damaged snapshot at position {}, of which {} chunks are damaged{}",
                one.keys,
                one.position,
                one.chunks_lost,
                if one.is_all { "" } else { " and what stood behind them is out of reach" }
            ),
        );
    }
    for lost in &repaired.lost {
        line(&mut text, format_args!("  lost: {} (how many commits that were is not known)", describe(lost)));
    }
    if let Some(why) = &repaired.given_up {
        line(
            &mut text,
            format_args!("  what stood behind the first loss is given up, as it does not hold together: {why}"),
        );
    }
    if repaired.left_out > 0 {
        line(&mut text, format_args!("  {} records behind what is lost do not fit any more:", repaired.left_out));
        for one in repaired.named.iter().take(LINES_MAX) {
            let key = match &one.key {
                Some((db, key)) => format!(" of key {} in database {db}", key.escape_ascii()),
                None => String::new(),
            };
            let (position, time) = (one.position, timestamp(one.now_ms));
            line(&mut text, format_args!("    position {position}, {time}: {}{key}: {}", one.kind, one.why));
        }
        if repaired.left_out > LINES_MAX as u64 {
            line(&mut text, format_args!("    and {} more", repaired.left_out - LINES_MAX as u64));
        }
    }
    text
}
