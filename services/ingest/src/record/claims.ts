import type { SourceName } from "@tapedeck/shared/source";
import type { ImportedSession } from "./imported/imported-session.ts";
import { sourceTaken } from "./push-errors.ts";
import type { SessionRecorder } from "./session/session-recorder.ts";

export type Intake = SessionRecorder | ImportedSession;

/** What occupies a source: `stop` ends it, and `done` resolves when it has ended. */
class Occupation {
  readonly stop = new AbortController();
  readonly #done = Promise.withResolvers<void>();

  get done(): Promise<void> {
    return this.#done.promise;
  }

  ended(): void {
    this.#done.resolve();
  }
}

/** A push of a source. */
export class ActivePush extends Occupation {
  readonly tap: string;
  /** Undefined until it is opened. */
  intake: Intake | undefined;

  constructor(tap: string) {
    super();
    this.tap = tap;
  }

  get connected(): boolean {
    return this.intake?.connected ?? false;
  }
}

/** This process's hold on sources: by pushes, and by examinations of sources without a push. */
export class SourceClaims {
  readonly #pushes = new Map<SourceName, ActivePush>();
  readonly #examinations = new Map<SourceName, Occupation>();

  get pushes(): ReadonlyMap<SourceName, ActivePush> {
    return this.#pushes;
  }

  /**
   * One push per source: a push of the same tap replaces the older one, another tap is refused. An examination is stopped.
   * @throws TapedeckError source_taken
   */
  async push(source: SourceName, tap: string): Promise<ActivePush> {
    for (;;) {
      const push = this.#pushes.get(source);
      const before = push ?? this.#examinations.get(source);
      if (before === undefined) break;
      if (push !== undefined && push.tap !== tap) throw sourceTaken(source);
      before.stop.abort();
      await before.done;
    }
    const push = new ActivePush(tap);
    this.#pushes.set(source, push);
    return push;
  }

  pushEnded(source: SourceName): void {
    const push = this.#pushes.get(source);
    this.#pushes.delete(source);
    push?.ended();
  }

  /** Nobody has the source in this process. */
  isFree(source: SourceName): boolean {
    return !this.#pushes.has(source) && !this.#examinations.has(source);
  }

  /** Undefined if the source is held. Aborts when a tap pushes it. */
  examine(source: SourceName): AbortSignal | undefined {
    if (!this.isFree(source)) return undefined;
    const examination = new Occupation();
    this.#examinations.set(source, examination);
    return examination.stop.signal;
  }

  examined(source: SourceName): void {
    const examination = this.#examinations.get(source);
    this.#examinations.delete(source);
    examination?.ended();
  }
}
