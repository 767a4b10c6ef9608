import type { Operation } from "@tapedeck/client";
import { maxValues } from "@tapedeck/shared/filter/filter";
import { largestPage } from "@tapedeck/shared/largest-page";
import type { ApiClient, Page } from "../api/api.ts";
import { CommandError } from "../command-error.ts";
import { spokenSource } from "../display/source-name.ts";
import { oneSource } from "./named-source.ts";

type ListedLoop = Pick<Operation, "source" | "session" | "runner" | "loop">;

/** `54`, `#54`, `alice/shop#54`, `<session>.<runner>.<loop>`, of which the end of the session is enough. */
const form = /^(?:(?<source>[^#]*)#)?(?:(?<session>[0-9a-z]{4,26})\.(?<runner>\d{1,10})\.)?(?<loop>\d{1,10})$/i;

const sessionLetters = 26;
/** Enough to distinguish the sessions of a source. */
const shortLetters = 6;

/** The form that is unique everywhere. */
export function fullLoopName({ session, runner, loop }: Omit<ListedLoop, "source">): string {
  return `${session}.${runner}.${loop}`;
}

/** What `tapedeck why` takes for each of these loops, as short as can be: a number is that of the newest loop of its source. */
export async function loopNames(api: ApiClient, loops: readonly ListedLoop[]): Promise<(loop: ListedLoop) => string> {
  const sources = [...new Set(loops.map((one) => one.source))];
  const source = sources.length > maxValues ? undefined : sources;
  const newestOfEach = { source, kind: "loop", per_source: 1, limit: largestPage };
  const { items } =
    sources.length === 0 ? { items: [] } : await api.get<Page<ListedLoop>>("/api/v1/operations", newestOfEach);
  return (one) => {
    const newest = items.find((other) => other.source === one.source);
    const isCurrent = newest?.session === one.session && newest.runner === one.runner;
    const short = isCurrent ? one.loop : fullLoopName({ ...one, session: one.session.slice(-shortLetters) });
    return `${spokenSource(one.source)}#${short}`;
  };
}

/**
 * The full name of the loop that a text names, of the source that is named beside it or is the only one with such a loop.
 * Undefined: the text names no loop.
 * @throws CommandError if there is no such loop, or there are several
 */
export async function namedLoop(api: ApiClient, text: string, source?: string): Promise<string | undefined> {
  const { source: own, session, runner, loop } = form.exec(text)?.groups ?? {};
  if (loop === undefined) return undefined;
  if (session?.length === sessionLetters) return `${session}.${runner}.${loop}`;
  const of = await oneSource(api, own || source);
  if (session !== undefined) return `${await sessionEndingIn(api, session, of)}.${runner}.${loop}`;
  const { items } = await api.get<Page<ListedLoop>>("/api/v1/operations", {
    source: of,
    kind: "loop",
    limit: largestPage,
  });
  const found = items.filter((one) => one.loop === Number(loop));
  const sources = [...new Set(found.map((one) => one.source))];
  if (sources.length > 1) {
    const names = sources.map((one) => `${spokenSource(one)}#${loop}`).join(", ");
    throw new CommandError(`several sources have a loop ${loop}: choose one of ${names}.`);
  }
  const [newest] = found;
  if (newest !== undefined) return fullLoopName(newest);
  throw new CommandError(`there is no loop ${loop}${ofSource(of)}: \`tapedeck loops${flagOf(of)}\` lists them.`);
}

async function sessionEndingIn(api: ApiClient, end: string, source: string | undefined): Promise<string> {
  const { items } = await api.get<Page<{ readonly session: string }>>("/api/v1/sessions", {
    source,
    limit: largestPage,
  });
  const [found] = items.filter(({ session }) => session.endsWith(end.toUpperCase()));
  if (found !== undefined) return found.session;
  throw new CommandError(
    `there is no session …${end}${ofSource(source)}: \`tapedeck sessions${flagOf(source)}\` lists them.`,
  );
}

function ofSource(source: string | undefined): string {
  return source === undefined ? "" : ` of ${spokenSource(source)}`;
}

function flagOf(source: string | undefined): string {
  return source === undefined ? "" : ` -s ${spokenSource(source)}`;
}
