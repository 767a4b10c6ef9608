import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import type { Normalizer } from "../../normalize/normalizer.ts";
import type { KnownCall } from "../journal/source-history.ts";

type ExpectedInjection = { readonly call: string; readonly offset: Offset } & NonNullable<
  ReturnType<Normalizer["injects"]>
>;

/**
 * Each frame is compared with every expected injection, and an upstream may accept a call without emitting its event.
 * Calls are made one at a time and emitted at once, so only the newest few can still come.
 */
const maxExpected = 16;

/** Events that clients put into the upstream's own stream through us, and that the stream has not emitted yet. */
export class Injections {
  readonly #normalizer: Normalizer;
  #expected: readonly ExpectedInjection[] = [];

  /** `calls`: the control calls that the log already has. */
  constructor(normalizer: Normalizer, calls: readonly KnownCall[]) {
    this.#normalizer = normalizer;
    for (const call of calls) this.#expect(call);
  }

  /** Call this before the control call is made, because its event may arrive before its answer. */
  expect(call: string, method: string, request: Uint8Array): void {
    this.#expect({ call, method, request, offset: beyondAll });
  }

  /** The upstream rejected the call. */
  forget(call: string): void {
    this.#takeFirst((one) => one.call === call);
  }

  /** Returns true if the frame is an expected injection, which is then no longer expected. */
  take(channel: string, frame: Uint8Array): boolean {
    if (this.#expected.length === 0) return false;
    return this.#takeFirst((one) => one.channel === channel && one.matches(frame));
  }

  /** A frame that was recorded as injected was read back from the log. */
  recorded({ channel, injected, original }: Event, offset: Offset): void {
    if (!injected || original === undefined) return;
    this.#takeFirst((one) => one.channel === channel && one.offset < offset && one.matches(original.bytes));
  }

  #expect({ call, method, request, offset }: KnownCall): void {
    const injection = this.#normalizer.injects(method, request);
    if (injection !== undefined)
      this.#expected = [...this.#expected, { call, offset, ...injection }].slice(-maxExpected);
  }

  #takeFirst(matches: (one: ExpectedInjection) => boolean): boolean {
    const found = this.#expected.find(matches);
    if (found === undefined) return false;
    this.#expected = this.#expected.filter((one) => one !== found);
    return true;
  }
}
