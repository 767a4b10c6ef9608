import { nearest } from "@tapedeck/shared/nearest";
import { shellWord } from "@tapedeck/shared/output/shell-word";
import type { Command } from "commander";
import { programName } from "./program-name.ts";

// What people type who know other tools, and what they mean by it here.

/** Commands of gh, kubectl, docker and others. */
const commandsElsewhere = new Map<string, string>([
  ...["ps", "ls", "list", "get", "sources", "info"].map((word) => [word, "status"] as const),
  ...["describe", "inspect"].map((word) => [word, "state"] as const),
  ...["show", "view"].map((word) => [word, "why"] as const),
  ...["events", "follow"].map((word) => [word, "tail"] as const),
  ...["runs", "history"].map((word) => [word, "loops"] as const),
  ...["top", "dashboard"].map((word) => [word, "watch"] as const),
  ...["start", "serve", "demo"].map((word) => [word, "up"] as const),
  ["diff", "compare"],
  ["cluster-info", "status"],
  ...["whoami", "config", "auth", "contexts"].map((word) => [word, "context list"] as const),
  ...["errors", "failures"].map((word) => [word, "loops --outcome failed"] as const),
  ["api-resources", "help kinds"],
  ...["exec", "attach"].map((word) => [word, "help run"] as const),
]);

/** What kubectl and docker list, and is no word here. */
const nounsElsewhere =
  /^(?:all|pods?|po|deploy(?:ments?)?|services?|svc|nodes?|sources?|containers?|images?|namespaces?|ns)$/;

/** Words after which other tools name what they list or show: `get loops`, `list sessions`. */
const verbs = new Set(["get", "list", "ls", "show", "describe", "view"]);

/** The first one that the command has is meant; none: the flag is not needed here. */
const flagsElsewhere = new Map<string, readonly string[]>([
  ["--namespace", ["--project"]],
  ["--selector", ["--label"]],
  ["-l", ["--label"]],
  ["--container", ["--app", "--artifact"]],
  ["-c", ["--app", "--artifact"]],
  ["-L", ["-n"]],
  ["--lines", ["-n"]],
  ["--format", ["-o"]],
  ["-A", ["--all"]],
  ["--all-namespaces", ["--all"]],
  ["-a", ["--all"]],
  ["--all", []],
  ["--no-trunc", []],
  ["-w", ["--follow"]],
  ["--watch", ["--follow"]],
  ["-f", []],
  ["--follow", []],
]);

/** Nouns that are not said here: `why loop 54`. */
const nouns = new Set(["loop", "loops", "run", "session", "source"]);

/** A line to paste. */
export function didYouMean(words: readonly string[]): string {
  return `Did you mean this?\n    ${[programName().here, ...words.map(shellWord)].join(" ")}`;
}

