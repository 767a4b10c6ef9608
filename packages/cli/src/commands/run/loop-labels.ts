import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { ChangedFiles } from "@tapedeck/proto/tapedeck/v1/event";
import { delay } from "@tapedeck/shared/sync/delay";
import { msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import { loopStartOf } from "@tapedeck/tap/skaffold/v1-frame";
import type { TapItem } from "@tapedeck/tap/tap";
import type { GitName, GitState, Labels } from "../../recording/labels.ts";

export type LoopLabelsOptions = {
  /** The session's labels. Never rejects. */
  readonly labels: Promise<Labels>;
  /** The labels that git may change: neither the user nor CI has set them. */
  readonly names: readonly GitName[];
  /** The current checkout. Never rejects. */
  readonly readGit: () => Promise<GitState>;
  /** The files that changed since the last call; undefined: unknown. Never rejects. */
  readonly readFiles: () => Promise<ChangedFiles | undefined>;
  /** Takes an item at once. */
  readonly append: (item: TapItem) => unknown;
};

type LoopStart = Pick<TapItem, "connection" | "at"> & { readonly since: Timestamp };

/** A later start is a repeat to a new connection: the checkout of that time is no longer known. */
const freshMs = 5_000;

/**
 * Adds labels to the items of a Skaffold when a dev loop begins on another branch or commit than its session has
 * recorded, or with other files than the loop before. No item waits for git. While git runs, only the newest loop that begins is kept, for the next query. Watching
 * `.git/HEAD` instead would not show `dirty`, and worktrees and rebases keep it elsewhere.
 */
export class LoopLabelReader {
  readonly #options: LoopLabelsOptions;
  #next: LoopStart | undefined;
  #asking: Promise<void> | undefined;
  /** The last labels emitted for a connection; another process starts again with the session's labels. */
  #emitted: { readonly connection: string; readonly labels: Labels } | undefined;
  #hasStopped = false;

  constructor(options: LoopLabelsOptions) {
    this.#options = options;
  }

  /** Takes each item of the tap, after it was handed on. */
  observe({ connection, at, what }: TapItem): void {
    if (what?.$case !== "frame" || what.value.channel !== "v1" || this.#options.names.length === 0) return;
    const since = loopStartOf(what.value.bytes);
    if (since === undefined || msBetween(since, timestampNow()) > freshMs) return;
    this.#next = { connection, at, since };
    this.#asking ??= this.#askGit();
  }

  /** Resolves when git has answered for every loop that has started. */
  async idle(): Promise<void> {
    await this.#asking;
  }

  /** The same, but not for long. Nothing is added after it. */
  async stop(boundMs: number, abort: AbortSignal): Promise<void> {
    const over = new AbortController();
    const late = delay(boundMs, AbortSignal.any([over.signal, abort]));
    await Promise.race([this.idle(), late]);
    over.abort();
    this.#hasStopped = true;
  }

  async #askGit(): Promise<void> {
    const labels = await this.#options.labels;
    for (let start = this.#takeNext(); start !== undefined; start = this.#takeNext()) {
      const [now, files] = await Promise.all([this.#options.readGit(), this.#options.readFiles()]);
      if (!this.#hasStopped) this.#emit(start, labels, now, files);
    }
    this.#asking = undefined;
  }

  #takeNext(): LoopStart | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next;
  }

  #emit({ connection, at, since }: LoopStart, own: Labels, now: GitState, files: ChangedFiles | undefined): void {
    const { names, append } = this.#options;
    const changed_files = files?.files.length ? files : undefined;
    if (changed_files === undefined && names.every((name) => now[name] === undefined)) return;
    const isSameConnection = this.#emitted?.connection === connection;
    const known = isSameConnection ? this.#emitted?.labels : own;
    const current = (name: GitName) => now[name] ?? known?.[name] ?? "";
    // Another connection may continue the session of the last one, to which the labels emitted then still apply.
    const mayCompare = isSameConnection || this.#emitted === undefined;
    const isKnown = mayCompare && names.every((name) => current(name) === (known?.[name] ?? ""));
    if (isKnown && changed_files === undefined) return;
    const labels = Object.fromEntries(names.map((name) => [name, current(name)]));
    this.#emitted = { connection, labels };
    append({ connection, at, what: { $case: "labelled", value: { labels, since, changed_files } } });
  }
}
