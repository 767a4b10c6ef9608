import type { Operation, Session, Source } from "@tapedeck/client";
import { sourceText } from "@tapedeck/client/lanes/format";
import { firstOf } from "./reading.ts";
import { tapedeck } from "./tapedeck.ts";

/** The choices for a side. */
export type SideChoices = { readonly sessions: readonly Session[]; readonly loops: readonly Operation[] };

const max = { sources: 500, sessions: 20, loops: 24 } as const;

export function readSources(signal: AbortSignal): Promise<readonly Source[]> {
  return firstOf(tapedeck().sources({ signal }), max.sources);
}

/** The newest sessions and finished loops of a source; the loops oldest first. */
export async function readChoices(source: string, signal: AbortSignal): Promise<SideChoices> {
  const client = tapedeck();
  const request = { sources: [source], signal };
  const outcomes = ["succeeded", "failed", "canceled", "unknown"] as const;
  const [sessions, loops] = await Promise.all([
    firstOf(client.sessions(request), max.sessions),
    firstOf(client.operations({ ...request, kinds: ["loop"], outcomes }), max.loops),
  ]);
  return { sessions, loops: loops.toReversed() };
}

/** Short where that is clear: "alice/shop"; else with the upstream. */
export function sideNames(sources: readonly Source[]): readonly string[] {
  const short = sources.map(({ source }) => sourceText(source));
  return sources.map(({ source }, at) =>
    short.filter((name) => name === short[at]).length > 1
      ? source.split("/").slice(1).join("/")
      : (short[at] ?? source),
  );
}
