import { HolesWatch, type KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { type Kysely, sql } from "kysely";
import type { NatsConnection } from "nats";
import type { Schema } from "./db/schema.ts";

/** A check of a log takes hours, and there may be a thousand workspaces. */
const holesEveryMs = 60_000;

/** What the logs of workspaces have lost, as far as ingest has checked them. */
export class WorkspaceHoles {
  readonly #nats: NatsConnection;
  readonly #warn: (message: string) => void;
  readonly #watches = new Map<string, { readonly epoch: string; readonly watch: HolesWatch }>();

  constructor(nats: NatsConnection, warn: (message: string) => void) {
    this.#nats = nats;
    this.#warn = warn;
  }

  /** Nothing at the first call: the answer comes a moment later. */
  of(workspace: string, epoch: string): readonly KnownHole[] {
    const known = this.#watches.get(workspace);
    if (known?.epoch === epoch) return known.watch.now();
    const parts = { nats: this.#nats, workspace, epoch, warn: this.#warn, everyMs: holesEveryMs };
    this.#watches.set(workspace, { epoch, watch: new HolesWatch(parts) });
    return [];
  }
}

/** The holes that no session.gap in the tables reports: it is of the session of the next event. */
export async function withoutReported(db: Kysely<Schema>, holes: readonly KnownHole[]): Promise<readonly KnownHole[]> {
  const sources = [...new Set(holes.map(({ source }) => source))];
  const { rows } = await sql<{ source: string; session: string }>`
    select distinct source, session from events
    where source = any(${sources}::text[]) and channel = 'tapedeck' and kind = 'session.gap' and detail ? 'lost'`.execute(
    db,
  );
  const isReported = ({ source, sessions }: KnownHole) =>
    rows.some((row) => row.source === source && sessions.includes(row.session));
  return holes.filter((hole) => !isReported(hole));
}
