//! The text of `impel --help`, from the table.

use super::{Group, SETTINGS, Setting};

/// Every honoured setting with its range and default, by chapter.
pub fn help_text() -> String {
    let mut text = String::from(
        "Sizes take the units kb, mb and gb. Settings that only Redis has a use for are accepted and do nothing:\ndocs/settings.md lists them.\n",
    );
    for (group, title) in Group::TITLES {
        text.push_str(&format!("\n{title}\n"));
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            text.push_str(&entry(setting));
        }
    }
    text
}

fn entry(setting: &Setting) -> String {
    let Setting { name, doc, default, .. } = setting;
    let default = if default.is_empty() { "\"\"" } else { default };
    // A long default has a line of its own.
    let between = if doc.len() + default.len() > 90 { "\n      " } else { " " };
    format!("  --{name} {}\n      {doc}{between}(default {default})\n", setting.kind.syntax())
}
