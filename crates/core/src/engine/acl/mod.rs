//! Who may do what: the users, the connections that act for them, and the check before each command.
//!
//! Invariants: there is always a user `default`; every connection holds the newest state of its user, and `restricted`
//! says whether anything needs to be checked for it, so that a connection that may do everything costs one branch; a
//! connection whose user was deleted is closed and gets no other rights meanwhile. Users live in memory and come from
//! the settings; they are not part of the state and never in the log.

pub mod log;
pub mod rules;
mod selector;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use super::blocked::ClientIndex;
use super::facts::Facts;
use super::fault::Fault;
use super::pubsub::TopicKind;
use crate::command::args::Args;
use crate::command::table::{CommandSpec, Flags};
use crate::session::Client;
use crate::settings::Settings;
use log::{AclLog, Entry, Origin, Reason};
use rules::{Denial, RuleError, User};

/// The users, and what they were refused.
#[derive(Debug)]
pub struct Acl {
    /// By name, in byte order.
    users: BTreeMap<Box<[u8]>, Arc<User>>,
    /// The user of connections that have not named one.
    default: Arc<User>,
    /// ACL LOG.
    pub log: AclLog,
    /// Attempts refused, by [`Reason`].
    pub denied: [u64; 4],
}

/// A user by the words of a `user` line: its name and its rules. The line says all of it.
///
/// # Errors
/// A text for people.
pub fn user_of_line<T: AsRef<[u8]>>(words: &[T], all_channels: bool) -> Result<User, String> {
    let (name, rules) = words.split_first().ok_or("a user needs a name")?;
    let name = name.as_ref();
    if !User::is_name(name) {
        return Err("the name of a user is one word".into());
    }
    let mut user = User::new(name, all_channels);
    user.apply_all(rules).map_err(|error| match error {
        RuleError::Unmatched(begin) => {
            format!("Unmatched parenthesis in selector definition: {}", String::from_utf8_lossy(&begin))
        }
        RuleError::Rule(rule, reason) => format!("in '{}': {reason}", String::from_utf8_lossy(&rule)),
    })?;
    Ok(user)
}

/// A line of a file, by its number from 1, and the words behind `user`.
pub type UserLine = (usize, Vec<Vec<u8>>);

/// The lines of a file of users. Empty lines and those that begin with `#` are passed over.
///
/// # Errors
/// The number of the first line that is no `user` line, and a text for people.
pub fn users_of_file(bytes: &[u8]) -> Result<Vec<UserLine>, (usize, String)> {
    let mut users = Vec::new();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        match words.split_first() {
            None => {}
            Some((first, _)) if first[0] == b'#' => {}
            Some((first, rest)) if first.eq_ignore_ascii_case(b"user") && !rest.is_empty() => {
                users.push((index + 1, rest.iter().map(|word| word.to_vec()).collect()));
            }
            Some(_) => return Err((index + 1, "should start with 'user' and a name".into())),
        }
    }
    Ok(users)
}

impl Acl {
    /// The users that the settings name, and `default`.
    pub fn new(settings: &Settings) -> Acl {
        let all_channels = settings.acl_pubsub_default.all_channels();
        let default = Arc::new(User::open(&settings.requirepass, all_channels));
        let mut acl = Acl { users: BTreeMap::new(), default: default.clone(), log: AclLog::default(), denied: [0; 4] };
        acl.insert(default);
        for words in &settings.users {
            let user = user_of_line(words, all_channels).expect("lines of users were checked when they were read");
            acl.insert(Arc::new(user));
        }
        acl
    }

    fn insert(&mut self, user: Arc<User>) {
        if *user.name == *b"default" {
            self.default = user.clone();
        }
        self.users.insert(user.name.clone(), user);
    }

    /// A user by name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// All users by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.users.values()
    }

    /// The user of connections that have not named one.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// May everybody in who names no user?
    pub fn is_open(&self) -> bool {
        self.default.enabled && self.default.no_password
    }
}

impl Denial {
    /// What is said to who sent the command.
    pub fn fault(self, user: &User, spec: &CommandSpec) -> Fault {
        match self {
            Denial::Command => {
                let (name, command) = (&user.name, spec.name.as_bytes());
                Fault::concat(&[b"NOPERM User ", name, b" has no permissions to run the '", command, b"' command"])
            }
            Denial::Key(_) => Fault::NO_PERMISSION_KEY,
            Denial::Channel(_) => Fault::NO_PERMISSION_CHANNEL,
        }
    }

    /// What is said of a command that could be queued and may not be carried out any more.
    pub fn fault_at_exec(self) -> Fault {
        let reason = match self {
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => "no permission to access one of the channels used as arguments",
        };
        Fault::owned(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: {reason}"
        ))
    }
}

impl Client {
    /// From now on the connection acts for that user.
    pub fn act_for(&mut self, user: Arc<User>) {
        self.restricted = !user.may_do_everything();
        self.user = user;
    }
}

impl Engine {
    /// The user of a connection may not carry out this command: what stands in the way, noted in ACL LOG. For every way
    /// by which a command can come: `judge`, EXEC, readers that are woken, and scripts.
    pub(crate) fn find_denial(
        &mut self,
        index: ClientIndex,
        spec: &CommandSpec,
        args: Args<'_>,
        origin: Origin,
        facts: &Facts<'_>,
    ) -> Option<Denial> {
        let client = self.client(index).filter(|client| client.restricted)?;
        let user = client.user.clone();
        let denial = user.check(spec, args).err()?;
        let (reason, object) = match denial {
            Denial::Command => (Reason::Command, spec.name.as_bytes()),
            Denial::Key(at) => (Reason::Key, args.get(at)),
            Denial::Channel(at) => (Reason::Channel, args.get(at)),
        };
        self.note_denied(index, reason, origin, object, &user.name, facts.now_ms);
        Some(denial)
    }

