import { largestPage } from "@tapedeck/shared/largest-page";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { agoText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { oneSource } from "../../sources/named-source.ts";
import { type PodEnds, type RktStateJson, rktText } from "./rkt.ts";
import { type SkaffoldStateJson, skaffoldText } from "./skaffold.ts";
import { type RecordedVagrantCommand, type VagrantStateJson, vagrantText } from "./vagrant.ts";

export type StateOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly session?: string;
  readonly at?: string;
};

type Operation = { readonly subject: string; readonly endedAt: string | null };

type StateAnswer = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  readonly notHeardSince: string | null;
  readonly heardAt: Readonly<Record<string, string>>;
  readonly position: string;
} & { [Upstream in UpstreamName]: { readonly upstream: Upstream; readonly state: States[Upstream] } }[UpstreamName];

/** A new upstream does not compile until its state is here and in `stateText`. */
type States = {
  readonly skaffold: SkaffoldStateJson;
  readonly rkt: RktStateJson;
  readonly vagrant: VagrantStateJson;
};

export async function state({ url, json, source, session, at }: StateOptions): Promise<void> {
  const api = apiAt(url);
  const query =
    source === undefined && session !== undefined ? await sourceOf(session, api) : await oneSource(api, source);
  const answer = await api.get<StateAnswer>("/api/v1/state", { source: query, session, at });
  if (json) {
    printJson(answer);
    return;
  }
  const session_ = answer.session === null ? "no session yet" : `session ${answer.session}`;
  const ended = answer.sessionEnded ? ", ended" : "";
  print(`${coloured("bold", shortSource(answer.source))}  ${session_}${ended}`);
  print(coloured("dim", `as of ${answer.position}`));
  if (answer.notHeardSince !== null) print(coloured("red", silentSinceText(answer.notHeardSince)));
  const lastSeen = lastSeenText(answer.heardAt);
  if (lastSeen !== "") print(coloured("dim", lastSeen));
  const text = await stateText(answer, session, api);
  if (text !== "") print(text);
}

async function stateText(answer: StateAnswer, session: string | undefined, api: ApiClient): Promise<string> {
  switch (answer.upstream) {
    case "skaffold":
      return skaffoldText(answer.state);
    case "rkt":
      return `\n${rktText(answer.state, await podEnds(answer, api))}`;
    case "vagrant":
      return `\n${vagrantText(answer.state, await lastCommands(answer, session, api))}`;
  }
}

/** What follows is what was known then. */
export function silentSinceText(since: string, now = Date.now()): string {
  return `last seen ${since.replace(/\.\d+/, "")} (${agoText(since, now)})`;
}

/** When each collection of a polled source was heard last; empty for another source. */
export function lastSeenText(heardAt: Readonly<Record<string, string>>, now = Date.now()): string {
  const parts = Object.entries(heardAt).map(([name, at]) => `${name} ${agoText(at, now)}`);
  return parts.length === 0 ? "" : `last seen: ${parts.join(", ")}`;
}

/** rkt does not report when a pod ended; the record has the time at which it was observed. */
async function podEnds({ source, session, position }: StateAnswer, api: ApiClient): Promise<PodEnds> {
  if (session === null) return new Map();
  const query = { source, session, kind: "pod", at: position, limit: largestPage };
  const { items } = await api.get<Page<Operation>>("/api/v1/operations", query);
  return new Map(items.flatMap(({ subject, endedAt }) => (endedAt === null ? [] : [[subject, endedAt] as const])));
}

/**
 * Newest first, of earlier sessions too unless one is asked for: each command on a developer's machine is a session of
 * its own.
 */
async function lastCommands(
  { source, position }: StateAnswer,
  session: string | undefined,
  api: ApiClient,
): Promise<readonly RecordedVagrantCommand[]> {
  const query = { source, session, kind: "command", at: position, limit: 10 };
  const { items } = await api.get<Page<RecordedVagrantCommand>>("/api/v1/operations", query);
  return items;
}

/** A session belongs to one source, so one of the two is enough. */
async function sourceOf(session: string, api: ApiClient): Promise<string> {
  const { items } = await api.get<Page<{ readonly source: string }>>("/api/v1/sessions", { session, limit: 1 });
  const [found] = items;
  if (found === undefined) throw new CommandError(`there is no session ${session}: see \`tapedeck sessions\`.`);
  return found.source;
}
