//! A few lives, and that a life is the same when it is lived again.

use super::*;

const SHORT: usize = 600;

#[test]
fn a_seed_lived_twice_is_one_life() {
    for seed in 1..5 {
        let (first, again) = (play_seed(seed, SHORT, true), play_seed(seed, SHORT, true));
        assert!(first.as_ref().is_ok_and(|report| report.commands > 100 && report.trace != 0), "{first:?}");
        assert_eq!(first, again);
    }
    assert_ne!(play_seed(1, SHORT, true).unwrap().trace, play_seed(3, SHORT, true).unwrap().trace);
}

#[test]
fn some_lives_come_to_a_good_end() {
    let mut all = Report::default();
    for seed in 100..160 {
        match play_seed(seed, SHORT, true) {
            Ok(report) => all.add(&report),
            Err(story) => panic!("{story}"),
        }
    }
    println!("{all}");
    assert!(all.crashes > 20 && all.kills > 5 && all.snapshots > 20 && all.judged > 1000, "{all}");
}

#[test]
fn lives_of_every_tempo_and_of_work_are_among_those_of_the_test_command() {
    let setups = || (0..60).map(Setup::of);
    for tempo in tempo::TEMPOS {
        assert!(setups().filter(|setup| setup.tempo == tempo).count() >= 3, "{tempo}");
    }
    assert!(setups().filter(|setup| setup.work).count() >= 5);
}

#[test]
fn lives_of_work_bring_about_every_outcome() {
    let mut outcomes = std::collections::BTreeSet::new();
    let lives = (0..).filter(|seed| Setup::of(*seed).work).take(24);
    for seed in lives {
        let setup = Setup::of(seed);
        let mut world = World::new(seed, &setup, false);
        world.live(&mut Source::new(seed, &setup, SHORT), None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let model = &world.follower.expect("it is followed").model;
        outcomes.extend(model.book.as_ref().expect("it is about work").outcomes());
    }
    assert_eq!(outcomes.len(), 11, "{outcomes:?}");
}

#[test]
fn what_has_come_before_its_connection_was_let_in_is_read() {
    // Lives of two steps: one command arrives while the server still starts, and nothing else happens.
    for seed in [274, 912, 1118, 1771] {
        assert_eq!(play_seed(seed, 2, true).map(|report| report.seeds), Ok(1), "seed {seed}");
    }
}
