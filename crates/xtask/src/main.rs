//! Developer commands: `cargo xtask --help` lists them. Only dispatch lives here; each command has its own file.

use std::process::ExitCode;

use impel_xtask::arguments::Stop;
use impel_xtask::commands::COMMANDS;
use mimalloc::MiMalloc;

/// The simulator is allocation above all.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = words.split_first() else {
        print!("{}", overview());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "--help" | "-h" | "help") {
        print!("{}", overview());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("no such command: {name}\n\n{}", overview());
        return ExitCode::from(2);
    };
    match (command.run)(rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Stop::Help(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(Stop::Usage(message)) => {
            eprintln!("cargo xtask {name}: {message}");
            ExitCode::from(2)
        }
    }
}

fn overview() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND [--help]\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {:<8} {}\n", command.name, command.about));
    }
    text
}
