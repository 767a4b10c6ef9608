import type { Session, Source } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { namePart } from "@tapedeck/shared/source";
import type { CallContext } from "../call-context.ts";
import type { QueryClient } from "../query-client.ts";

/**
 * The source that a call means (DESIGN 7): `developer/project` (the API says the upstream; on our own API, without
 * `upstream`, it must be unique), `developer/project/upstream` or in full; without one, the only source there is.
 */
export async function resolveSource(
  query: QueryClient,
  { workspace, source, at }: Pick<CallContext, "workspace" | "source" | "at">,
  upstream?: string,
): Promise<Source> {
  const wanted = source === undefined ? undefined : sourcePattern(workspace, source, upstream);
  const { items } = await query.listSources({
    workspace,
    ...(upstream !== undefined && { upstreams: [upstream] }),
    ...(wanted?.full !== undefined && { sources: [wanted.full] }),
    ...(wanted?.developer !== undefined && { developers: [wanted.developer], projects: [wanted.project] }),
    limit: 50,
  });
  const [first, ...others] = items;
  if (first === undefined) throw unknownSource(source, upstream, at);
  if (others.length > 0) {
    const choices = items.map((item) => item.source);
    throw new TapedeckError(
      "ambiguous_source",
      `${source === undefined ? "there is more than one source" : `"${source}" is more than one source`}: name one of ${choices.join(", ")} (tapedeck-source in gRPC metadata or a header, or ?source= over HTTP)`,
      { choices },
    );
  }
  return first;
}

type Pattern =
  | { readonly full: string; readonly developer?: never }
  | { readonly full?: never; readonly developer: string; readonly project: string };

function sourcePattern(workspace: string, text: string, upstream: string | undefined): Pattern {
  const parts = text.split("/").map(namePart);
  const [a = "", b = "", c = "", d = ""] = parts;
  if (parts.length === 2) return { developer: a, project: b };
  if (parts.length === 3) return { full: `${workspace}/${a}/${b}/${c}` };
  if (parts.length === 4 && a === workspace) return { full: `${a}/${b}/${c}/${d}` };
  if (parts.length === 4) throw unknownSource(text, upstream, undefined);
  throw new TapedeckError(
    "invalid_argument",
    `source "${text}" is not developer/project or developer/project/upstream`,
    {
      field: "source",
    },
  );
}

function unknownSource(source: string | undefined, upstream: string | undefined, _at: string | undefined) {
  const what = upstream === undefined ? "source" : `${upstream} source`;
  return new TapedeckError(
    "unknown_source",
    source === undefined ? `no ${what} has been recorded yet` : `no ${what} "${source}" has been recorded`,
  );
}

/** The session that `tapedeck-session` names, or the source's current one: the newest, running or ended. */
export async function resolveSession(
  query: QueryClient,
  workspace: string,
  source: Source,
  session: string | undefined,
): Promise<Session | undefined> {
  if (session === undefined && source.current_session === "") return undefined;
  const id = session ?? source.current_session;
  const { items } = await query.listSessions({ workspace, sources: [source.source], sessions: [id], limit: 1 });
  if (items[0] === undefined && session !== undefined) {
    throw new TapedeckError("unknown_session", `${source.source} has no session "${session}"`);
  }
  return items[0];
}
