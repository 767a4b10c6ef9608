import type { Session, State, TapedeckEvent } from "@tapedeck/client";
import { durationText, fullTimeText, millis, sourceText, stampText } from "@tapedeck/client/lanes/format";
import { type Loop, lengthOf, stepText, timeOf } from "@tapedeck/client/lanes/step";
import { useEffect, useRef, useState } from "preact/hooks";
import { historyMs, readHistory } from "../data/read-history.ts";
import { isFile, reader } from "../data/reader.ts";
import { firstOf, inFrames, useReading } from "../data/reading.ts";
import { lostSince, problemOf, serverNow, tick } from "../data/tapedeck.ts";
import { eventCount } from "../model/event-rows.ts";
import { loopPath, sessionPath, sourcePath } from "../model/route.ts";
import {
  emptySession,
  endOf,
  foldSession,
  indexAt,
  loopAt,
  matching,
  pauseAfter,
  type SessionRecord,
} from "../model/session.ts";
import { stateSections } from "../model/state-sections.ts";
import { EventList } from "../parts/event-list.tsx";
import { CopyButton, Loading, Moment, outcomeWord, Problem, Sign, shownOutcome } from "../parts/small.tsx";
import { StateSections } from "../parts/state-panel.tsx";
import { Waterfall } from "../parts/waterfall.tsx";
import { navigate, to } from "../router.ts";
import { LabelList } from "./source-panel.tsx";

/** All of a session: its loops, its events, and its state at any of them. `at`: a position; without it, the newest. */
export function SessionView({ session, at }: { readonly session: string; readonly at: string | undefined }) {
  const [head, setHead] = useState<Session | "none">();
  const [record, setRecord] = useState<SessionRecord>(emptySession);
  const [problem, setProblem] = useState<string>();
  useReading(
    [session],
    async (signal) => {
      const client = reader();
      const [found] = await firstOf(client.sessions({ sessions: [session], signal }), 1);
      setHead(found ?? "none");
      if (found === undefined) return;
      lostSince.value = undefined;
      let read = emptySession;
      let after = "start";
      let shownAt = Number.NEGATIVE_INFINITY;
      for await (const past of readHistory(session, signal)) {
        read = foldSession(read, past.events);
        after = past.position;
        if (performance.now() - shownAt < historyMs) continue;
        setRecord(read);
        await new Promise((resolve) => setTimeout(resolve));
        shownAt = performance.now();
      }
      setRecord(read);
      const messages = client.subscribe({ sessions: [session], after, signal, onGap: () => {} });
      await inFrames(messages, signal, (batch) => {
        read = foldSession(
          read,
          batch.flatMap((message) => (message.type === "event" ? [message.event] : [])),
        );
        setRecord(read);
      });
    },
    setProblem,
  );
  if (problem !== undefined && record.events.length === 0) return <Problem text={problem} />;
  if (head === "none")
    return <Problem text={`There is no session ${session}, or it is no longer kept.`} mayPass={false} />;
  if (head === undefined || record.events.length === 0) return <Loading what="the session" />;
  return <Shown head={head} record={record} at={at} />;
}

type ShownProps = { readonly head: Session; readonly record: SessionRecord; readonly at: string | undefined };

function Shown({ head, record, at }: ShownProps) {
  const { events, loops } = record;
  const ended = endOf(head) ?? record.ended;
  const index = at === undefined ? events.length - 1 : indexAt(events, at);
  const event = events[index] as TapedeckEvent;
  const position = event.position;
  const go = (wished: number) => {
    const next = events[Math.max(0, Math.min(events.length - 1, wished))];
    if (next === undefined) return;
    const isNewest = next === events.at(-1) && ended === undefined;
    navigate(sessionPath(head.session, isNewest ? undefined : next.position), { replace: true });
  };
  const loop = loopAt(loops, position);
  useEffect(() => {
    document.title = `${sourceText(head.source)}, session · Tapedeck`;
  }, [head.source]);
  const isLive = at === undefined && ended === undefined && !isFile();
  return (
    <div class="session">
      <Title head={head} ended={ended} position={position} />
      <LabelList labels={head.labels} />
      <Slider events={events} loops={loops} index={index} go={go} isLive={isLive} />
      <div class="columns">
        <LoopList loops={loops} chosen={loop} />
        <div class="middle">
          {loop !== undefined && (
            <section aria-label="Waterfall">
              <h2 class="part">
                {loop.kind === "loop" ? <a href={to(loopPath(loop))}>loop {loop.loop}</a> : stepText(loop)}{" "}
                <span class="quiet-text">
                  {outcomeWord(shownOutcome(loop))}, {durationText(lengthOf(loop, tick.value))}
                </span>
              </h2>
              <Waterfall
                steps={loop.steps.length > 0 ? loop.steps : [loop]}
                from={loop.startedAt}
                to={Math.max(loop.endedAt ?? tick.value, loop.startedAt + 1)}
                now={tick.value}
                select={(step) => go(indexAt(events, step.endPosition ?? step.position))}
              />
            </section>
          )}
          <EventSection record={record} position={position} choose={(chosen) => go(indexAt(events, chosen.position))} />
        </div>
        <StateAt head={head} events={events} position={position} />
      </div>
    </div>
  );
}

type EventSectionProps = {
  readonly record: SessionRecord;
  readonly position: string;
  readonly choose: (event: Pick<TapedeckEvent, "position">) => void;
};

