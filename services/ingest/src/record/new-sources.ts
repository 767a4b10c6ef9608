import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import type { NewSourceBounds, RecorderOptions, RecordingBound, Store } from "./recorder-options.ts";

const hourMs = 3_600_000;

/** Admits sources that the log does not have yet. */
export class NewSources {
  readonly #bounds: NewSourceBounds;
  readonly #refused: (bound: RecordingBound) => void;
  /** By token: the new sources of the last hour, and when each was admitted. */
  readonly #admitted = new Map<string, Map<SourceName, number>>();

  constructor(bounds: NewSourceBounds, refused: (bound: RecordingBound) => void) {
    this.#bounds = bounds;
    this.#refused = refused;
  }

  /**
   * `token`: id of the token with which the source is pushed; undefined without authentication.
   * @throws TapedeckError limit_exceeded for a new source above a bound
   */
  async admit(source: SourceName, token: string | undefined, { log }: Store): Promise<void> {
    if ((await log.reader.lastMatch([sourceFilter(source)])) > logStart) return;
    const { workspace } = sourceParts(source);
    const { perTokenHour, perWorkspace } = this.#bounds;
    // Nothing waits between the count and its change, so that others who ask at the same time count, too.
    const ofToken = token === undefined ? undefined : this.#ofLastHour(token);
    // A tap that comes back before anything was recorded does not count again.
    const isAgain = ofToken?.has(source) === true;
    if (ofToken !== undefined && !isAgain) {
      if (ofToken.size >= perTokenHour) {
        throw this.#refusal(
          "sources of the token",
          `this token has made ${perTokenHour} sources within an hour, and ${source} would be another one: record under a name that exists, wait, or have ingest.sources.perTokenHour raised`,
        );
      }
      ofToken.set(source, performance.now());
    }
    const known = await log.ends?.reserve(source, perWorkspace).catch((cause: unknown) => {
      if (!isAgain) ofToken?.delete(source);
      throw cause;
    });
    if (known !== undefined && known >= perWorkspace) {
      if (!isAgain) ofToken?.delete(source);
      throw this.#refusal(
        "sources of the workspace",
        `the workspace "${workspace}" has ${known} sources, and ${source} would be another one: record under a name that exists, or have ingest.sources.perWorkspace raised`,
      );
    }
  }

  #ofLastHour(token: string): Map<SourceName, number> {
    const since = performance.now() - hourMs;
    for (const [id, sources] of this.#admitted) {
      for (const [source, at] of sources) if (at < since) sources.delete(source);
      if (sources.size === 0) this.#admitted.delete(id);
    }
    const found = this.#admitted.get(token) ?? new Map<SourceName, number>();
    this.#admitted.set(token, found);
    return found;
  }

  #refusal(bound: RecordingBound, message: string): TapedeckError {
    this.#refused(bound);
    return new TapedeckError("limit_exceeded", message);
  }
}

/** @throws TapedeckError forbidden for a recording, or an imported session, whose secrets are not masked, if an operator forbids that */
export function assertRedacted(
  redact: string,
  { requireRedact, onRefused }: Pick<RecorderOptions, "requireRedact" | "onRefused">,
): void {
  if (requireRedact !== true || redact !== "off") return;
  onRefused?.("redact");
  const message =
    "this Tapedeck refuses recordings with `redact: off` (ingest.requireRedact): record with `redact: on`, and import only what was recorded with it";
  throw new TapedeckError("forbidden", message, { field: "redact" });
}
