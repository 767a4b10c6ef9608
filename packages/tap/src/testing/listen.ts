import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { tap } from "../skaffold/tap.ts";
import type { Remembered, TapMemory } from "../tap.ts";
import { startTap } from "./start-tap.ts";

/** Runs the tap of Skaffold and collects what it emits. Disposing makes it leave. */
export function listen(
  address: string,
  skipChannels: readonly SkaffoldChannel[] = [],
  memory: TapMemory = testMemory(),
) {
  const running = startTap(tap, { address, skipChannels, memory });
  return {
    ...running,
    frames: (channel: SkaffoldChannel) =>
      running.all("frame").flatMap((frame) => (frame.channel === channel ? [frame.bytes] : [])),
  };
}

/** Lives longer than the tap. */
export function testMemory(): TapMemory & { readonly saved: Remembered[] } {
  const saved: Remembered[] = [];
  return { saved, load: () => saved.at(-1), save: (remembered) => void saved.push(remembered) };
}
