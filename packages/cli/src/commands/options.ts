import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { parseGatewayUrl } from "../gateway-url.ts";
import { isFuture, parseTime, positionOrTime, timeForm } from "./time.ts";

/** `--label name=value`, any number of times. */
export function collectLabel(pair: string, labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = pair.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Expected name=value.");
  return { ...labels, [pair.slice(0, at)]: pair.slice(at + 1) };
}

/** An option that may be given again and again, each with one value or several with commas. */
export function collectList(text: string, values: readonly string[] = []): string[] {
  return [...values, ...text.split(",").filter((value) => value !== "")];
}

export const hostPort = (text: string): string => hostPortLike("127.0.0.1:50051")(text);

export function hostPortLike(example: string): (text: string) => string {
  return (text) => {
    const port = Number(/^[^\s:]+:(\d{1,5})$/.exec(text)?.[1] ?? Number.NaN);
    if (!(port >= 1 && port <= 65_535)) throw new InvalidArgumentError(`Expected HOST:PORT, such as ${example}.`);
    return text;
  };
}

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError("Expected a whole number above 0.");
  return number;
}

export function portNumber(text: string): number {
  const number = Number(text);
  if (/^\d{1,5}$/.test(text) && number >= 1 && number <= 65_535) return number;
  throw new InvalidArgumentError("Expected a port number.");
}

/** The Tapedeck that a command is meant for. TAPEDECK_URL is read where a token and certificates are, too. */
export const urlOption = () =>
  new Option(
    "--url <url>",
    "address of the Tapedeck server, such as https://tapedeck.example (env: TAPEDECK_URL; default: that of `tapedeck login`, else this machine's)",
  ).argParser(tapedeckAddress);

function parseSince(text: string): string {
  const time = parseTime(text);
  if (time !== undefined) return time.toISOString();
  throw new InvalidArgumentError(`Expected ${timeForm}.`);
}

/** A time, as RFC 3339 for the API. */
export const sinceOption = () =>
  new Option("--since <time>", "from this time on: 10m (ago), yesterday, a date or a time").argParser(parseSince);

export const untilOption = () => new Option("--until <time>", "before this time: as for --since").argParser(parseSince);

/** From where on events are read, as the API takes it. */
export function startText(text: string): string {
  const start = text.trim() === "now" ? "now" : positionOrTime(text);
  if (start === undefined) throw new InvalidArgumentError(`Expected start, now, a position, ${timeForm}.`);
  if (isFuture(start))
    throw new InvalidArgumentError("That is in the future: what is recorded from now on comes after now.");
  return start;
}

/** For commands of admins, which need no gateway on this machine, but a token on another one. */
export const elsewhereOption = () =>
  new Option(
    "--url <url>",
    "address of the Tapedeck server (env: TAPEDECK_URL; default: that of `tapedeck login`, else this machine's); elsewhere it needs an admin's token, from the login or TAPEDECK_TOKEN; --data means this machine's",
  ).argParser(tapedeckAddress);

export const jsonOption = () => new Option("--json", "print JSON, for programs");

const namePart = "developer/project, or a part of it that no other source has";

/** The one source that a command is about; an argument or a flag, as people like it. */
export const sourceArgument = () =>
  new Argument("[source]", `${namePart} (default: the source of this folder, else the only one)`);

export const sourceOption = () =>
  new Option("-s, --source <source>", "the same as the argument, or the default for it").env("TAPEDECK_SOURCE");

export const sourcesArgument = () => new Argument("[source...]", `only these: ${namePart}`);

export const sourcesOption = () =>
  new Option("-s, --source <source>", "only these sources (developer/project); repeatable")
    .env("TAPEDECK_SOURCE")
    .argParser(collectList);

/** An argument counts more than a flag, which a variable may set. */
export function withSources<Options extends { readonly source?: readonly string[] | undefined }>(
  sources: readonly string[],
  options: Options,
): Options {
  return sources.length === 0 ? options : { ...options, source: sources };
}

/** Adds what narrows a list or a live view to some sources. */
export function addSourceFilter(command: Command): Command {
  return addSourceFlags(command.addArgument(sourcesArgument()));
}

/** Adds what narrows a list. */
export function addListFilter(command: Command): Command {
  return addListFlags(command.addArgument(sourcesArgument()));
}

/** The same, for a command with other arguments. */
export function addListFlags(command: Command, { hasArtifact = true } = {}): Command {
  return addSessionFlags(command, { hasArtifact }).addOption(sinceOption()).addOption(untilOption());
}

/** What every list has, also the one of sources, which have no time. */
export function addSessionFlags(command: Command, { hasArtifact = true } = {}): Command {
  addSourceFlags(command)
    .option("--upstream <name>", "only skaffold, vagrant or rkt; repeatable", collectList)
    .option("--session <id>", "only these sessions; repeatable", collectList)
    .option("--label <name=value>", "only with this label; repeatable: all must match", collectLabel);
  if (hasArtifact) command.option("--artifact <name>", "only where this was built; repeatable", collectList);
  return command;
}

/** Options that name sources, for a command with other arguments. */
export function addSourceFlags(command: Command): Command {
  return command
    .addOption(sourcesOption())
    .option("--developer <name>", "only these developers; repeatable", collectList)
    .option("--project <name>", "only these projects; repeatable", collectList);
}

export const limitOption = (limit: number) =>
  new Option("-n, --limit <n>", "show at most n").default(limit).argParser(wholeNumber);

export const allOption = () => new Option("--all", "of all sources, also in the folder of one");

export const dataOption = () =>
  new Option("--data <folder>", "the data folder").default(".tapedeck").env("TAPEDECK_DATA");

/**
 * Options of a command that works on this machine or elsewhere, and which of both is meant: `--data` on the command line means
 * the folder here, whatever a variable or the login select.
 */
export function withPlace<Options extends object>(
  options: Options,
  command: Command,
): Options & { readonly here: boolean } {
  const isOnCommandLine = (name: string) => command.getOptionValueSource(name) === "cli";
  const here = isOnCommandLine("data");
  if (here && isOnCommandLine("url"))
    command.error("error: --data names a folder of this machine, --url a server: give one of them");
  return { ...options, here };
}

/** For a command that runs even with a wrong address, and reports that itself. */
export const urlOptionUnchecked = () => urlOption().argParser((text: string) => text);

/** Other problems, such as a token that must not be sent there, are reported on use. */
function tapedeckAddress(text: string): string {
  try {
    parseGatewayUrl(text);
    return text;
  } catch {
    throw new InvalidArgumentError("Expected https://HOST, such as https://tapedeck.example, or HOST:PORT.");
  }
}
