import { Observation, type Observation_Streamed } from "@tapedeck/proto/tapedeck/v1/observation";
import { GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import type { PollResult } from "../../polling/poll-result.ts";
import type { TapOptions } from "../../tap.ts";
import { startTap } from "../../testing/start-tap.ts";
import { tap } from "../tap.ts";

type ResultValue<C extends PollResult["$case"]> = Extract<PollResult, { $case: C }>["value"];

export const when = (message: string, condition: () => unknown) => until(() => Boolean(condition()), { message });

/** Runs the tap of Vagrant and collects what it emits. Disposing makes it leave. */
export function listen(address: string, settings: NonNullable<TapOptions["settings"]> = {}) {
  const running = startTap(tap, { address, settings });
  const observations = (channel: "jobs" | "resources") =>
    running
      .all("frame")
      .flatMap((frame) => (frame.channel === channel ? (Observation.decode(frame.bytes).result ?? []) : []));
  const results = <C extends PollResult["$case"]>(channel: "jobs" | "resources", name: C) =>
    observations(channel).flatMap((each): ResultValue<C>[] =>
      each.$case === name ? [each.value as ResultValue<C>] : [],
    );
  const streamed = (id: string) => results("jobs", "streamed").filter(({ job }) => job === id);
  return {
    ...running,
    observations,
    lists: () => results("jobs", "all"),
    ones: () => results("jobs", "one"),
    failures: (channel: "jobs" | "resources") => results(channel, "failed"),
    resources: () => results("resources", "resources"),
    streamed,
    ends: (id: string) => results("jobs", "stream_ended").filter(({ job }) => job === id),
    terminals: (id: string) =>
      streamed(id).flatMap(({ bytes }) => {
        const { event } = GetJobStreamResponse.decode(bytes);
        return event?.$case === "terminal" ? [event.value] : [];
      }),
    /** The messages of each opening of the job's stream. */
    openings: (id: string) =>
      [...Map.groupBy(streamed(id), ({ stream }) => stream).values()].map((messages) => messages.map(summary)),
  };
}

/** "terminal 64": a message, and how many terminal events came before it. */
function summary({ bytes, before }: Observation_Streamed): string {
  return `${GetJobStreamResponse.decode(bytes).event?.$case} ${before}`;
}
