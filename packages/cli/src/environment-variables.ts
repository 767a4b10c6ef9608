/** A variable of the environment that is no key of tapedeck.yaml. For docs/settings.md: Markdown, in one line. */
export type EnvironmentVariable = {
  readonly name: string;
  /** The default, where the command's option does not state it. */
  readonly otherwise?: string;
  readonly description: string;
};

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** The variables that users set. Command options describe more of the words; the settings page adds their flags. */
export const environmentVariables: readonly EnvironmentVariable[] = [
  {
    name: "TAPEDECK_DATA",
    description: "The data folder. The services' logs are in `log/` there.",
  },
  {
    name: "TAPEDECK_CONFIG",
    otherwise: "`tapedeck.yaml`, if present",
    description: "The settings file. Services that are started one by one read a file only if this is set.",
  },
  {
    name: "TAPEDECK_LOG_LEVEL",
    otherwise: "`info`",
    description: `The lowest level that the services log: ${logLevels.map((level) => `\`${level}\``).join(", ")}. With \`debug\`, a failing command prints a stack trace.`,
  },
  {
    name: "TAPEDECK_LOG_FORMAT",
    otherwise: "`pretty` in a terminal, else `json`",
    description: "`json` or `pretty`, for services that are started one by one. `tapedeck up` writes JSON.",
  },
  {
    name: "TAPEDECK_URL",
    otherwise: "that of `tapedeck login`, else this machine's",
    description:
      "The Tapedeck server that commands use: `https://host[:port]`, on this machine `http://127.0.0.1:7052` (`--url`).",
  },
  {
    name: "TAPEDECK_GRPC_PORT",
    otherwise: "as `tapedeck login` found, else one below the port of the URL",
    description: "The gRPC port of the same host.",
  },
  {
    name: "TAPEDECK_TOKEN",
    otherwise: "that of `tapedeck login`",
    description: "The token that every command sends. `tapedeck run` does not pass it on to its command.",
  },
  {
    name: "TAPEDECK_CA",
    otherwise: "that of `tapedeck login`, else the authorities that Node.js and the system trust",
    description: "PEM file of certificate authorities to trust.",
  },
  {
    name: "TAPEDECK_SOURCE",
    otherwise: "none",
    description: "The source for `state`, `sessions`, `logs` and other commands.",
  },
  {
    name: "TAPEDECK_DEVELOPER",
    otherwise: "login name; for a rkt host: this machine's name; for an imported file: as in the file",
    description: "The developer of recordings by `run`, `record` and `import`.",
  },
  {
    name: "TAPEDECK_PROJECT",
    otherwise:
      "from skaffold.yaml, else the Vagrantfile's folder, else this folder; for a rkt host: `host`; for an imported file: as in the file",
    description: "The project of recordings by `run`, `record` and `import`.",
  },
  {
    name: "TAPEDECK_REDACT",
    description: "Whether `run`, `record` and `import` mask secrets before anything is stored: `on` or `off`.",
  },
  {
    name: "TAPEDECK_FIND",
    otherwise: "`sockets` on Linux, else `log`",
    description: "How `run` finds a Vagrant server: by its sockets or by its log.",
  },
  {
    name: "TAPEDECK_SPILL",
    otherwise: "`$XDG_STATE_HOME/tapedeck/spill`, else `~/.local/state/tapedeck/spill`",
    description: "Where `run` and `record` keep undelivered recordings, and where `up` looks for them.",
  },
  {
    name: "TAPEDECK_OFF",
    otherwise: "off",
    description: "With `1`, `tapedeck run` runs the command without recording it.",
  },
  {
    name: "TAPEDECK_NOTIFY",
    otherwise: "off",
    description: "With `1`, `tapedeck run` shows a notice on the desktop when a loop fails, and when it is good again.",
  },
  {
    name: "TAPEDECK_ANSWER_WITHIN",
    otherwise: "`250ms`",
    description:
      "How long `tapedeck run` waits, before the command starts, for Tapedeck to accept the recording; `0s` skips this check.",
  },
];
