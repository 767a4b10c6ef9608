import type { Client } from "../client.ts";
import type { Operation, TapedeckEvent } from "../index.ts";
import type { Lane, Now } from "./now.ts";
import { foldedRound } from "./rounds.ts";
import type { Loop, Step } from "./step.ts";

/** When a failure's cause is read: as soon as it may be there, and later, because the output that says it may be late. */
const readAfterMs = [100, 500, 2_000, 10_000] as const;
const maxOperations = 100;

/** Reads why operations failed, of the events that it is given. Events say that something failed, lists say why. */
export class CauseReader {
  readonly #client: Pick<Client, "operations">;
  readonly #signal: AbortSignal;
  readonly #found: (operations: readonly Operation[]) => void;
  readonly #due = new Map<string, readonly ReturnType<typeof setTimeout>[]>();

  constructor(
    client: Pick<Client, "operations">,
    signal: AbortSignal,
    found: (operations: readonly Operation[]) => void,
  ) {
    this.#client = client;
    this.#signal = signal;
    this.#found = found;
    signal.addEventListener("abort", () => {
      for (const timers of this.#due.values()) for (const timer of timers) clearTimeout(timer);
    });
  }

  after({ outcome, session }: TapedeckEvent): void {
    if (outcome !== "failed" || session === undefined || this.#signal.aborted) return;
    for (const timer of this.#due.get(session) ?? []) clearTimeout(timer);
    this.#due.set(
      session,
      readAfterMs.map((ms) => setTimeout(() => void this.#read(session), ms)),
    );
  }

  async #read(session: string): Promise<void> {
    const [client, signal] = [this.#client, this.#signal];
    try {
      const found: Operation[] = [];
      const failed = { sessions: [session], outcomes: ["failed"], pageSize: maxOperations, signal } as const;
      for await (const operation of client.operations(failed)) {
        if (found.push(operation) === maxOperations) break;
      }
      if (!signal.aborted) this.#found(found);
    } catch {
      // It is read again, or with the next connection.
    }
  }
}

/** The lanes with the causes of these operations. */
export function withCauses(now: Now, operations: readonly Operation[]): Now {
  const byKey = new Map(operations.map((one) => [keyOf(one), one]));
  const sources = new Set(operations.map(({ source }) => source));
  return new Map([...now].map(([source, lane]) => [source, sources.has(source) ? laneWith(lane, byKey) : lane]));
}

type Ended = Pick<Step, "kind" | "subject"> & { readonly endPosition?: string | null | undefined };
type ByKey = ReadonlyMap<string, Operation>;

/** The loop with the causes of these operations. */
export function loopWithCauses(loop: Loop, operations: readonly Operation[]): Loop {
  return loopWith(loop, new Map(operations.map((one) => [keyOf(one), one])));
}

/** An operation ends once at a position. */
function keyOf({ kind, subject, endPosition }: Ended): string {
  return `${endPosition} ${kind} ${subject}`;
}

function laneWith(lane: Lane, operations: ByKey): Lane {
  return { ...lane, loops: lane.loops.map((loop) => loopWith(loop, operations)) };
}

function loopWith(loop: Loop, operations: ByKey): Loop {
  const steps = loop.steps.map((step) => stepWith(step, operations));
  return loop.kind === "round" ? foldedRound(loop, steps) : { ...stepWith(loop, operations), steps };
}

function stepWith<Kind extends Step>(step: Kind, operations: ByKey): Kind {
  const cause = operations.get(keyOf(step))?.cause;
  return cause === undefined ? step : { ...step, cause };
}
