import type { Outcome } from "./event.ts";
import type { ListFilter, PositionOrTime } from "./filter.ts";
import type { Http } from "./http.ts";
import { parametersOf } from "./lists.ts";
import type { Cause } from "./resources.ts";

/** What the history lists. */
export type HistoryKind = "loop" | "command" | "job" | "pod" | "session";

export type SearchOptions = ListFilter & {
  /**
   * Found anywhere in causes, artifacts, labels, names and the output of failed steps. Three letters or digits in a row at
   * least. Absent: all items.
   */
  readonly text?: string;
  readonly kinds?: readonly HistoryKind[];
  readonly outcomes?: readonly Outcome[];
  /** Classes of causes. */
  readonly reasons?: readonly string[];
  /** Only what began in [from, to). */
  readonly from?: PositionOrTime;
  readonly to?: PositionOrTime;
  /** At most 1,000, 100 by default. */
  readonly pageSize?: number;
  /** The `nextPage` of an earlier answer. */
  readonly page?: string;
  readonly signal?: AbortSignal;
};

/** A page of the history, the newest first by when they began. */
export type HistoryPage = {
  readonly items: readonly HistoryItem[];
  readonly nextPage?: string;
  /** What the answer reflects. */
  readonly position: string;
  /** How many items match the text; absent without one. */
  readonly total?: number;
  /** Whether more may match than `total`. */
  readonly totalIsMinimum?: boolean;
};

export type HistoryItem = {
  readonly kind: HistoryKind | (string & {});
  readonly source: string;
  readonly session: string;
  /** The number of a loop's runner; otherwise 0. */
  readonly runner: number;
  readonly loop: number;
  /** The command, job or pod; of a session the command line in which it was recorded. */
  readonly subject: string;
  readonly instance: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Null while it runs, or if it is not known. */
  readonly durationMs: number | null;
  /** Null while it runs. A session's is that of its exit code. */
  readonly outcome: Outcome | null;
  readonly exitCode: number | null;
  readonly cause: Cause | null;
  /** What was built in it: of a session, outside of loops. */
  readonly artifacts: readonly string[];
  /** When it began. */
  readonly labels: Readonly<Record<string, string>>;
  readonly startPosition: string;
  readonly endPosition: string | null;
  readonly hit?: Hit;
};

/** The first line that has what was searched for. */
export type Hit = {
  readonly place: "cause" | "output" | "artifact" | "label" | "name" | (string & {});
  readonly text: string;
  /** For output: kind and subject of what printed it, and where that began. */
  readonly step: string;
  readonly subject: string;
  readonly position: string | null;
};

export async function searchIn({ get }: Http, options: SearchOptions): Promise<HistoryPage> {
  const { text, page, signal, ...filter } = options;
  const parameters = { ...parametersOf(filter), q: text, page };
  return (await get("/api/v1/search", parameters, signal)) as HistoryPage;
}
