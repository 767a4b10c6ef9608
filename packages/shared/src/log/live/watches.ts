import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import { SubjectIndex } from "./subject-index.ts";
import { Turns } from "./turns.ts";
import { Watch } from "./watch.ts";

/** A follower that waits without a match learns that often how far the log has come. */
const reportMs = 250;

/** All followers of one tail. An event costs those who get it, and a search in an index. */
export class Watches {
  readonly #all = new Set<Watch>();
  /** Those that want everything. */
  readonly #unfiltered = new Set<Watch>();
  /** Those that wait for a certain end of the log, whatever stands there. */
  readonly #eager = new Set<Watch>();
  /** How many want each event at once. */
  #impatient = 0;
  #onAwaited = (): void => {};
  readonly #index = new SubjectIndex<Watch>();
  readonly #turns = new Turns();
  #report: Timer | undefined;

  open(subjects: readonly string[], { isPatient = false } = {}): Watch {
    const watch = new Watch(subjects, (goOn) => this.#turns.add(goOn), isPatient);
    this.#all.add(watch);
    if (!isPatient && this.#impatient++ === 0) this.#onAwaited();
    if (subjects.length === 0) this.#unfiltered.add(watch);
    for (const subject of subjects) this.#index.add(subject, watch);
    return watch;
  }

  close(watch: Watch): void {
    if (!this.#all.delete(watch)) return;
    if (!watch.isPatient) this.#impatient--;
    this.#unfiltered.delete(watch);
    this.#eager.delete(watch);
    for (const subject of watch.subjects) this.#index.delete(subject, watch);
  }

  /** Whether somebody wants each event at once. */
  get isAwaited(): boolean {
    return this.#impatient > 0;
  }

  /** Calls `wake`, and no other listener, when the first one comes who wants each event at once. */
  onAwaited(wake: () => void): void {
    this.#onAwaited = wake;
  }

  /** Whether each event wakes it. */
  setEager(watch: Watch, isEager: boolean): void {
    if (isEager) this.#eager.add(watch);
    else this.#eager.delete(watch);
  }

  /** An entry has come. */
  offer(tokens: readonly string[], index: number): void {
    for (const watch of this.#unfiltered) watch.offer(index);
    this.#index.visit(tokens, (watch) => watch.offer(index));
    for (const watch of this.#eager) watch.wake();
    this.#report ??= startTimer(() => this.wakeAll(), reportMs).unref();
  }

  /** There is something new for everybody: the log is there, has come further, or is gone. */
  wakeAll(): void {
    stopTimer(this.#report);
    this.#report = undefined;
    for (const watch of this.#all) watch.wake();
  }

  /** The ring was cleared: each follower continues reading from its own position. */
  disarmAll(): void {
    for (const watch of this.#all) watch.disarm();
    this.wakeAll();
  }

  /** Resolves in one of the next turns of the event loop. */
  nextTurn(): Promise<void> {
    return this.#turns.next();
  }
}
