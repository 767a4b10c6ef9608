import type { ItemContent } from "../connection-items.ts";
import type { TapItem, TapOptions, UpstreamTap } from "../tap.ts";

type ItemValue<C extends ItemContent["$case"]> = Extract<ItemContent, { $case: C }>["value"];

/** Runs a tap and collects the items that it emits. Disposing makes it leave. */
export function startTap(tap: UpstreamTap, options: Omit<TapOptions, "emit" | "signal">) {
  const items: TapItem[] = [];
  const stop = new AbortController();
  const running = tap.run({ ...options, signal: stop.signal, emit: (item) => void items.push(item) });
  return {
    items,
    control: running.control,
    done: running.done,
    all: <C extends ItemContent["$case"]>(name: C) =>
      items.flatMap(({ what }): ItemValue<C>[] => (what?.$case === name ? [what.value as ItemValue<C>] : [])),
    leave: () => stop.abort(),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.done;
    },
  };
}
