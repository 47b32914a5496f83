//! The case file: headings, symptoms and scripts, every line checked when it is read.

use std::path::Path;
use std::time::Duration;
use std::{fs, iter};

use super::notation::{Want, take_string};

/// One case.
#[derive(Debug)]
pub struct Case {
    /// Its name: three digits, stable, not consecutive.
    pub number: String,
    /// What it is about, e.g. `lag` or `trim (8.2)`.
    pub kinds: Vec<String>,
    /// What users saw go wrong.
    pub symptom: String,
    /// The script.
    pub steps: Vec<Step>,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.number, self.kinds.join(", "))
    }
}

impl Case {
    /// Whether it is of that kind; `trim` finds both "trim" and "trim (8.2)".
    pub fn is_kind(&self, tag: &str) -> bool {
        let tag = tag.to_lowercase();
        self.kinds
            .iter()
            .map(|kind| kind.to_lowercase())
            .any(|kind| kind == tag || kind.split(" (").next().is_some_and(|plain| plain == tag))
    }

    /// Whether a user's spelling of the number means this case: leading zeros do not count.
    pub fn is_number(&self, number: &str) -> bool {
        number.trim().trim_start_matches('0') == self.number.trim_start_matches('0')
    }
}

/// What a script line does.
#[derive(Debug)]
pub enum Action {
    /// `A> cmd => reply`
    Call(char, Vec<String>, Want),
    /// `B& cmd`
    Send(char, Vec<String>),
    /// `B< => reply`
    Reply(char, Want),
    /// `B<blocked`
    Blocked(char),
    /// `~ sleep N`
    Sleep(Duration),
    /// `~ sync`
    Sync,
    /// `~ reload`
    Reload,
}

/// One script line.
#[derive(Debug)]
pub struct Step {
    /// As written.
    pub text: String,
    /// As understood.
    pub action: Action,
}

impl Step {
    /// The letter of the connection it is about.
    pub fn connection(&self) -> Option<char> {
        match self.action {
            Action::Call(c, ..) | Action::Send(c, _) | Action::Reply(c, _) | Action::Blocked(c) => Some(c),
            Action::Sleep(_) | Action::Sync | Action::Reload => None,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("not understood: {text}");
        let action = if let Some(rest) = text.strip_prefix("~ ") {
            match rest {
                "reload" => Action::Reload,
                "sync" => Action::Sync,
                _ => {
                    let ms = rest.strip_prefix("sleep ").and_then(|ms| ms.parse().ok()).ok_or_else(unknown)?;
                    Action::Sleep(Duration::from_millis(ms))
                }
            }
        } else {
            let letter = text.chars().next().filter(char::is_ascii_uppercase).ok_or_else(unknown)?;
            match &text[1..] {
                "<blocked" => Action::Blocked(letter),
                rest => {
                    let (sign, rest) = rest.split_once(' ').ok_or_else(unknown)?;
                    let (arguments, want) = split_command(rest)?;
                    match (sign, arguments.is_empty(), want) {
                        (">", false, Some(want)) => Action::Call(letter, arguments, want),
                        ("&", false, None) => Action::Send(letter, arguments),
                        ("<", true, Some(want)) => Action::Reply(letter, want),
                        _ => return Err(unknown()),
                    }
                }
            }
        };
        Ok(Step { text: text.to_owned(), action })
    }
}

/// `cmd` or `cmd => reply`.
fn split_command(text: &str) -> Result<(Vec<String>, Option<Want>), String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('"') {
            arguments.push(take_string(&mut rest)?);
        } else {
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            if word == "=>" {
                return Ok((arguments, Some(Want::parse(after)?)));
            }
            arguments.push(word.to_owned());
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok((arguments, None))
}

/// Reads a case file.
///
/// # Errors
/// A sentence with the line that does not follow the notation.
pub fn load(path: &Path) -> Result<Vec<Case>, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).map_err(|e| format!("{}:{e}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let mut fenced = false;
    for (number, line) in iter::zip(1.., text.lines().map(str::trim_end)) {
        if let Some(case) = heading(line).filter(|_| !fenced) {
            cases.push(case);
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if line == "```" {
            fenced = !fenced;
        } else if fenced {
            case.steps.push(Step::parse(line).map_err(|e| format!("{number}: {e}"))?);
        } else if let Some(symptom) = line.strip_prefix("Symptom: ") {
            case.symptom = symptom.to_owned();
        }
    }
    match cases.iter().find(|case| case.steps.is_empty()) {
        Some(case) => Err(format!(" case {} has no script", case.number)),
        None if fenced => Err(" the last script never ends".into()),
        None if cases.is_empty() => Err(" no cases".into()),
        None => Ok(cases),
    }
}

/// `### NNN [kinds]`
fn heading(line: &str) -> Option<Case> {
    let (number, kinds) = line.strip_prefix("### ")?.split_once('[')?;
    let kinds = kinds.strip_suffix(']')?.split(',').map(|kind| kind.trim().to_owned()).collect();
    let number = number.split_whitespace().next()?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| Case { number: number.to_owned(), kinds, symptom: String::new(), steps: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_file_is_understood() {
        let cases = load(&super::super::case_file()).expect("the case file");
        assert_eq!(cases.len(), 64);
        assert!(cases.iter().all(|case| !case.symptom.is_empty()));
        let mut numbers: Vec<&str> = cases.iter().map(|case| case.number.as_str()).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), 64, "numbers are unique");
    }

    #[test]
    fn lines() {
        for line in [
            "A> XADD q * \"a b\" \"\\\"\" => \"1-0\"",
            "A> PING => PONG",
            "B& XREAD BLOCK 0 STREAMS q $",
            "B<blocked",
            "B< => nil",
            "~ sleep 20",
            "~ sync",
            "~ reload",
        ] {
            assert!(Step::parse(line).is_ok(), "{line}");
        }
        for line in [
            "A> PING",
            "A> => OK",
            "B& PING => PONG",
            "B<",
            "B< nil",
            "~ sleep",
            "~ sleep x",
            "~ rest",
            "a> PING => PONG",
            "# x",
            "A< PING => OK",
            "",
        ] {
            assert!(Step::parse(line).is_err(), "{line}");
        }
        let step = Step::parse("A> SET \"a b\" \"\" => OK").expect("a step");
        assert!(matches!(step.action, Action::Call('A', arguments, _) if arguments == ["SET", "a b", ""]));
    }

    #[test]
    fn files_that_make_no_sense() {
        for text in ["", "### 001 [a]\n", "### 001 [a]\n```\nA> PING => PONG\n", "### 001 [a]\n```\nwhat\n```\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn numbers_and_kinds() {
        let case = heading("### 007 [trim (8.2), Lag]").expect("a heading");
        assert!(case.is_number("7") && case.is_number("007") && !case.is_number("70"));
        assert!(case.is_kind("trim") && case.is_kind("lag") && case.is_kind("trim (8.2)") && !case.is_kind("tri"));
    }
}
