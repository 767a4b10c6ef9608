import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Normalizer } from "../../normalize/normalizer.ts";
import type { KnownCall } from "../journal/source-history.ts";

/** Events that clients put into the upstream's own stream through us, and that the stream has not told yet. */
export type Injections = {
  /** Before the call is made: its event may come back before its answer. */
  expect(call: string, method: string, request: Uint8Array): void;
  /** The upstream did not take it. */
  forget(call: string): void;
  /** True if the frame is one that is waited for, which is then waited for no more. */
  take(channel: string, frame: Uint8Array): boolean;
  /** A frame that was recorded as injected, read back from the log. */
  recorded(event: Event, seq: number): void;
};

type Expected = { readonly call: string; readonly seq: number } & NonNullable<ReturnType<Normalizer["injects"]>>;

/**
 * Every frame is compared with each, and there are calls that an upstream takes and tells nothing of. Calls are made one
 * at a time and told at once, so the newest few are those that are still to come.
 */
const most = 16;

export function injections(reading: Normalizer, calls: readonly KnownCall[]): Injections {
  let expected: readonly Expected[] = [];
  const expect = ({ call, method, request, seq }: KnownCall) => {
    const injection = reading.injects(method, request);
    if (injection !== undefined) expected = [...expected, { call, seq, ...injection }].slice(-most);
  };
  const takeFirst = (fits: (one: Expected) => boolean): boolean => {
    const found = expected.find(fits);
    if (found === undefined) return false;
    expected = expected.filter((one) => one !== found);
    return true;
  };
  for (const call of calls) expect(call);
  return {
    expect: (call, method, request) => expect({ call, method, request, seq: Number.POSITIVE_INFINITY }),
    forget: (call) => void takeFirst((one) => one.call === call),
    take: (channel, frame) => expected.length > 0 && takeFirst((one) => one.channel === channel && one.matches(frame)),
    recorded({ channel, injected, original }, seq) {
      if (!injected || original === undefined) return;
      takeFirst((one) => one.channel === channel && one.seq < seq && one.matches(original.bytes));
    },
  };
}
