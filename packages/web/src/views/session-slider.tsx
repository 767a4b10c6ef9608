import type { TapedeckEvent } from "@tapedeck/client";
import { fullTimeText, stampText } from "@tapedeck/client/lanes/format";
import { type Loop, timeOf } from "@tapedeck/client/lanes/step";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { serverNow } from "../data/tapedeck.ts";
import { indexAt, pauseAfter } from "../model/session.ts";
import { isForView } from "../parts/keys.tsx";
import { displayedOutcome } from "../parts/small.tsx";
import { choose } from "../router.ts";

const speeds = [1, 5, 10, 50] as const;
const defaultSpeed = 10;

type SliderProps = {
  readonly events: readonly TapedeckEvent[];
  readonly loops: readonly Loop[];
  readonly index: number;
  readonly go: (to: number) => void;
  readonly isLive: boolean;
  /** The text in the URL. */
  readonly speed: string | undefined;
};

/** From the session's first event to its last; loops and failures are marked. */
export function Slider({ events, loops, index, go, isLive, speed: target }: SliderProps) {
  const [isPlaying, setPlaying] = useState(false);
  const speed = speeds.find((times) => String(times) === target) ?? defaultSpeed;
  const last = events.length - 1;
  usePlay({ events, index, go, isPlaying, speed, stop: () => setPlaying(false) });
  useSliderKeys({ index, loops, events, go, toggle: () => setPlaying((before) => !before) });
  const event = events[index];
  return (
    <div class="slider">
      <button
        type="button"
        aria-label={isPlaying ? "Pause" : "Play"}
        title="Space"
        onClick={() => setPlaying(!isPlaying)}
      >
        {isPlaying ? "❚❚" : "▶"}
      </button>
      <select aria-label="Speed" value={speed} onChange={(chosen) => choose({ speed: chosen.currentTarget.value })}>
        {speeds.map((times) => (
          <option key={times} value={times}>
            {times}×
          </option>
        ))}
      </select>
      <div class="track">
        <LoopMarks events={events} loops={loops} />
        <input
          type="range"
          min={0}
          max={last}
          value={index}
          aria-label="Moment of the session"
          aria-valuetext={event === undefined ? "" : `${stampText(timeOf(event), serverNow())}: ${event.summary}`}
          onInput={(input) => go(Number(input.currentTarget.value))}
        />
      </div>
      <output title={event && fullTimeText(timeOf(event))}>
        {event === undefined ? "" : isLive ? "live" : stampText(timeOf(event), serverNow())}
      </output>
      {index < last && (
        <button type="button" class="quiet" onClick={() => go(last)}>
          newest
        </button>
      )}
    </div>
  );
}

function LoopMarks({ events, loops }: Pick<SliderProps, "events" | "loops">) {
  const last = events.length - 1;
  return (
    <span class="marks" aria-hidden="true">
      {loops.map((loop) => {
        const [first, end] = [
          indexAt(events, loop.position),
          indexAt(events, loop.endPosition ?? events[last]?.position ?? ""),
        ];
        return (
          <span
            key={loop.position}
            class={displayedOutcome(loop)}
            style={{
              left: `${(first / Math.max(1, last)) * 100}%`,
              width: `${(Math.max(1, end - first) / Math.max(1, last)) * 100}%`,
            }}
          />
        );
      })}
    </span>
  );
}

type Play = Pick<SliderProps, "events" | "index" | "go"> & {
  readonly isPlaying: boolean;
  readonly speed: number;
  readonly stop: () => void;
};

function usePlay({ events, index, go, isPlaying, speed, stop }: Play): void {
  useEffect(() => {
    if (!isPlaying) return;
    if (index >= events.length - 1) return stop();
    // Several events may fall into one frame.
    const frameMs = 16;
    let [next, waitMs] = [index, 0];
    while (next < events.length - 1 && waitMs < frameMs) waitMs += pauseAfter(events, next++, speed);
    const timer = setTimeout(() => go(next), waitMs);
    return () => clearTimeout(timer);
  }, [isPlaying, index, speed, events.length]);
}

type SliderKeys = Pick<SliderProps, "events" | "loops" | "index" | "go"> & { readonly toggle: () => void };

function useSliderKeys(keys: SliderKeys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { events, loops, index, go, toggle } = latest.current;
      if (!isForView(event)) return;
      if (event.target instanceof HTMLButtonElement && event.key === " ") return;
      const position = events[index]?.position ?? "";
      const ends = loops.map((loop) => indexAt(events, loop.endPosition ?? loop.position));
      const actions: ReadonlyMap<string, () => void> = new Map(
        Object.entries({
          ArrowLeft: () => go(index - 1),
          ArrowRight: () => go(index + 1),
          "[": () => go(ends.findLast((end) => (events[end]?.position ?? "") < position) ?? 0),
          "]": () => go(ends.find((end) => (events[end]?.position ?? "") > position) ?? events.length - 1),
          " ": toggle,
        }),
      );
      const action = actions.get(event.key);
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