function EventSection({ record: { events, rows, since }, position, choose }: EventSectionProps) {
  const [wanted, setWanted] = useState("");
  const shownRows = matching(rows, wanted);
  const shownCount = shownRows === rows ? events.length : eventCount(shownRows);
  return (
    <section aria-label="Events" class="events">
      <header>
        <h2 class="part">
          Events{" "}
          <span class="quiet-text">
            {shownCount === events.length ? events.length : `${shownCount} of ${events.length}`}
          </span>
        </h2>
        <input
          id="search"
          type="search"
          aria-label="Filter events"
          placeholder="kind:build.* outcome:failed words   /"
          onInput={(input) => setWanted(input.currentTarget.value)}
        />
      </header>
      <EventList rows={shownRows} count={shownCount} since={since} at={position} choose={choose} />
    </section>
  );
}

type TitleProps = { readonly head: Session; readonly ended: string | undefined; readonly position: string };

function Title({ head, ended, position }: TitleProps) {
  const started = millis(head.startedAt);
  return (
    <header class="title">
      <h1>
        <a href={to(sourcePath(sourceText(head.source)))}>{sourceText(head.source)}</a> <span>· session</span>
      </h1>
      <p class="quiet-text">
        {started !== undefined && (
          <>
            <Moment at={started} /> ·{" "}
          </>
        )}
        {ended === undefined ? "running" : `ended: ${ended}`} · {head.upstreamVersion}
      </p>
      {!isFile() && (
        <span class="actions">
          <CopyButton text={() => location.origin + sessionPath(head.session, position)}>
            Copy link to this moment
          </CopyButton>
        </span>
      )}
    </header>
  );
}

function LoopList({ loops, chosen }: { readonly loops: readonly Loop[]; readonly chosen: Loop | undefined }) {
  const longest = Math.max(1, ...loops.map((loop) => lengthOf(loop, tick.value)));
  return (
    <nav class="loop-list" aria-label="Loops">
      <h2 class="part">Loops</h2>
      {loops.length === 0 && <p class="quiet-text">none yet</p>}
      <ol>
        {loops.toReversed().map((loop) => {
          const shown = shownOutcome(loop);
          const length = lengthOf(loop, tick.value);
          return (
            <li key={loop.position}>
              <a
                href={to(sessionPath(loop.session, loop.endPosition ?? loop.position))}
                aria-current={loop === chosen ? "true" : undefined}
              >
                <Sign of={shown} />
                <span class="number">
                  <span class="hidden">{loop.kind} </span>
                  {loop.kind === "loop" ? loop.loop : loop.subject}
                </span>
                <span class={`small-bar ${shown}`}>
                  <span style={{ width: `${(length / longest) * 100}%` }} />
                </span>
                <span class="took">{durationText(length)}</span>
              </a>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

const speeds = [1, 5, 10, 50] as const;

type SliderProps = {
  readonly events: readonly TapedeckEvent[];
  readonly loops: readonly Loop[];
  readonly index: number;
  readonly go: (to: number) => void;
  readonly isLive: boolean;
};

/** From the session's first event to its last; loops and failures are marked. */
function Slider({ events, loops, index, go, isLive }: SliderProps) {
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<number>(10);
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
      <select aria-label="Speed" value={speed} onChange={(chosen) => setSpeed(Number(chosen.currentTarget.value))}>
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
      {!isLive && (
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
            class={shownOutcome(loop)}
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
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { events, loops, index, go, toggle } = latest.current;
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
      if (event.target instanceof HTMLButtonElement && event.key === " ") return;
      const position = events[index]?.position ?? "";
      const ends = loops.map((loop) => indexAt(events, loop.endPosition ?? loop.position));
      const actions: Readonly<Record<string, () => void>> = {
        ArrowLeft: () => go(index - 1),
        ArrowRight: () => go(index + 1),
        "[": () => go(ends.findLast((end) => (events[end]?.position ?? "") < position) ?? 0),
        "]": () => go(ends.find((end) => (events[end]?.position ?? "") > position) ?? events.length - 1),
        " ": toggle,
      };
      const action = actions[event.key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

type StateAtProps = {
  readonly head: Session;
  readonly events: readonly TapedeckEvent[];
  readonly position: string;
};

/** The state of then, as the API gives it. A slider that moves asks for the position where it stops, and one on the way. */
function StateAt({ head, events, position }: StateAtProps) {
  const [state, setState] = useState<State>();
  const [problem, setProblem] = useState<string>();
  const asked = useRef({ isAsking: false, wanted: position });
  useEffect(() => {
    const turn = asked.current;
    turn.wanted = position;
    if (turn.isAsking) return;
    turn.isAsking = true;
    void (async () => {
      for (let read = ""; read !== turn.wanted; ) {
        read = turn.wanted;
        try {
          setState(await reader().state(head.source, { session: head.session, at: read }));
          setProblem(undefined);
        } catch (error) {
          setProblem(problemOf(error));
        }
      }
      turn.isAsking = false;
    })();
  }, [head.session, position]);
  const shown = events[indexAt(events, state?.at ?? position)];
  return (
    <aside class="panel" aria-label="State at this moment" data-position={state?.at ?? ""}>
      <h2 class="part">
        State{" "}
        {shown !== undefined && (
          <span class="quiet-text" title={fullTimeText(timeOf(shown))}>
            at {stampText(timeOf(shown), serverNow())}
          </span>
        )}
      </h2>
      {problem !== undefined && <p class="notice">{problem}</p>}
      {state !== undefined && <StateSections sections={stateSections(state.upstream, state.state)} />}
    </aside>
  );
}
