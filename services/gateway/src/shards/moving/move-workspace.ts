import { type MoveResponse, MoveStep } from "@tapedeck/proto/tapedeck/v1/maintain";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { endOf, logStart } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { delay } from "@tapedeck/shared/sync/delay";
import type { MoveProgress } from "../../apis/shard-api.ts";
import type { CallContext } from "../../call-context.ts";
import type { Shard } from "../shard.ts";
import type { ShardMap } from "../shard-map.ts";
import { CopyComparison } from "./compare.ts";
import { copyMessages } from "./copy.ts";
import { type ToItsEnd, toItsEnd } from "./to-its-end.ts";

export type Move = {
  readonly workspace: string;
  readonly from: Shard;
  readonly to: Shard;
  readonly map: Pick<ShardMap, "change">;
  readonly context: CallContext;
  /** For the part that continues without its caller. */
  readonly alone: Pick<ToItsEnd<MoveProgress>, "closing" | "failedAlone">;
  /** Before the workspace is closed. */
  readonly onClosing: () => Promise<void>;
  readonly onSwitched: () => void;
  /** Nothing is left of it. */
  readonly onFinished: () => Promise<void>;
};

/** What is left of a move when the map is changed. */
type Finish = Pick<Move, "workspace" | "from" | "to" | "context" | "onFinished">;

/** How often it is asked how far the tables of the new shard have come. */
const askMs = 200;

/**
 * Moves a workspace from one shard to another while it is written to. It may be broken off at any point, and the same
 * move then continues it: how far it has come is in the logs, the marks and the map, and each step may be repeated.
 * While writers wait, the move continues without its caller.
 * @throws TapedeckError
 */
export async function* moveWorkspace(move: Move): AsyncGenerator<MoveProgress, void> {
  const { workspace, from, to, context, alone } = move;
  const mover = new Mover(move);
  const arrival = await mover.status(to);
  const departure = await mover.status(from);
  // An operator may have opened the old shard again.
  const isThere = isAt(arrival, "arrived", from) && isAt(departure, "leaving", to);
  const comparison = isThere ? undefined : new CopyComparison(workspace);
  if (comparison !== undefined) yield* mover.copyMost(comparison, departure, arrival);
  if (mover.isOver) return;
  yield* toItsEnd({
    ...alone,
    caller: context.signal,
    begin: (signal) => switchOver({ ...move, context: { ...context, signal } }, comparison),
  });
  yield* finishMove(move);
}

/** `comparison`: undefined when the rest is there already. */
async function* switchOver(move: Move, comparison: CopyComparison | undefined): AsyncGenerator<MoveProgress, void> {
  const { workspace, from, to, map, context } = move;
  const mover = new Mover(move);
  await move.onClosing();
  if (comparison !== undefined) yield* mover.bringRest(comparison);
  context.signal.throwIfAborted();
  await mover.assertClosed();
  // From here on callers are sent to the new shard. Until here the old one has everything.
  await map.change(workspace, { from: from.name, to: to.name });
  move.onSwitched();
  yield { step: "switched", all: 1, done: 1 };
}

/** What is left of a move whose map was changed: the old shard still has the workspace, or its tables do. */
export async function* finishMove(move: Finish): AsyncGenerator<MoveProgress, void> {
  yield* new Mover(move).clearUp();
  if (!move.context.signal.aborted) await move.onFinished();
}

/** Whether the workspace waits for the switch. Its operator may have opened the old shard again. Changes nothing. */
export async function isClosed(move: Omit<Finish, "onFinished">): Promise<boolean> {
  return isAt(await new Mover(move).status(move.from), "leaving", move.to);
}

function isAt(
  { state, other }: MoveResponse,
  expected: "arriving" | "arrived" | "leaving" | "gone",
  shard: Shard,
): boolean {
  return state === expected && other === shard.name;
}

class Mover {
  readonly #move: Omit<Finish, "onFinished">;

  constructor(move: Omit<Finish, "onFinished">) {
    this.#move = move;
  }

  get isOver(): boolean {
    return this.#move.context.signal.aborted;
  }

  /** Its operator may have opened it again, and what was recorded since would be left behind. @throws TapedeckError */
  async assertClosed(): Promise<void> {
    const { workspace, from, to } = this.#move;
    const departure = await this.status(from);
    if (isAt(departure, "leaving", to) || isAt(departure, "gone", to)) return;
    throw invalidArgument(`the workspace "${workspace}" was opened in "${from.name}" again: the move is abandoned`);
  }

  /** Changes nothing. */
  status(shard: Shard): Promise<MoveResponse> {
    return this.#step(shard, MoveStep.MOVE_STEP_UNSPECIFIED);
  }

  /** What was written up to now, while it is written to, so that those who write wait for little. */
  async *copyMost(
    comparison: CopyComparison,
    departure: MoveResponse,
    arrival: MoveResponse,
  ): AsyncGenerator<MoveProgress, void> {
    const { to } = this.#move;
    await this.#assertPossible(departure, arrival);
    const before = await this.#step(to, MoveStep.MOVE_STEP_ARRIVING);
    yield* this.#copy(Number(before.copied_sequence), departure);
    yield* this.#compare(comparison, Number(departure.last_sequence));
    await this.#tablesCaughtUp();
  }

