import { sessionOf } from "../batch/batch.ts";
import type { HeldEvent, RecordedEvent } from "../log.ts";
import type { Offset } from "../offset.ts";
import type { Delivered } from "../reading/consumer.ts";
import { sourceOfSubject } from "../subjects.ts";

/** An event that all followers share. Decoded only when a subscriber gets it: most processes follow next to nothing. */
export class SharedEvent implements HeldEvent {
  readonly offset: Offset;
  readonly subject: string;
  readonly isShared = true;
  /** The subject's tokens, split once for all subscribers. */
  readonly tokens: readonly string[];
  readonly #message: Delivered;
  #event: HeldEvent | undefined;
  #recorded: RecordedEvent | undefined;
  #expiresAtMs: number | undefined;

  constructor(message: Delivered, event: HeldEvent) {
    this.offset = event.offset;
    this.subject = event.subject;
    this.tokens = event.subject.split(".");
    this.#message = message;
    this.#event = event;
  }

  get bytes(): Uint8Array | undefined {
    return this.#isDropped ? undefined : this.#event?.bytes;
  }

  /** Decoded once for all followers. */
  decode(): RecordedEvent | undefined {
    if (this.#isDropped) return undefined;
    this.#recorded ??= this.#event?.decode();
    return this.#recorded;
  }

  /**
   * A session, or a source by its full name, was erased after this event. It is not decoded for this: decoding all that is in
   * memory would hold the event loop, and the memory for as long as they stay there.
   */
  forget(erased: string): void {
    if (this.#event?.bytes === undefined) return;
    const isErased = erased.includes("/")
      ? sourceOfSubject(this.#message.subject) === erased
      : sessionOf(this.#event.bytes) === erased;
    if (isErased) this.#erase();
  }

  #erase(): void {
    this.#event = undefined;
    this.#recorded = undefined;
  }

  /** An event that the log has dropped must not be served from memory. */
  get #isDropped(): boolean {
    // What was left out once stays so: it is in no list of erasures any more when all of it is gone from the log.
    if (this.#event?.bytes === undefined) this.#erase();
    if (this.#event === undefined) return true;
    this.#expiresAtMs ??= this.#message.expiresAtMs ?? Number.POSITIVE_INFINITY;
    return this.#expiresAtMs <= Date.now();
  }
}
