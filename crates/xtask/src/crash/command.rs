//! A command of an owner, as it is written.
//!
//! Ids are explicit, so that the effect is the same whenever it is carried out; where only the server can choose one,
//! the command says so.

/// One command, or a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What is sent one by one; a transaction is more than one part, the last being EXEC.
    pub parts: Vec<Vec<String>>,
    /// The key whose next id the server makes of its clock.
    pub server_id: Option<String>,
    /// The entries of the reply come in the order of times that only the server knows.
    pub any_order: bool,
}

impl Command {
    /// A command of these words.
    pub fn new(words: Vec<String>) -> Self {
        Command { parts: vec![words], server_id: None, any_order: false }
    }

    /// What of it may have an effect that no command shows: the field by which a group orders, the order in which entries
    /// were given back and when they come, which messages are remembered. Each has the same effect when done again.
    pub fn hidden(&self) -> Vec<Command> {
        let hides = |words: &&Vec<String>| match words[0].as_str() {
            "XNACK" | "XIDMPRECORD" | "XCFGSET" => true,
            "XGROUP" => words[1] == "CFGSET",
            _ => false,
        };
        self.parts.iter().filter(hides).cloned().map(Command::new).collect()
    }

    /// MULTI, these, EXEC. None of them may leave anything to the server.
    pub fn transaction(commands: Vec<Command>) -> Self {
        let mut parts = vec![list(&["MULTI"])];
        parts.extend(commands.into_iter().flat_map(|command| command.parts));
        parts.push(list(&["EXEC"]));
        Command { parts, server_id: None, any_order: false }
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(|words| words.join(" ")).collect();
        f.write_str(&parts.join("; "))
    }
}

/// Words of a command.
pub fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
