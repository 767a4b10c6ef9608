// From what a call names to one source.
//
//   full name ------------------------------> used as it is; if there is none, the error says what is there
//   part of a name, or none --> kept choice --> the answer confirms that it is still the only one --> used
//                          \--> choose(): the sources that fit --> one: kept and used; more: ambiguous_source
//
// 1. A call never means a source of another workspace, and can't learn whether that exists.
// 2. A choice counts only if the answer confirms that no source has started since.
import type { Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { namePart, parseSourceName, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { isUpstreamName, type UpstreamName } from "@tapedeck/shared/upstreams";
import type { CallContext } from "../call-context.ts";
import type { QueryClient } from "../query-client.ts";
import { OutdatedChoiceError, readingChosen, recentChoices } from "./kept-choices.ts";

/** More choices than are useful in an error. */
const maxChoices = 50;

/**
 * The source of a call: `developer/project` (the API implies the upstream; on our own API, without `upstream`, it
 * must be unique), `developer/project/upstream`, or in full. A call without a source means the only source there is.
 * @throws TapedeckError unknown_source, ambiguous_source, invalid_argument
 */
export async function resolveSource(query: QueryClient, context: Choosing, upstream?: string): Promise<Source> {
  return (await choose(query, context, upstream)).source;
}

type Choosing = Pick<CallContext, "workspace" | "source" | "at" | "minPosition">;

/** `position`: up to where the sources were compared; undefined: those of an earlier moment were. */
async function choose(
  query: QueryClient,
  { workspace, source, at, minPosition = "" }: Choosing,
  upstream?: string,
): Promise<{ readonly source: Source; readonly position: string | undefined }> {
  const pattern = source === undefined ? {} : sourcePattern(workspace, source, upstream);
  const request = {
    workspace,
    ...(upstream !== undefined && { upstreams: [upstream] }),
    ...pattern,
    min_position: minPosition,
    limit: maxChoices,
  };
  const now = await query.listSources(request);
  // Query waits for the moment that is asked for, and may have the source by then.
  const isEarlier = now.items.length === 0 && at !== undefined;
  const { items } = isEarlier ? await query.listSources({ ...request, at }) : now;
  const [first, ...others] = items;
  if (first === undefined) throw unknownSource(source, upstream);
  if (others.length > 0) {
    const choices = items.map((item) => item.source);
    throw new TapedeckError(
      "ambiguous_source",
      source === undefined ? "there is more than one source" : `"${source}" is more than one source`,
      { choices },
      {
        hint: `: name one of ${choices.join(", ")} (tapedeck-source in gRPC metadata or a header, or ?source= over HTTP)`,
      },
    );
  }
  return { source: first, position: isEarlier ? undefined : now.position };
}

/**
 * Calls `use` with the full name of the source of a call, and with what reads its state. A full name is not checked first:
 * if `use` finds no such source, resolveSource gives the reason. Where the call leaves the choice open, the last choice is
 * taken, and made again if the answer does not confirm it.
 * @throws TapedeckError the errors of resolveSource and of `use`
 */
export async function withSource<T>(
  query: QueryClient,
  context: Choosing,
  upstream: UpstreamName | undefined,
  use: (source: SourceName, readState: QueryClient["readState"]) => Promise<T>,
): Promise<T> {
  const readState: QueryClient["readState"] = (request) => query.readState(request);
  const requestedSource = fullName(context, upstream);
  if (requestedSource !== undefined) {
    try {
      return await use(requestedSource, readState);
    } catch (error) {
      if (!(error instanceof TapedeckError) || error.code !== "unknown_source") throw error;
    }
    return use(nameOf(await resolveSource(query, context, upstream)), readState);
  }
  const choices = recentChoices(query);
  const question = JSON.stringify([context.workspace, context.source, upstream]);
  const known = choices.get(question);
  if (known !== undefined) {
    try {
      return await use(known.source, readingChosen(query, known));
    } catch (error) {
      if (!mayBeOfChoice(error)) throw error;
      choices.delete(question);
    }
  }
  const { source, position } = await choose(query, context, upstream);
  const name = nameOf(source);
  if (position === undefined) return use(name, readState);
  const chosen = { source: name, position };
  choices.set(question, chosen);
  try {
    return await use(name, readingChosen(query, chosen));
  } catch (error) {
    if (!(error instanceof OutdatedChoiceError)) throw error;
    choices.delete(question);
    return use(nameOf(await resolveSource(query, context, upstream)), readState);
  }
}

/** What is refused of one source may be there of another. */
const refusalsOfSource: ReadonlySet<string> = new Set([
  "unknown_source",
  "unknown_session",
  "before_first",
  "out_of_range",
]);

function mayBeOfChoice(error: unknown): boolean {
  if (error instanceof OutdatedChoiceError) return true;
  return error instanceof TapedeckError && refusalsOfSource.has(error.code);
}

/** Undefined: the call leaves a part of the name open, or names another upstream than its API's. */
export function fullName(
  { workspace, source }: Pick<CallContext, "workspace" | "source">,
  upstream: UpstreamName | undefined,
): SourceName | undefined {
  if (source === undefined) return undefined;
  const { sources, developers, projects } = sourcePattern(workspace, source, upstream);
  const name = parseSourceName(sources?.[0] ?? [workspace, developers?.[0], projects?.[0], upstream].join("/"));
  const named = name === undefined ? "" : sourceParts(name).upstream;
  return isUpstreamName(named) && (upstream ?? named) === named ? name : undefined;
}

type SourcePattern = {
  readonly developers?: [string];
  readonly projects?: [string];
  readonly sources?: [string];
};

function sourcePattern(workspace: string, text: string, upstream: string | undefined): SourcePattern {
  const parts = text.split("/").map(namePart);
  const [a = "", b = ""] = parts;
  switch (parts.length) {
    case 2:
      return { developers: [a], projects: [b] };
    case 3:
      return { sources: [[workspace, ...parts].join("/")] };
    case 4:
      // A caller can't even know whether another workspace exists.
      if (a !== workspace) throw unknownSource(text, upstream);
      return { sources: [parts.join("/")] };
    default:
      throw invalidArgument(`source "${text}" is not developer/project or developer/project/upstream`, "source");
  }
}

function unknownSource(source: string | undefined, upstream: string | undefined): TapedeckError {
  const what = upstream === undefined ? "source" : `${upstream} source`;
  if (source === undefined)
    return new TapedeckError("unknown_source", `no ${what} has been recorded yet: ${howToStart(upstream)}`);
  const hint = ": GET /api/v1/sources lists the recorded ones";
  return new TapedeckError("unknown_source", `no ${what} "${source}" has been recorded`, {}, { hint });
}

/** rkt's hosts are polled from outside, so there is no command to put `tapedeck run` in front of. */
function howToStart(upstream: string | undefined): string {
  switch (upstream) {
    case "rkt":
      return "record a host with `tapedeck up --rkt HOST:PORT`";
    case "skaffold":
      return "start one with `tapedeck run`";
    case "vagrant":
      return "put `tapedeck run --` in front of a vagrant command, or record a server with `tapedeck up --vagrant HOST:PORT`";
    default:
      return "start one with `tapedeck run`, or `tapedeck up` with --rkt or --vagrant HOST:PORT";
  }
}

/**
 * The session that `tapedeck-session` names, or the source's current session: the newest, running or ended.
 * @throws TapedeckError unknown_session
 */
export async function resolveSession(
  query: QueryClient,
  workspace: string,
  { source, current_session }: Source,
  session: string | undefined,
): Promise<Session | undefined> {
  if (session === undefined && current_session === "") return undefined;
  const { items } = await query.listSessions({
    workspace,
    sources: [source],
    sessions: [session ?? current_session],
    limit: 1,
  });
  if (items[0] === undefined && session !== undefined) {
    throw new TapedeckError("unknown_session", `${source} has no session "${session}"`);
  }
  return items[0];
}

export function nameOf({ source }: Pick<Source, "source">): SourceName {
  const name = parseSourceName(source);
  if (name === undefined) throw new Error(`query answered with "${source}", which is not the name of a source`);
  return name;
}