/** `gh run view 54`, where `run` does not run a program; undefined for a command to run. */
export function runOfOthers([verb = "", ...words]: readonly string[]): readonly string[] | undefined {
  const meant = new Map([
    ["view", words.some((word) => /^--log/.test(word)) ? ["logs", "--failed"] : ["why", ...words]],
    ["list", ["loops", ...words]],
    ["watch", ["watch"]],
  ]).get(verb);
  return words.every((word) => /^(#?\d+$|-)/.test(word)) ? meant : undefined;
}

/** The words of a command line that were probably meant instead of these; undefined: nothing is near. */
export function wordsMeant(program: Command, words: readonly string[]): readonly string[] | undefined {
  const [commandWords, rest] = commandMeant(program, words);
  if (commandWords === undefined) return undefined;
  const command = commandWords.reduce<Command>((parent, name) => childOf(parent, name) ?? parent, program);
  // A server is chosen by `tapedeck context`, which nobody else has.
  if (rest.some((word) => flagOf(word) === "--context")) return ["context", "list"];
  // A token on a command line is seen by everybody on the machine.
  if (command.name() === "login" && rest.some((word) => flagOf(word) === "--token")) return ["help", "login"];
  const isToWatch = rest.some((word) => ["-w", "--watch"].includes(word));
  if (isToWatch && !has(command, "--follow")) return ["watch"];
  const [noun = "", ...others] = rest;
  const corrected = [...commandWords, ...flagsMeant(command, nouns.has(noun) && others.length > 0 ? others : rest)];
  return corrected.join("\0") === words.join("\0") ? undefined : corrected;
}

function commandMeant(
  program: Command,
  words: readonly string[],
): readonly [string[] | undefined, rest: readonly string[]] {
  const [first = "", ...rest] = words;
  const known = childOf(program, first);
  if (known === undefined) {
    const [object = "", ...others] = rest;
    if (verbs.has(first) && object.startsWith("loop") && /^#?\d+$/.test(others[0] ?? "")) return [["why"], others];
    const listed = verbs.has(first) ? (childOf(program, object) ?? childOf(program, `${object}s`)) : undefined;
    if (listed !== undefined) return [[listed.name()], others];
    const ofObject = verbs.has(first) ? commandsElsewhere.get(object) : undefined;
    if (ofObject !== undefined) return commandMeant(program, [ofObject, ...others]);
    const meant = commandsElsewhere.get(first) ?? nearest(first, namesIn(program));
    if (meant === undefined) return [undefined, rest];
    // A whole line: what was typed behind it has no place there.
    if (meant.includes(" ")) return [meant.split(" "), []];
    return commandMeant(program, [meant, ...(nounsElsewhere.test(object) ? others.filter(isFlagLike) : rest)]);
  }
  if (known.commands.length === 0) return [[first], rest];
  const [second = "", ...others] = rest;
  const isMissing = second === "" || second.startsWith("-");
  const inner = isMissing
    ? (childOf(known, "list") ?? known.commands[0])?.name()
    : (childOf(known, second)?.name() ?? nearest(second, namesIn(known)));
  if (isMissing && inner !== undefined) return [[first, inner], rest];
  return inner === undefined ? [undefined, rest] : [[first, inner], others];
}

/** A flag, or the value of `-o`. */
function isFlagLike(word: string, at: number, words: readonly string[]): boolean {
  return word.startsWith("-") || words[at - 1]?.startsWith("-") === true;
}

function flagsMeant(command: Command, words: readonly string[]): readonly string[] {
  const end = words.indexOf("--");
  return words.flatMap((word, at) => {
    // Behind it is a command to run, with flags of its own.
    const flag = end >= 0 && at >= end ? undefined : flagOf(word);
    // A namespace of kubectl; here it counts.
    const isNamespace = flag === "-n" && /^[a-z]/i.test(words[at + 1] ?? "") && has(command, "--project");
    if (isNamespace) return ["--project"];
    // A condition of kubectl; here it is an event.
    if (/^--for=.*=/.test(word)) return ["--for", "loop.succeeded"];
    if (words[at - 1] === "--for" && word.includes("=")) return ["loop.succeeded"];
    // The form is that of a table, or JSON.
    if (flag === "-o" || flag === "--output") return words[at + 1] === "json" ? [word] : [];
    if (/^(?:-o|--output)$/.test(words[at - 1] ?? "") && word !== "json") return [];
    if (flag === undefined || has(command, flag)) return [word];
    const known = flagsElsewhere.get(flag);
    const meant =
      known === undefined
        ? nearest(
            flag,
            command.options.flatMap(({ long }) => (long ? [long] : [])),
          )
        : known.find((one) => has(command, one));
    return meant === undefined ? (known === undefined ? [word] : []) : [word.replace(flag, meant)];
  });
}

function flagOf(word: string): string | undefined {
  return /^(--[\w-]+|-\w)/.exec(word)?.[0];
}

function has(command: Command, flag: string): boolean {
  return command.options.some(({ short, long }) => short === flag || long === flag);
}

function childOf(parent: Command, name: string): Command | undefined {
  return parent.commands.find((one) => one.name() === name);
}

function namesIn(parent: Command): readonly string[] {
  return parent.commands.map((one) => one.name());
}
