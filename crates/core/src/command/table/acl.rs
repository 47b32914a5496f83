//! Rows of the commands about users and what they may do.

use super::CommandId;
use super::spec::{CommandSpec, Flags, command, integer, one_of, string, word};

const ADMIN: &[Flags] = &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE];
const ANYBODY: &[Flags] = &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE];
const EVERY_NODE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

pub(super) static COMMANDS: [CommandSpec; 1] = [command("acl", CommandId::Container, -2, "6.0.0")
    .docs("server", "Container of the commands about users and their rights.", "Depends on subcommand")
    .subcommands(&[
        command("acl|cat", CommandId::AclCat, -2, "6.0.0")
            .flags(ANYBODY)
            .docs("server", "Lists the categories of commands, or the commands of one.", "O(N), N being the commands")
            .arguments(&[string("category").optional()]),
        command("acl|deluser", CommandId::AclDelUser, -3, "6.0.0")
            .flags(ADMIN)
            .docs("server", "Deletes users and closes their connections.", "O(N), N being the connections")
            .tips(EVERY_NODE)
            .arguments(&[string("username").multiple()]),
        command("acl|dryrun", CommandId::AclDryRun, -4, "7.0.0")
            .flags(ADMIN)
            .docs("server", "Tells whether a user may carry out a command, without doing so.", "O(1)")
            .arguments(&[string("username"), string("command"), string("arg").optional().multiple()]),
        command("acl|genpass", CommandId::AclGenPass, -2, "6.0.0")
            .flags(ANYBODY)
            .docs("server", "Makes a password that cannot be guessed.", "O(1)")
            .arguments(&[integer("bits").optional()]),
        command("acl|getuser", CommandId::AclGetUser, 3, "6.0.0")
            .flags(ADMIN)
            .docs("server", "Shows the rules of a user.", "O(N), N being the rules")
            .arguments(&[string("username")]),
        command("acl|list", CommandId::AclList, 2, "6.0.0").flags(ADMIN).docs(
            "server",
            "Shows the rules of all users.",
            "O(N), N being the users",
        ),
        command("acl|load", CommandId::AclLoad, 2, "6.0.0").flags(ADMIN).docs(
            "server",
            "Takes the users from the ACL file.",
            "O(N), N being the users",
        ),
        command("acl|log", CommandId::AclLog, -2, "6.0.0")
            .flags(ADMIN)
            .docs("server", "Shows or forgets the attempts that were refused.", "O(N), N being the entries shown")
            .arguments(&[one_of("operation", &[integer("count"), word("reset", "RESET")]).optional()]),
        command("acl|save", CommandId::AclSave, 2, "6.0.0")
            .flags(ADMIN)
            .docs("server", "Writes the users to the ACL file.", "O(N), N being the users")
            .tips(EVERY_NODE),
        command("acl|setuser", CommandId::AclSetUser, -3, "6.0.0")
            .flags(ADMIN)
            .docs("server", "Makes a user or changes its rules.", "O(N), N being the rules and the connections")
            .tips(EVERY_NODE)
            .arguments(&[string("username"), string("rule").optional().multiple()]),
        command("acl|users", CommandId::AclUsers, 2, "6.0.0").flags(ADMIN).docs(
            "server",
            "Lists the names of the users.",
            "O(N), N being the users",
        ),
        command("acl|whoami", CommandId::AclWhoAmI, 2, "6.0.0").flags(ANYBODY).docs(
            "server",
            "Names the user of the connection.",
            "O(1)",
        ),
        command("acl|help", CommandId::AclHelp, 2, "6.0.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
            "server",
            "Shows the subcommands.",
            "O(1)",
        ),
    ])];
