//! Settings from wherever they come: nothing panics, what is wrong is one line, and what CONFIG GET shows can be set again and
//! shows the same.

use impel_core::command::args::Args;
use impel_core::engine::acl;
use impel_core::resp::decode::split_words;
use impel_core::settings::text::{Directive, parse_command_line, parse_file};
use impel_core::settings::{Change, SETTINGS, Settings};

/// The first byte says where the rest comes from.
pub fn run(data: &[u8]) {
    let [kind, bytes @ ..] = data else { return };
    match kind % 4 {
        0 => {
            if let Ok(directives) = parse_file(bytes) {
                follow(&directives);
            }
        }
        1 => {
            let words: Vec<&[u8]> = bytes.split(|&byte| byte == 0).collect();
            if let Ok(line) = parse_command_line(&words) {
                follow(&line.options);
            }
        }
        2 => set_at_runtime(bytes),
        _ => {
            if let Err((line, what)) =
                acl::users_of_file(bytes).map(|users| users.iter().for_each(|user| same_user(&user.1)))
            {
                assert!(line > 0 && is_line(&what), "{what:?}");
            }
        }
    }
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\r'])
}

/// Takes directives as a start does, but for files that others name.
fn follow(directives: &[Directive]) {
    let mut settings = Settings::default();
    for directive in directives.iter().filter(|directive| !directive.is_include()) {
        let before = settings.clone();
        if let Err(error) = settings.apply(&directive.name, &directive.words) {
            assert!(settings == before, "what is refused has changed something");
            let _said = error.to_string();
        }
    }
    for words in &settings.users {
        same_user(words);
    }
    shown_again(&settings);
}

/// CONFIG SET with words as they stand in a line.
fn set_at_runtime(bytes: &[u8]) {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    if split_words(bytes, &mut text, &mut spans).is_none() {
        return;
    }
    let mut settings = Settings::default();
    let before = settings.clone();
    match settings.config_set(Args::new(&text, &spans)) {
        Ok(_) => shown_again(&settings),
        Err(_) => assert!(settings == before, "what is refused has changed something"),
    }
}

/// What is shown of each setting can be set, and is shown the same again.
fn shown_again(settings: &Settings) {
    for setting in SETTINGS {
        let shown = settings.value(setting.name).expect("the table has it");
        let refused =
            |why: String| panic!("{} shows \"{}\" and does not take it: {why}", setting.name, shown.escape_ascii());
        if setting.change == Change::Anytime {
            let mut again = settings.clone();
            let (bytes, cut) = ([setting.name.as_bytes(), &shown].concat(), setting.name.len());
            let spans = [(0, cut), (cut, bytes.len())];
            if let Err(text) = again.config_set(Args::new(&bytes, &spans)) {
                refused(String::from_utf8_lossy(&text).into_owned());
            }
            assert!(again == *settings, "{} is shown as something else", setting.name);
        } else {
            let mut again = Settings::default();
            if let Err(error) = again.apply(setting.name.as_bytes(), &[&shown]) {
                refused(error.to_string());
            }
            assert_eq!(again.value(setting.name), Some(shown), "{}", setting.name);
        }
    }
}

/// A user's line, made from what a line became, makes the same user.
fn same_user<T: AsRef<[u8]>>(words: &[T]) {
    let Ok(user) = acl::user_of_line(words, true) else { return };
    let line = user.line();
    // As the file of users is read: what is between white space, whatever it is.
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).collect();
    assert_eq!(words.first(), Some(&&b"user"[..]));
    let again = acl::user_of_line(&words[1..], true)
        .unwrap_or_else(|why| panic!("\"{}\" is not taken again: {why}", line.escape_ascii()));
    assert_eq!(again.line().escape_ascii().to_string(), line.escape_ascii().to_string());
}
