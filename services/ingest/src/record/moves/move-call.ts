import { type MoveRequest, type MoveResponse, MoveStep } from "@tapedeck/proto/tapedeck/v1/maintain";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { droppedBy } from "../../damage/watch-damage.ts";
import { erasuresMarked } from "../maintain/erasures.ts";
import { notReady } from "../push-errors.ts";
import type { Recorder } from "../recorder.ts";
import type { Store } from "../recorder-options.ts";
import { fenceSources } from "./fence.ts";
import { holdsOwn, lastCopied, messagesBySubject } from "./held.ts";
import { type MoveMark, MoveMarks } from "./move-marks.ts";
import { removeErased, removeWorkspace } from "./remove.ts";

export type MoveDeps = {
  readonly store: Store;
  readonly recorder: Pick<Recorder, "release" | "surveyLostSources">;
  /** What the workspace lacks is known only when the log is checked. */
  readonly onArrived: () => void;
  readonly onInternal: (error: unknown) => void;
  readonly signal: AbortSignal;
};

/** tapedeck.v1.Maintain/Move: one step, which may be repeated. */
export async function* moveCall(
  { workspace, step, other }: MoveRequest,
  { store, ...deps }: Omit<MoveDeps, "store"> & { readonly store: Store | undefined },
): AsyncGenerator<MoveResponse, void> {
  if (store === undefined) throw notReady("the log is unavailable");
  const move = new Move(workspace, other, { store, ...deps });
  switch (step) {
    case MoveStep.MOVE_STEP_ARRIVING:
      await move.arriving();
      break;
    case MoveStep.MOVE_STEP_LEAVING:
      await move.leaving();
      break;
    case MoveStep.MOVE_STEP_ARRIVED:
      await move.arrived();
      break;
    case MoveStep.MOVE_STEP_GONE:
      yield* move.gone();
      break;
  }
  yield await move.status();
}

class Move {
  readonly #workspace: string;
  readonly #other: string;
  readonly #deps: MoveDeps;
  readonly #marks: MoveMarks;

  constructor(workspace: string, other: string, deps: MoveDeps) {
    this.#workspace = workspace;
    this.#other = other;
    this.#deps = deps;
    this.#marks = new MoveMarks(deps.store.nats);
  }

  async status(): Promise<MoveResponse> {
    const { nats } = this.#deps.store;
    const { mark } = await this.#marks.of(this.#workspace);
    const last = await lastCopied(nats, this.#workspace);
    return {
      state: mark?.state ?? "",
      other: mark?.other ?? "",
      messages: BigInt(await this.#messages()),
      last_sequence: BigInt(last?.seq ?? 0),
      copied_sequence: BigInt(last?.moved?.sequence ?? 0),
      removed: 0n,
      dropped: (await droppedBy(nats)) !== "nothing",
    };
  }

  async arriving(): Promise<void> {
    await this.#mark("arriving", async (mark) => {
      if (mark?.state === "leaving") return false;
      // The map was not changed when it had arrived, and the old shard was opened again: nothing was recorded here.
      const again = mark?.state === "arrived" && mark.other === this.#other;
      const last = await lastCopied(this.#deps.store.nats, this.#workspace);
      if (last !== undefined && !(again && last.moved !== undefined)) throw invalidArgument(holdsOwn(this.#workspace));
      return true;
    });
  }

  async leaving(): Promise<void> {
    const { store, recorder, signal } = this.#deps;
    await this.#mark("leaving", async (mark) => {
      if (mark !== undefined && mark.state !== "arrived") return false;
      await erasuresMarked(this.#workspace, { nats: store.nats, signal });
      return true;
    });
    await recorder.release(this.#workspace);
    await fenceSources(this.#workspace, store, signal);
  }

  async arrived(): Promise<void> {
    const { store, recorder, onArrived, onInternal, signal } = this.#deps;
    // Before anybody writes: a session that was erased may be imported anew.
    const { mark } = await this.#marks.of(this.#workspace);
    if (mark?.state === "arriving") await removeErased(this.#workspace, store, signal);
    await this.#mark("arrived", async (before) => before?.state === "arriving" && before.other === this.#other);
    // Sources that come along may have lost their taps. What can't be found now is found at the next start.
    void recorder.surveyLostSources(store).catch(onInternal);
    onArrived();
  }

  async *gone(): AsyncGenerator<MoveResponse, void> {
    await this.#mark("gone", async (mark) => mark?.state === "leaving" && mark.other === this.#other);
    const { store, signal } = this.#deps;
    const status = await this.status();
    for await (const removed of removeWorkspace(this.#workspace, store, signal)) {
      yield { ...status, removed: BigInt(removed) };
    }
  }

  /** Sets the mark, unless this very one is there. */
  async #mark(state: MoveMark["state"], mayFollow: (mark: MoveMark | undefined) => Promise<boolean>): Promise<void> {
    const { mark, revision } = await this.#marks.of(this.#workspace);
    if (mark?.state === state && mark.other === this.#other) return;
    if (mark?.state === state || !(await mayFollow(mark))) {
      const now = mark === undefined ? "is not moved" : `is ${mark.state} (the other shard: "${mark.other}")`;
      throw invalidArgument(`the workspace "${this.#workspace}" ${now} here`);
    }
    await this.#marks.set(this.#workspace, { state, other: this.#other }, { revision });
  }

  async #messages(): Promise<number> {
    return (await messagesBySubject(this.#deps.store.nats, this.#workspace)).reduce((sum, [, count]) => sum + count, 0);
  }
}
