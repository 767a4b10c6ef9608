import type { Offset } from "@tapedeck/shared/log/offset";
import { type ChatMessage, type ChatState, dropped, dueAt, flushed, isDue, unknownState } from "./chat-state.ts";

/** The most sources that are remembered: those that changed last. */
const maxSources = 2_000;

type Change = { readonly offset: Offset; readonly source: string; readonly before: ChatState | undefined };

/**
 * How each source is that needs to be remembered. The changes by events that may not be delivered yet are known, so that they can be
 * taken back: an event costs what it changes, however many sources there are.
 */
export class ChatStates {
  /** Those that changed last are the last. */
  readonly #states: Map<string, ChatState>;
  /** The sources whose message waits. */
  readonly #held: Set<string>;
  #changes: Change[] = [];

  constructor(states: Iterable<readonly [string, ChatState]>) {
    this.#states = new Map(states);
    this.#held = new Set([...this.#states].flatMap(([source, { held }]) => (held === undefined ? [] : [source])));
  }

  of(source: string): ChatState {
    return this.#states.get(source) ?? unknownState;
  }

  /** A good source is forgotten when its next message needs not to wait any more: if the last one was before `freeSince`. */
  change(
    source: string,
    state: ChatState,
    { offset, freeSince }: { readonly offset: Offset; readonly freeSince: number },
  ): void {
    const before = this.#states.get(source);
    this.#changes.push({ offset, source, before });
    this.#put(source, undefined);
    if (isWorthKeeping(state, freeSince)) this.#put(source, state);
  }

  /** Takes back what changed with this event and later. What was before it is settled, and can't be taken back any more. */
  goBackTo(offset: Offset): void {
    for (let last = this.#changes.at(-1); last !== undefined && last.offset >= offset; last = this.#changes.at(-1)) {
      this.#changes.pop();
      this.#put(last.source, last.before);
    }
    this.#changes = [];
    for (const oldest of this.#states.keys()) {
      if (this.#states.size <= maxSources) return;
      this.#put(oldest, undefined);
    }
  }

  /** The states after the events up to this one. */
  entriesAt(offset: Offset): readonly (readonly [string, ChatState])[] {
    const states = new Map(this.#states);
    for (const { source, before } of this.#changes.filter((one) => one.offset > offset).toReversed()) {
      if (before === undefined) states.delete(source);
      else states.set(source, before);
    }
    return [...states].slice(-maxSources);
  }

  /** When the first message that waits is due; undefined: none waits. */
  dueAt(intervalMs: number): number | undefined {
    const times = [...this.#held].flatMap((source) => dueAt(this.of(source), intervalMs) ?? []);
    return times.length === 0 ? undefined : times.reduce((first, time) => Math.min(first, time));
  }

  /** The messages that are due, in the order in which they are. */
  due(at: number, intervalMs: number): readonly ChatMessage[] {
    return this.#dueSources(at, intervalMs).flatMap(({ state }) => flushed(state, intervalMs).message ?? []);
  }

  /** Their sources have said what is due, except for what `isGone`. With an offset it can be taken back with the event there. */
  flush(at: number, intervalMs: number, isGone: (id: string) => boolean, offset?: Offset): void {
    for (const { source, state } of this.#dueSources(at, intervalMs)) {
      if (offset !== undefined) this.#changes.push({ offset, source, before: state });
      const isDropped = state.held !== undefined && isGone(state.held.id);
      this.#put(source, isDropped ? dropped(state, intervalMs) : flushed(state, intervalMs).state);
    }
  }

  #dueSources(at: number, intervalMs: number) {
    const due: { readonly source: string; readonly state: ChatState; readonly time: number }[] = [];
    for (const source of this.#held) {
      const state = this.of(source);
      const time = dueAt(state, intervalMs);
      if (time !== undefined && isDue(state, at, intervalMs)) due.push({ source, state, time });
    }
    // After a kill the order is the same.
    return due.sort((a, b) => a.time - b.time || (a.source < b.source ? -1 : 1));
  }

  #put(source: string, state: ChatState | undefined): void {
    if (state === undefined) this.#states.delete(source);
    else this.#states.set(source, state);
    if (state?.held === undefined) this.#held.delete(source);
    else this.#held.add(source);
  }
}

function isWorthKeeping(state: ChatState, freeSince: number): boolean {
  const { isRed, isReportedRed, unreported, messageAt = Number.NEGATIVE_INFINITY, held, failedIn, workedIn } = state;
  return (
    isRed || isReportedRed || unreported > 0 || messageAt > freeSince || (held ?? failedIn ?? workedIn) !== undefined
  );
}