  /** Closes the workspace in the old shard, brings what was written meanwhile, and opens it in the new one. */
  async *bringRest(comparison: CopyComparison): AsyncGenerator<MoveProgress, void> {
    const { from, to, context } = this.#move;
    yield { step: "fencing", all: 1, done: 0 };
    const left = await this.#step(from, MoveStep.MOVE_STEP_LEAVING);
    const { copied_sequence } = await this.status(to);
    yield* this.#copy(Number(copied_sequence), left);
    yield* this.#compare(comparison, Number(left.last_sequence));
    context.signal.throwIfAborted();
    comparison.assertExplained();
    await this.#step(to, MoveStep.MOVE_STEP_ARRIVED);
    yield { step: "fencing", all: 1, done: 1 };
  }

  async *clearUp(): AsyncGenerator<MoveProgress, void> {
    const { from, context } = this.#move;
    for await (const { messages, removed } of this.#steps(from, MoveStep.MOVE_STEP_GONE)) {
      if (removed > 0n) yield { step: "removing", all: Number(messages), done: Number(removed) };
    }
    if (this.isOver) return;
    for await (const { messages, done } of await from.apis.maintain.rebuild(context, { fresh: true })) {
      yield { step: "rebuilding", all: messages, done };
    }
  }

  async #assertPossible(departure: MoveResponse, arrival: MoveResponse): Promise<void> {
    const { workspace, from, to } = this.#move;
    if (departure.messages === 0n) throw invalidArgument(`the workspace "${workspace}" has no data`, "workspace");
    if (departure.dropped) {
      throw invalidArgument(`the log of "${from.name}" drops messages by limits of its stream: remove these first`);
    }
    const mayContinue = isAt(arrival, "arriving", from) || isAt(arrival, "arrived", from);
    if (arrival.messages > 0n && !mayContinue) {
      throw invalidArgument(`the shard "${to.name}" has events of the workspace "${workspace}" already`, "to");
    }
    const { ready, checks } = await to.readiness();
    if (!ready) {
      const [check, reason] = Object.entries(checks).find(([, answer]) => answer !== "ok") ?? [];
      throw new TapedeckError("not_ready", `the shard "${to.name}" is not ready (${check}: ${reason})`);
    }
    const payload = ({ link }: Shard) => link.nats().connection.info?.max_payload ?? 0;
    if (payload(to) < payload(from)) {
      throw invalidArgument(
        `max_payload of the nats-server of "${to.name}" is smaller than that of "${from.name}"`,
        "to",
      );
    }
  }

  async *#copy(after: number, { messages, last_sequence }: MoveResponse): AsyncGenerator<MoveProgress, void> {
    const { workspace, from, to, context } = this.#move;
    const { signal } = context;
    const until = Number(last_sequence);
    const log = { epoch: from.link.reader().epoch, stored: from.link.stored() };
    const copying = { workspace, from: log, to: to.services, signal };
    for await (const reached of copyMessages(copying, after, until)) {
      // The part of the sequences stands for the part of the messages: other workspaces have some of them.
      const all = Number(messages);
      yield { step: "copying", all, done: reached >= until ? all : Math.floor((all * reached) / Math.max(1, until)) };
    }
  }

  async *#compare(comparison: CopyComparison, until: number): AsyncGenerator<MoveProgress, void> {
    const { from, to, context } = this.#move;
    const { signal } = context;
    const { last_sequence } = await this.status(to);
    const logs = { old: from.link.stored(), copies: to.link.stored() };
    await comparison.compareUpTo({ old: until, copies: Number(last_sequence) }, logs, signal);
    if (!signal.aborted) yield { step: "comparing", all: 1, done: 1 };
  }

  /** Otherwise lists would be empty for a while after the move. */
  async #tablesCaughtUp(): Promise<void> {
    const { to, context } = this.#move;
    const { last_sequence } = await this.status(to);
    while (!context.signal.aborted) {
      const { position } = await to.query.position();
      if ((parsePosition(position)?.offset ?? logStart) >= endOf(Number(last_sequence))) return;
      await delay(askMs, context.signal);
    }
  }

  async #step(shard: Shard, step: MoveStep): Promise<MoveResponse> {
    let last: MoveResponse | undefined;
    for await (const response of this.#steps(shard, step)) last = response;
    this.#move.context.signal.throwIfAborted();
    if (last === undefined) throw new TapedeckError("internal", `the ingest of "${shard.name}" does not answer`);
    return last;
  }

  #steps(shard: Shard, step: MoveStep): AsyncIterable<MoveResponse> {
    const { workspace, from, to, context } = this.#move;
    const other = shard === from ? to : from;
    return shard.services.move({ workspace, step, other: other.name }, context.signal);
  }
}
