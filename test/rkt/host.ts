import type { Rpc } from "@tapedeck/fakes/rkt/calls";
import {
  type InventoryKind,
  pollRows,
  type RecordedRow,
  type RecordedUnary,
  type RecordedUpstream,
} from "@tapedeck/fakes/rkt/recording";
import { type FakeRkt, type FakeRktOptions, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { until } from "@tapedeck/shared/testing/until";
import type { Stack } from "../stack/stack.ts";

export const kinds = ["pods", "images"] as const;

/** A fake rkt host that plays its recording up to a point chosen by the test, and stops there. */
export type RktHost = AsyncDisposable & {
  readonly fake: FakeRkt;
  /** The regular polls in the recording, in order. */
  readonly polls: { readonly [K in InventoryKind]: readonly RecordedUnary[] };
  /** Allows polls to be answered up to this number; never fewer than before. */
  readonly playTo: (kind: InventoryKind, polls: number) => void;
  /** Whether all allowed polls are answered, the resulting doubtful items are inspected, and the next poll hangs. */
  readonly stands: (kind: InventoryKind) => boolean;
  /** The number (from 1) of the poll that answered an observation at that moment, in ms since 1970. */
  readonly pollAt: (kind: InventoryKind, ms: number) => number;
};

/** The clocks of the tap and of the fake differ by less, and polls are further apart. */
const clockMs = 5;

const kindsOf: { readonly [R in Rpc]?: InventoryKind } = { ListPods: "pods", ListImages: "images" };

/**
 * Waits before its first poll. After the last one it answers no more, not even that one again. For a kind that was
 * never polled it returns none, at every poll.
 */
export async function startRktHost(
  recording: RecordedUpstream,
  options: Partial<FakeRktOptions> = {},
): Promise<RktHost> {
  const polls = { pods: pollRows(recording, "pods"), images: pollRows(recording, "images") };
  const beyond = kinds.flatMap((kind): RecordedRow[] => {
    const last = polls[kind].at(-1);
    return last === undefined ? [] : [{ ...last, n: Number.MAX_SAFE_INTEGER }];
  });
  /** When each poll was requested, and how many polls had been answered by then. */
  const request: { readonly [K in InventoryKind]: { readonly at: number; readonly answered: number }[] } = {
    pods: [],
    images: [],
  };
  const fake = await startFakeRkt({
    ...options,
    recording: { ...recording, rows: [...recording.rows, ...beyond] },
    lie(call) {
      const kind = kindsOf[call.rpc];
      if (kind !== undefined) request[kind].push({ at: Date.now(), answered: fake.played[kind] });
      return options.lie?.(call);
    },
  });
  const gates = { pods: gate("pods", 0), images: gate("images", 0) };

  function gate(kind: InventoryKind, answered: number) {
    return { answered, open: polls[kind].length === 0 ? () => {} : fake.hold(kind, answered + 1) };
  }

  return {
    fake,
    polls,
    playTo(kind, answered) {
      const before = gates[kind];
      if (answered === before.answered) return;
      gates[kind] = gate(kind, answered);
      before.open();
    },
    stands: (kind) =>
      polls[kind].length === 0 ? request[kind].length > 1 : request[kind].at(-1)?.answered === gates[kind].answered,
    pollAt: (kind, ms) => (request[kind].findLast(({ at }) => at - clockMs <= ms)?.answered ?? -1) + 1,
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  };
}

/** Resolves when everything that the host was allowed to report is recorded, and query has folded it. */
export async function settled(host: RktHost, stack: Stack, kind: InventoryKind): Promise<void> {
  await until(() => host.stands(kind), { message: `the host's ${kind} to stand` });
  const isRecorded = () => stack.parts.ingest.status().every(({ waiting }) => waiting === 0);
  await until(isRecorded, { message: "all that was seen to be in the log" });
  await stack.caughtUp();
}
