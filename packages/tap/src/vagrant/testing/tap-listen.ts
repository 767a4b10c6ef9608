import { Look, type Look_Streamed } from "@tapedeck/proto/tapedeck/v1/look";
import { GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import type { TapItem, TapOptions } from "../../tap.ts";
import { tap } from "../tap.ts";

type What = NonNullable<TapItem["what"]>;
type Told<C extends What["$case"]> = Extract<What, { $case: C }>["value"];
type Seen = NonNullable<Look["seen"]>;
type SeenOf<C extends Seen["$case"]> = Extract<Seen, { $case: C }>["value"];

export const when = (message: string, condition: () => unknown) => until(() => Boolean(condition()), { message });

/** A tap in a test, with all that it has told. */
export function listen(address: string, settings: NonNullable<TapOptions["settings"]> = {}) {
  const items: TapItem[] = [];
  const stop = new AbortController();
  const emit = (item: TapItem) => void items.push(item);
  const running = tap.run({ address, signal: stop.signal, settings, emit });
  const all = <C extends What["$case"]>(name: C) =>
    items.flatMap(({ what }): Told<C>[] => (what?.$case === name ? [what.value as Told<C>] : []));
  const looks = (channel: "jobs" | "things") =>
    all("frame").flatMap((frame) => (frame.channel === channel ? (Look.decode(frame.bytes).seen ?? []) : []));
  const seen = <C extends Seen["$case"]>(channel: "jobs" | "things", name: C) =>
    looks(channel).flatMap((each): SeenOf<C>[] => (each.$case === name ? [each.value as SeenOf<C>] : []));
  const streamed = (id: string) => seen("jobs", "streamed").filter(({ job }) => job === id);
  return {
    ...{ items, all, looks, control: running.control, done: running.done },
    lists: () => seen("jobs", "all"),
    ones: () => seen("jobs", "one"),
    failures: (channel: "jobs" | "things") => seen(channel, "failed"),
    things: () => seen("things", "things"),
    streamed,
    ends: (id: string) => seen("jobs", "stream_ended").filter(({ job }) => job === id),
    terminals: (id: string) =>
      streamed(id).flatMap(({ bytes }) => {
        const { event } = GetJobStreamResponse.decode(bytes);
        return event?.$case === "terminal" ? [event.value] : [];
      }),
    /** What each opening of the job's stream gave. */
    openings: (id: string) =>
      [...Map.groupBy(streamed(id), ({ stream }) => stream).values()].map((messages) => messages.map(summary)),
    leave: () => stop.abort(),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.done;
    },
  };
}

/** "terminal 64": a message, and how many terminal events came before it. */
function summary({ bytes, before }: Look_Streamed): string {
  return `${GetJobStreamResponse.decode(bytes).event?.$case} ${before}`;
}
