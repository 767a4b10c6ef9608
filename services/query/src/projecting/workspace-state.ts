import type { LogReader } from "@tapedeck/shared/log/log";
import type { CheckpointRow } from "../db/schema.ts";
import { ProjectedPosition } from "./progress.ts";

/** What this process knows of a workspace: how far its tables are, its log, and why they do not follow it. */
export class WorkspaceState {
  readonly workspace: string;
  readonly progress = new ProjectedPosition();
  /** That of the checkpoint; undefined: there is none yet. */
  #epoch: string | undefined;
  /** Undefined while it can't be read. */
  log: LogReader | undefined;
  #waitingFor: string | undefined = "starting";
  #refusal: string | undefined;
  #isRemoved = false;
  readonly #decided = Promise.withResolvers<void>();
  #isDecided = false;

  constructor(workspace: string) {
    this.workspace = workspace;
  }

  /** Why its log is not projected now; undefined: its tables follow. */
  get waitingFor(): string | undefined {
    return this.#waitingFor;
  }

  /** Why nothing is answered from its tables: they are another log's. Undefined: they are its log's. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** It was removed: there is nothing to wait for. */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  get isDecided(): boolean {
    return this.#isDecided;
  }

  /** Resolves when it is projected, or it is known why not. */
  get decided(): Promise<void> {
    return this.#decided.promise;
  }

  get epoch(): string | undefined {
    return this.#epoch;
  }

  /** Its tables are at this checkpoint. */
  isAt({ epoch, position }: Pick<CheckpointRow, "epoch" | "position">): void {
    this.#epoch = epoch;
    this.progress.advance(position);
  }

  follows(epoch: string): void {
    this.#epoch = epoch;
    this.#waitingFor = undefined;
    this.#refusal = undefined;
    this.#isRemoved = false;
    this.#decide();
  }

  /** There is nothing to project. */
  ends(): void {
    this.#decide();
  }

  #decide(): void {
    this.#isDecided = true;
    this.#decided.resolve();
  }

  /** Its rows are being deleted. */
  removed(): void {
    this.#isRemoved = true;
    this.waits("the rows of the workspace are being deleted here: it was removed, or another query has it now", {
      isRefused: true,
    });
  }

  waits(reason: string, { isRefused = false } = {}): void {
    this.#waitingFor = reason;
    this.#refusal = isRefused ? reason : undefined;
    this.#decide();
  }
}

/** The workspaces that this process knows. */
export class WorkspaceStates {
  readonly #states = new Map<string, WorkspaceState>();
  /** Called with a workspace that somebody asks for and that is not known. Undefined: this process projects nothing now. */
  onWanted: ((workspace: string) => void) | undefined;

  /** False for a standby. */
  get areProjected(): boolean {
    return this.onWanted !== undefined;
  }

  get(workspace: string): WorkspaceState | undefined {
    return this.#states.get(workspace);
  }

  of(workspace: string): WorkspaceState {
    const known = this.#states.get(workspace);
    if (known !== undefined) return known;
    const state = new WorkspaceState(workspace);
    this.#states.set(workspace, state);
    return state;
  }

  forget(workspace: string): void {
    this.#states.delete(workspace);
  }

  all(): readonly WorkspaceState[] {
    return [...this.#states.values()];
  }
}
