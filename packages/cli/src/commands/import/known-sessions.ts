import { createHash } from "node:crypto";
import { recordedForms } from "@tapedeck/ingest/for-cli/sessions";
import { largestPage } from "@tapedeck/shared/largest-page";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { ImportedFrame } from "@tapedeck/tap/skaffold/event-log/event-log-file";
import type { ImportedProcess } from "@tapedeck/tap/skaffold/event-log/split-processes";
import { type ApiClient, LostEventsError, type Page } from "../../api/api.ts";

/** The identity of one channel of a session. */
type Identified = {
  readonly session: string;
  readonly detail?: {
    readonly fingerprintChannel?: string;
    readonly fingerprintSha256?: string;
  };
};

type Known = { readonly session: string; readonly channel: string; readonly sha: string };

/** Finds the recorded session of a source that an imported process belongs to, whichever tap recorded it. */
export async function knownSessions(api: ApiClient, source: string) {
  const known: Known[] = [];
  const parameters = { source: `${source}/skaffold`, kind: "session.identified", limit: largestPage };
  for (let after: string | undefined = "start"; after !== undefined; ) {
    const page: Pick<Page<Identified>, "items" | "nextPage"> = await api
      .get<Page<Identified>>("/api/v1/events", { ...parameters, after })
      .catch((error: unknown) => {
        if (error instanceof LostEventsError) return { items: [], nextPage: error.earliest };
        throw error;
      });
    for (const { session, detail } of page.items) {
      const { fingerprintChannel: channel = "", fingerprintSha256: sha = "" } = detail ?? {};
      known.push({ session, channel, sha });
    }
    after = page.nextPage;
  }

  return {
    /** The session; undefined for a process that was not recorded. */
    find: ({ frames }: ImportedProcess): string | undefined => {
      for (const channel of ["v1", "v2"] as const) {
        const first = smallest(frames.filter((frame) => frame.channel === channel));
        if (first === undefined) continue;
        // Both masked and unmasked: the recorded session had a `redact` setting of its own.
        const shas = recordedForms("skaffold", channel, first.bytes).map(sha256);
        const same = known.find((one) => one.channel === channel && shas.includes(one.sha));
        if (same !== undefined) return same.session;
      }
      return undefined;
    },
  };
}

function smallest(frames: readonly ImportedFrame[]): ImportedFrame | undefined {
  return frames.reduce<ImportedFrame | undefined>(
    (least, frame) => (least === undefined || compareTimestamps(frame.timestamp, least.timestamp) < 0 ? frame : least),
    undefined,
  );
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64");
}
