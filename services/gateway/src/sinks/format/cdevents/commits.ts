import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { offsetAfterLoss } from "../../delivery/start-offset.ts";
import type { FormatReader } from "../format.ts";

type Labels = Readonly<Record<string, string>>;
type Labelled = { readonly offset: Offset; readonly session: string; readonly labels: Labels };
type SourceLabels = { readUntil: Offset; labelled: Labelled[] };

const kinds = ["session.started", "session.labelled"];

/** The most that is remembered: changes of labels of a source, and sources. */
const maxLabelled = 1_000;
const maxSources = 1_000;

/** The commits that sessions build, by their labels in the log. */
export class Commits {
  readonly #reader: FormatReader;
  readonly #workspace: string;
  readonly #sources = new Map<string, SourceLabels>();

  constructor(reader: FormatReader, workspace: string) {
    this.#reader = reader;
    this.#workspace = workspace;
  }

  /** The commit at an event, with "-dirty" for one with changes; undefined: unknown. Rejects as the reader does. */
  async at({ event, offset }: RecordedEvent, signal: AbortSignal): Promise<string | undefined> {
    const { labelled } = await this.#readTo(event.source, offset, signal);
    const own = labelled.filter((one) => one.session === event.session && one.offset <= offset);
    const { commit = "", dirty = "" } = Object.assign({}, ...own.map(({ labels }) => labels)) as Labels;
    if (commit === "") return undefined;
    return dirty === "true" ? `${commit}-dirty` : commit;
  }

  async #readTo(source: string, offset: Offset, signal: AbortSignal): Promise<SourceLabels> {
    const known = this.#sources.get(source) ?? { readUntil: logStart, labelled: [] };
    if (!this.#sources.has(source) && this.#sources.size >= maxSources) this.#sources.clear();
    this.#sources.set(source, known);
    if (known.readUntil >= offset) return known;
    const subjects = toSubjects({ sources: [source], kinds }, this.#workspace);
    const until = earlierOf(offset, await this.#reader.lastMatch(subjects));
    while (known.readUntil < until && !signal.aborted) {
      try {
        for await (const { event, offset: at } of this.#reader.history(
          { afterOffset: known.readUntil, subjects },
          until,
          signal,
        )) {
          if (event.detail?.$case !== "session_detail" || !kinds.includes(event.kind)) continue;
          known.labelled.push({ offset: at, session: event.session, labels: event.detail.value.labels });
        }
        if (!signal.aborted) known.readUntil = until;
      } catch (error) {
        if (!(error instanceof OutOfRangeError)) throw error;
        known.readUntil = offsetAfterLoss(error);
      }
    }
    known.labelled.splice(0, Math.max(0, known.labelled.length - maxLabelled));
    return known;
  }
}
