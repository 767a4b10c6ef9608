import type { Channel } from "@tapedeck/shared/skaffold/methods";
import { tap } from "../skaffold/tap.ts";
import type { Remembered, TapItem, TapMemory } from "../tap.ts";

type What = NonNullable<TapItem["what"]>;
type Told<C extends What["$case"]> = Extract<What, { $case: C }>["value"];

/** Runs the tap on an address, and keeps what it tells. Disposing makes it leave. */
export function listen(address: string, skipChannels: readonly Channel[] = [], memory: TapMemory = testMemory()) {
  const items: TapItem[] = [];
  const stop = new AbortController();
  const emit = (item: TapItem) => void items.push(item);
  const running = tap.run({ ...{ address, signal: stop.signal, skipChannels }, emit, memory });
  const all = <C extends What["$case"]>(name: C) =>
    items.flatMap(({ what }): Told<C>[] => (what?.$case === name ? [what.value as Told<C>] : []));
  return {
    ...{ items, all, control: running.control, done: running.done },
    frames: (channel: Channel) => all("frame").flatMap((frame) => (frame.channel === channel ? [frame.bytes] : [])),
    leave: () => stop.abort(),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.done;
    },
  };
}

/** Lives longer than the tap. */
export function testMemory(): TapMemory & { readonly saved: Remembered[] } {
  const saved: Remembered[] = [];
  return { saved, load: () => saved.at(-1), save: (remembered) => void saved.push(remembered) };
}
