import { type Argument, Command, type Option } from "commander";
import { allCommands } from "../commands/all.ts";
import { addListFlags, sourcesArgument } from "../commands/options.ts";
import { code, table } from "./table.ts";

/** The commands by what a person wants to do. */
const groups: Readonly<Record<string, readonly string[]>> = {
  record: ["up", "run", "record", "import"],
  inspect: [
    ...["open", "status", "watch", "tail", "logs", "wait", "state", "sessions"],
    ...["loops", "search", "why", "explain", "compare", "stats", "mcp"],
  ],
  export: ["export", "replay"],
  maintain: ["sink", "erase", "workspace", "rebuild", "backup", "restore", "new-epoch", "doctor", "uninstall"],
  access: ["login", "logout", "context", "token", "audit", "sql-role", "completion"],
};

/** A flag that at least this many commands describe alike is described once. */
const minCommands = 3;

/** A command that lacks more of the filters than this has its own named one by one. */
const maxMissingFilters = 2;

/** docs/commands.md: the `--help` of every command. */
export async function commandsPage(): Promise<string> {
  const commands = new Map((await allCommands()).map((command) => [command.name(), command]));
  const named = Object.values(groups).flat();
  const missing = [...commands.keys()].filter((name) => !named.includes(name));
  if (missing.length > 0) throw new Error(`commands without a group: ${missing.join(", ")}`);
  const ordered = named.map((name) => found(commands, name));
  const common = commonOptions(within(ordered));
  const others = [...common].filter(([key]) => !filters.has(key)).map(([, option]) => option);
  return `${[
    "# Commands",
    "<!-- Written from the commands by `npm run docs`: change their help, not this page. -->",
    intro,
    table(
      ["to …", "commands"],
      Object.entries(groups).map(([group, names]) => [group, names.map((name) => `[${name}](#${name})`).join(", ")]),
    ),
    naming,
    printed,
    "## Flags of many commands",
    flagsTable(others),
    "### Filters",
    flagsTable([...filters.values()]),
    ...ordered.flatMap((command) => sections(command, "", common)),
  ].join("\n\n")}\n`;
}

const intro = `Commands use the Tapedeck server on this machine, or the one that \`tapedeck login\`, \`TAPEDECK_URL\` or \`--url\` names
([team.md](team.md#recording)). In the checkout put \`npx\` before them. [settings.md](settings.md#environment-only) has the variables that
they read.`;

const naming = `## How sources and loops are named

A source is named as an argument or with \`-s\`: \`alice/shop\`, or a part of it that no other source has (\`alice\`). \`[source...]\` takes
several. In a project's folder, \`why\`, \`state\`, \`loops\`, \`logs\`, \`wait\` and \`open\` mean the source as which \`tapedeck run\` records
there, and need no name; \`--all\` means all.
A loop is \`alice/shop#54\`, as \`tapedeck loops\` lists it, or \`54\` where its source is known. (Shells take \`#54\` alone for a comment.) A number means
the newest loop that has it; an older one has the end of its session before it: \`alice/shop#VYDZMY.1.54\`.

\`-o json\` is the same as \`--json\`. A mistyped line, or one of \`gh\`, \`kubectl\` or \`docker\`, is answered with the line that was probably meant.`;

const printed = `## What is printed

Times (\`--since\`, \`--until\`, \`--at\`) are written \`10m\` (ago), \`yesterday\`, a date, or exactly (\`2026-01-31T12:00:00Z\`).

Commands print text without control characters, escape sequences and marks of direction. \`--json\` escapes them, so that nothing is lost:
\`tapedeck logs --json | jq -rj .detail.text\` gives the recorded bytes. A command whose reader has left (\`| head\`) ends silently; \`up\`,
\`run\`, \`record\` and all commands that change something continue.`;

function found(commands: ReadonlyMap<string, Command>, name: string): Command {
  const command = commands.get(name);
  if (command === undefined) throw new Error(`no command ${name}`);
  return command;
}

/** All commands, and those inside of them. */
function within(commands: readonly Command[]): readonly Command[] {
  return commands.flatMap((command) => [command, ...within(command.commands)]);
}

const keyOf = ({ flags, description }: Option) => `${flags} ${description}`;

/** What narrows a list. */
const filters = new Map(addListFlags(new Command()).options.map((option) => [keyOf(option), option]));

function flagsTable(options: readonly Option[]): string {
  return table(
    ["flag", "what it does"],
    options.map(({ flags, description }) => [code(flags), description]),
  );
}

function commonOptions(commands: readonly Command[]): ReadonlyMap<string, Option> {
  const visible = commands.flatMap(({ options }) => options).filter(({ hidden }) => !hidden);
  const alike = [...Map.groupBy(visible, keyOf)].filter(([, options]) => options.length >= minCommands);
  return new Map(alike.flatMap(([key, [option]]) => (option === undefined ? [] : [[key, option]])));
}

/** A command and those inside of it, one heading each. */
function sections(command: Command, parent: string, common: ReadonlyMap<string, Option>): readonly string[] {
  const name = `${parent}${command.name()}`;
  const heading = `${parent === "" ? "##" : "###"} ${name}`;
  const isParent = command.commands.length > 0;
  return [
    ...[heading, command.description()],
    ...(isParent ? [] : help(command, common)),
    ...command.commands.flatMap((one) => sections(one, `${name} `, common)),
  ];
}

/** `naming` says what `[source...]` is. */
function needsLine({ description }: Argument): boolean {
  return description !== sourcesArgument().description;
}

/** What `--help` prints below the description, and then the names of the common flags. */
function help(command: Command, common: ReadonlyMap<string, Option>): readonly string[] {
  let text = "";
  const shared = command.options.filter((option) => common.has(keyOf(option)));
  for (const option of shared) option.hideHelp();
  command.description("").helpOption(false);
  command.configureHelp({ visibleArguments: ({ registeredArguments }) => registeredArguments.filter(needsLine) });
  command.configureOutput({
    writeOut: (more) => {
      text += more;
    },
    getOutHelpWidth: () => 140,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  const also = alsoText(shared);
  const usage = text.trim().replace(/^Usage: (?:tapedeck )?/, "tapedeck ");
  return [`\`\`\`\n${usage}\n\`\`\``, ...(also === "" ? [] : [`And ${also}.`])];
}

/** The names of the flags. Those of the filters are replaced by a link where nearly all are there. */
function alsoText(options: readonly Option[]): string {
  const keys = new Set(options.map(keyOf));
  const missing = [...filters].flatMap(([key, option]) => (keys.has(key) ? [] : [option]));
  if (missing.length > maxMissingFilters) return names(options);
  const others = options.filter((option) => !filters.has(keyOf(option)));
  const but = missing.length === 0 ? "" : ` (not ${names(missing)})`;
  return [`the [filters](#filters)${but}`, names(others)].filter((part) => part !== "").join(", ");
}

function names(options: readonly Option[]): string {
  return options.map(({ long, short }) => code(long ?? short ?? "")).join(", ");
}