    /// What `judge` says to a connection that has not authenticated, or whose user is restricted.
    #[cold]
    pub(super) fn refuse_access(
        &mut self,
        index: ClientIndex,
        spec: &CommandSpec,
        args: Args<'_>,
        facts: &Facts<'_>,
    ) -> Option<Fault> {
        let client = self.client(index)?;
        if !client.authenticated && !spec.flags.has(Flags::NO_AUTH) && !self.acl.is_open() {
            return Some(Fault::NO_AUTH);
        }
        let origin = if client.transaction.is_some() { Origin::Transaction } else { Origin::TopLevel };
        let user = client.user.clone();
        Some(self.find_denial(index, spec, args, origin, facts)?.fault(&user, spec))
    }

    pub(super) fn note_denied(
        &mut self,
        index: ClientIndex,
        reason: Reason,
        origin: Origin,
        object: &[u8],
        username: &[u8],
        now_ms: u64,
    ) {
        self.acl.denied[reason as usize] += 1;
        let mut client = Vec::new();
        if let Some(connection) = self.client(index) {
            Engine::describe(connection, now_ms, &mut client);
        }
        let (object, username) = (object.to_vec(), username.to_vec());
        let (created_ms, updated_ms) = (now_ms, now_ms);
        let entry = Entry { id: 0, count: 0, reason, origin, object, username, client, created_ms, updated_ms };
        self.acl.log.note(entry, self.settings.acllog_max_len as usize);
    }

    /// AUTH: the connection acts for that user if the password is right. `command` is what ACL LOG shows when not.
    pub(crate) fn authenticate(
        &mut self,
        index: ClientIndex,
        name: &[u8],
        password: &[u8],
        command: &[u8],
        now_ms: u64,
    ) -> Result<(), Fault> {
        // Also for a name that nobody has: how long it takes shall not tell which there are.
        let given = rules::hash(password);
        let Some(user) = self.acl.get(name).filter(|user| user.lets_in(&given)).cloned() else {
            self.note_denied(index, Reason::Auth, Origin::TopLevel, command, name, now_ms);
            return Err(Fault::WRONG_PASS);
        };
        if let Some(client) = self.client_mut(index) {
            client.act_for(user);
            client.authenticated = true;
        }
        Ok(())
    }

    /// The connection is again as one that has just been opened: of the user `default`, let in if anybody is.
    pub(crate) fn forget_user(&mut self, index: ClientIndex) {
        let (user, open) = (self.acl.default.clone(), self.acl.is_open());
        if let Some(client) = self.client_mut(index) {
            client.act_for(user);
            client.authenticated = open;
        }
    }

    /// A user is there or has changed. Holds at once for connections that act for it; those that are subscribed to
    /// what it may not hear any more are closed.
    pub(crate) fn put_user(&mut self, user: User) {
        let user = Arc::new(user);
        self.acl.insert(user.clone());
        for index in self.connections_of(&user.name) {
            let Some(client) = self.client_mut(index) else { continue };
            client.act_for(user.clone());
            let hears_more = client.subscriptions.as_deref().is_some_and(|subscriptions| {
                [TopicKind::Channel, TopicKind::Pattern, TopicKind::Shard]
                    .into_iter()
                    .any(|kind| subscriptions.names(kind).any(|name| !user.may_hear(name, kind == TopicKind::Pattern)))
            });
            if hears_more {
                self.close_by_rule(index);
            }
        }
    }

    /// A user is no more; its connections are closed. `false` if there was none of that name.
    pub(crate) fn delete_user(&mut self, name: &[u8]) -> bool {
        if self.acl.users.remove(name).is_none() {
            return false;
        }
        for index in self.connections_of(name) {
            if let Some(client) = self.client_mut(index) {
                client.authenticated = false;
            }
            self.close_by_rule(index);
        }
        true
    }

    /// ACL LOAD: these are the users now. `default` is as at the start if it is not among them.
    pub(crate) fn replace_users(&mut self, users: Vec<User>) {
        let gone: Vec<Box<[u8]>> =
            self.acl.users.keys().filter(|name| !users.iter().any(|user| user.name == **name)).cloned().collect();
        for name in gone {
            if *name == *b"default" {
                let all_channels = self.settings.acl_pubsub_default.all_channels();
                self.put_user(User::open(&self.settings.requirepass, all_channels));
            } else {
                self.delete_user(&name);
            }
        }
        users.into_iter().for_each(|user| self.put_user(user));
    }

    fn connections_of(&self, name: &[u8]) -> Vec<ClientIndex> {
        self.clients().filter(|(_, client)| *client.user.name == *name).map(|(index, _)| index).collect()
    }

    /// Closes a connection: at once, or when it has its reply if its command is the one that is being carried out.
    fn close_by_rule(&mut self, index: ClientIndex) {
        if self.own_pushes.running == Some(index) {
            self.unsubscribe_all(index);
            if let Some(client) = self.client_mut(index) {
                client.closing = true;
            }
        } else {
            self.kill(index);
        }
    }
}
