//! Rows of the commands about connections.

use super::CommandId;
use super::spec::{Categories, CommandSpec, Flags, block, command, integer, one_of, string, word};

pub(super) static COMMANDS: [CommandSpec; 8] = [
    command("auth", CommandId::Auth, -2, "1.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs("connection", "Proves who the client is.", "O(N), N being the passwords of the user")
        .arguments(&[string("username").since("6.0.0").optional(), string("password")]),
    command("client", CommandId::Container, -2, "2.4.0")
        .docs("connection", "Container of the commands about connections.", "Depends on subcommand")
        .subcommands(&[
            command("client|id", CommandId::ClientId, 2, "5.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Tells the ID of the connection.", "O(1)"),
            command("client|info", CommandId::ClientInfo, 2, "6.2.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Describes the connection.", "O(1)")
                .tips(&["nondeterministic_output"]),
            command("client|list", CommandId::ClientList, -2, "2.4.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Describes all connections, or some.", "O(N), N being the connections")
                .tips(&["nondeterministic_output"])
                .arguments(&[
                    one_of(
                        "client-type",
                        &[
                            word("normal", "NORMAL"),
                            word("master", "MASTER"),
                            word("replica", "REPLICA"),
                            word("pubsub", "PUBSUB"),
                        ],
                    )
                    .token("TYPE")
                    .since("5.0.0")
                    .optional(),
                    integer("client-id").token("ID").since("6.2.0").optional().multiple(),
                ]),
            command("client|setname", CommandId::ClientSetName, 3, "2.6.9")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Gives the connection a name.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[string("connection-name")]),
            command("client|getname", CommandId::ClientGetName, 2, "2.6.9")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Tells the name of the connection.", "O(1)"),
            command("client|setinfo", CommandId::ClientSetInfo, 4, "7.2.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Notes the name or version of the client library.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[one_of(
                    "attr",
                    &[string("libname").token("LIB-NAME"), string("libver").token("LIB-VER")],
                )]),
            command("client|kill", CommandId::ClientKill, -3, "2.4.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Closes connections.", "O(N), N being the connections")
                .arguments(&[one_of(
                    "filter",
                    &[
                        string("old-format").display("ip:port").deprecated("2.8.12"),
                        one_of(
                            "new-format",
                            &[
                                integer("client-id").token("ID").since("2.8.12").optional(),
                                one_of(
                                    "client-type",
                                    &[
                                        word("normal", "NORMAL"),
                                        word("master", "MASTER").since("3.2.0"),
                                        word("slave", "SLAVE"),
                                        word("replica", "REPLICA").since("5.0.0"),
                                        word("pubsub", "PUBSUB"),
                                    ],
                                )
                                .token("TYPE")
                                .since("2.8.12")
                                .optional(),
                                string("username").token("USER").optional(),
                                string("addr").token("ADDR").display("ip:port").optional(),
                                string("laddr").token("LADDR").display("ip:port").since("6.2.0").optional(),
                                one_of("skipme", &[word("yes", "YES"), word("no", "NO")]).token("SKIPME").optional(),
                                integer("maxage").token("MAXAGE").since("7.4.0").optional(),
                            ],
                        )
                        .multiple(),
                    ],
                )]),
            command("client|unblock", CommandId::ClientUnblock, -3, "5.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Ends the wait of a client that is blocked.", "O(log N), N being the connections")
                .arguments(&[
                    integer("client-id"),
                    one_of("unblock-type", &[word("timeout", "TIMEOUT"), word("error", "ERROR")]).optional(),
                ]),
            command("client|reply", CommandId::ClientReply, 3, "3.2.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Turns replies to the connection on or off.", "O(1)")
                .arguments(&[one_of("action", &[word("on", "ON"), word("off", "OFF"), word("skip", "SKIP")])]),
            command("client|no-evict", CommandId::ClientNoEvict, 3, "7.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Spares the connection when clients are closed to free memory.", "O(1)")
                .arguments(&[one_of("enabled", &[word("on", "ON"), word("off", "OFF")])]),
            command("client|no-touch", CommandId::ClientNoTouch, 3, "7.2.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Makes commands of the connection not count as a use of keys.", "O(1)")
                .arguments(&[one_of("enabled", &[word("on", "ON"), word("off", "OFF")])]),
            command("client|pause", CommandId::ClientPause, -3, "3.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Holds the commands of all clients back for some time.", "O(1)")
                .arguments(&[
                    integer("timeout"),
                    one_of("mode", &[word("write", "WRITE"), word("all", "ALL")]).since("6.2.0").optional(),
                ]),
            command("client|unpause", CommandId::ClientUnpause, 2, "6.2.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("connection", "Ends what CLIENT PAUSE began.", "O(N), N being the clients held back"),
            command("client|help", CommandId::ClientHelp, 2, "5.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("connection", "Shows the subcommands.", "O(1)"),
        ]),
    command("echo", CommandId::Echo, 2, "1.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("connection", "Answers with its argument.", "O(1)")
        .arguments(&[string("message")]),
    command("hello", CommandId::Hello, -1, "6.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs("connection", "Chooses the protocol version; can authenticate and name the connection.", "O(1)")
        .arguments(&[block(
            "arguments",
            &[
                integer("protover"),
                block("auth", &[string("username"), string("password")]).token("AUTH").optional(),
                string("clientname").token("SETNAME").optional(),
            ],
        )
        .optional()]),
    command("ping", CommandId::Ping, -1, "1.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::FAST])
        .docs("connection", "Answers PONG, or its argument.", "O(1)")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .arguments(&[string("message").optional()]),
    command("quit", CommandId::Quit, -1, "1.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs("connection", "Closes the connection.", "O(1)")
        .deprecated("7.2.0", "closing the connection"),
    command("reset", CommandId::Reset, 1, "6.2.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs("connection", "Puts the connection back to how it began.", "O(1)"),
    command("select", CommandId::Select, 2, "1.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("connection", "Chooses the database of the connection.", "O(1)")
        .arguments(&[integer("index")]),
];
