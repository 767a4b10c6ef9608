import type { Operation, Session, State, TapedeckEvent } from "@tapedeck/client";
import { loopWithCauses } from "@tapedeck/client/lanes/causes";
import { fullTimeText, millis, sourceText, stampText } from "@tapedeck/client/lanes/format";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import { type Loop, lengthOf, lengthText, type Step, stepText, timeOf } from "@tapedeck/client/lanes/step";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { historyMs, readHistory } from "../data/read-history.ts";
import { isFile, reader } from "../data/reader.ts";
import { firstOf, inFrames, useReading } from "../data/reading.ts";
import { useTitle } from "../data/tab.ts";
import { errorText, lostSince, serverNow, tick } from "../data/tapedeck.ts";
import { eventCount, foldedOutput } from "../model/event-rows.ts";
import { outputOf } from "../model/output.ts";
import { loopPath, type SessionChoices, sourcePath } from "../model/route.ts";
import {
  emptySession,
  endOf,
  foldSession,
  indexAt,
  loopAt,
  loopsAt,
  matching,
  type SessionRecord,
} from "../model/session.ts";
import { stateSections } from "../model/state-sections.ts";
import { withUnchanged } from "../model/unchanged.ts";
import { EventList } from "../parts/event-list.tsx";
import { allSteps, LogText } from "../parts/log-text.tsx";
import { CopyButton, DateTime, displayedOutcome, ErrorNotice, Loading, outcomeWord, Sign } from "../parts/small.tsx";
import { StateSections } from "../parts/state-panel.tsx";
import { Waterfall } from "../parts/waterfall.tsx";
import { choose, pathWith, to } from "../router.ts";
import { Slider } from "./session-slider.tsx";
import { LabelList } from "./source-panel.tsx";

type SessionViewProps = { readonly session: string; readonly chosen: SessionChoices };

/** All of a session: its loops, its events, and its output and state at any of them. */
export function SessionView({ session, chosen }: SessionViewProps) {
  const [head, setHead] = useState<Session | "none">();
  const [record, setRecord] = useState<SessionRecord>(emptySession);
  const [isWhole, setWhole] = useState(false);
  const [error, setError] = useState<string>();
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
      let displayedAt = Number.NEGATIVE_INFINITY;
      for await (const past of readHistory(session, signal)) {
        read = foldSession(read, past.events);
        after = past.position;
        if (performance.now() - displayedAt < historyMs) continue;
        setRecord(read);
        await new Promise((resolve) => setTimeout(resolve));
        displayedAt = performance.now();
      }
      setRecord(read);
      setWhole(true);
      const messages = client.subscribe({ sessions: [session], after, signal, onGap: () => {} });
      await inFrames(messages, signal, (batch) => {
        read = foldSession(
          read,
          batch.flatMap((message) => (message.type === "event" ? [message.event] : [])),
        );
        setRecord(read);
      });
    },
    setError,
  );
  if (error !== undefined && record.events.length === 0) return <ErrorNotice text={error} />;
  if (head === "none")
    return <ErrorNotice text={`There is no session ${session}, or it is no longer kept.`} mayPass={false} />;
  if (head === undefined || record.events.length === 0) return <Loading what="the session" />;
  return <SessionRecordView head={head} record={record} isWhole={isWhole} chosen={chosen} />;
}

type SessionRecordProps = Pick<SessionViewProps, "chosen"> & {
  readonly head: Session;
  readonly record: SessionRecord;
  /** Whether all events up to now were read. */
  readonly isWhole: boolean;
};

function SessionRecordView({ head, record, isWhole, chosen }: SessionRecordProps) {
  const { events, loops } = record;
  const { at, speed } = chosen;
  const ended = endOf(head) ?? record.ended;
  const index = at === undefined ? events.length - 1 : indexAt(events, at);
  const event = events[index] as TapedeckEvent;
  const position = event.position;
  const loop = loopAt(loops, position);
  const go = (wished: number) => {
    const next = events[Math.max(0, Math.min(events.length - 1, wished))];
    if (next === undefined) return;
    const isNewest = next === events.at(-1) && ended === undefined;
    const isSameLoop = loopAt(loops, next.position) === loop;
    choose({ at: isNewest ? undefined : next.position, ...(!isSameLoop && { step: undefined }) });
  };
  useTitle(`${sourceText(head.source)}, session`);
  const isSettled = isWhole || (at !== undefined && at <= (events.at(-1)?.position ?? ""));
  const isLive = at === undefined && ended === undefined && !isFile() && lostSince.value === undefined;
  return (
    <div class="session">
      <Title head={head} ended={ended} position={position} />
      <LabelList labels={head.labels} />
      <Slider events={events} loops={loops} index={index} go={go} isLive={isLive} speed={speed} />
      <div class="columns">
        <LoopList of={head.source.split("/").at(-1) ?? ""} loops={loops} chosen={loop} />
        <div class="middle">
          {loop !== undefined && <ChosenLoop loop={loop} record={record} choices={chosen.output} />}
          <EventSection
            record={record}
            position={position}
            filter={chosen.filter ?? ""}
            show={(event) => go(indexAt(events, event.position))}
          />
        </div>
        <StateAt head={head} events={events} loops={loops} position={isSettled ? position : undefined} />
      </div>
    </div>
  );
}

type ChosenLoopProps = {
  readonly loop: Loop;
  readonly record: SessionRecord;
  readonly choices: SessionChoices["output"];
};

/** More of a loop are not marked. */
const maxFailures = 100;

/** Events say that a step failed, and lists say why. */
function useCauses(given: Loop, session: string): Loop {
  const [failed, setFailed] = useState<readonly Operation[]>([]);
  const { kind, runner, loop, position, endPosition, steps } = given;
  const failures = steps.filter(({ outcome }) => outcome === "failed").length;
  useReading(
    [session, position, endPosition, failures],
    async (signal) => {
      const ofLoop = kind === "loop" ? { runner, loop } : {};
      const options = { sessions: [session], outcomes: ["failed"], ...ofLoop, signal } as const;
      setFailed(await firstOf(reader().operations(options), maxFailures));
    },
    // Without causes no line is marked.
    () => {},
  );
  return useMemo(() => loopWithCauses(given, failed), [given, failed]);
}

/** The waterfall of a loop, and the output of the step that is chosen in it. */
function ChosenLoop({ loop: given, record: { events, loops }, choices }: ChosenLoopProps) {
  const loop = useCauses(given, events[0]?.session ?? "");
  const steps = loop.steps.length > 0 ? loop.steps : [loop];
  const step = steps.find(({ position }) => position === choices.step);
  const isOpen = step !== undefined || choices.step === allSteps;
  const select = (target: Step) => {
    const end = target.endPosition ?? target.position;
    // A step may outlast its loop: the moment stays in it.
    choose({ at: loopAt(loops, end) === given ? end : target.position, step: target.position });
  };
  return (
    <>
      <section aria-label="Waterfall">
        <h2 class="part">
          {loop.kind === "loop" ? <a href={to(loopPath(loop))}>loop {loop.loop}</a> : stepText(loop)}{" "}
          <span class="quiet-text">
            {outcomeWord(displayedOutcome(loop))}, {lengthText(loop, tick.value)}
          </span>
          {!isOpen && (
            <button
              type="button"
              class="quiet more"
              onClick={() => choose({ step: (firstFailure(steps) ?? { position: allSteps }).position })}
            >
              Show its output
            </button>
          )}
        </h2>
        <Waterfall
          steps={steps}
          from={loop.startedAt}
          to={Math.max(loop.endedAt ?? tick.value, loop.startedAt + 1)}
          now={tick.value}
          selected={step}
          select={select}
        />
      </section>
      {isOpen && <Output loop={loop} events={events} loops={loops} step={step} steps={steps} choices={choices} />}
    </>
  );
}

type OutputProps = Pick<ChosenLoopProps, "loop" | "choices"> &
  Pick<SessionRecord, "events" | "loops"> & { readonly step: Step | undefined; readonly steps: readonly Step[] };

function Output({ loop, events, loops, step, steps, choices }: OutputProps) {
  // What a loop prints comes before the next one begins; commands of Vagrant run beside each other.
  const next = loop.kind === "command" ? undefined : loops.find(({ position }) => position > loop.position);
  const log = useMemo(() => {
    const end = next === undefined ? events.length : indexAt(events, next.position);
    return outputOf(events.slice(indexAt(events, loop.position), end), loop);
  }, [events, loop.position, next?.position]);
  return (
    <LogText log={log} step={step} steps={steps} cause={step?.cause?.text ?? ""} choices={choices}>
      <button type="button" class="quiet" onClick={() => choose({ step: undefined, find: undefined })}>
        Close
      </button>
    </LogText>
  );
}

type EventSectionProps = {
  readonly record: SessionRecord;
  readonly position: string;
  readonly filter: string;
  readonly show: (event: Pick<TapedeckEvent, "position">) => void;
};

function EventSection({ record: { events, rows, since }, position, filter, show }: EventSectionProps) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [isWhole, setWhole] = useState(false);
  const matched = useMemo(() => matching(rows, filter), [rows, filter]);
  const visibleCount = matched === rows ? events.length : eventCount(matched);
  // A filter shows every line that it finds.
  const folds = !isWhole && filter.trim() === "";
  const visibleRows = useMemo(() => (folds ? foldedOutput(matched, unfolded) : matched), [matched, unfolded, folds]);
  return (
    <section aria-label="Events" class="events">
      <header>
        <h2 class="part">
          Events{" "}
          <span class="quiet-text">
            {visibleCount === events.length ? events.length : `${visibleCount} of ${events.length}`}
          </span>
        </h2>
        <label>
          <input type="checkbox" checked={isWhole} onChange={(event) => setWhole(event.currentTarget.checked)} /> all
          output
        </label>
        <input
          id="search"
          type="search"
          aria-label="Filter events"
          placeholder="kind:build.* outcome:failed words   /"
          value={filter}
          onInput={(input) => choose({ filter: input.currentTarget.value })}
        />
      </header>
      <EventList
        rows={visibleRows}
        count={visibleCount}
        since={since}
        at={position}
        choose={show}
        unfold={(row) => setUnfolded(new Set(unfolded).add(row.position))}
      />
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
            <DateTime at={started} /> ·{" "}
          </>
        )}
        {ended === undefined ? "running" : `ended: ${ended}`} · {head.upstreamVersion}
      </p>
      {!isFile() && (
        <span class="actions">
          <CopyButton text={() => location.origin + pathWith({ at: position })}>Copy link to this moment</CopyButton>
        </span>
      )}
    </header>
  );
}

/** What a session of an upstream consists of. */
const parts: ReadonlyMap<string, { readonly name: string; readonly none: string }> = new Map([
  ["vagrant", { name: "Commands", none: "none yet" }],
  ["rkt", { name: "Loops", none: "a rkt host has none" }],
]);

type LoopListProps = { readonly of: string; readonly loops: readonly Loop[]; readonly chosen: Loop | undefined };

function LoopList({ of, loops, chosen }: LoopListProps) {
  const { name, none } = parts.get(of) ?? { name: "Loops", none: "none yet" };
  const longest = Math.max(1, ...loops.map((loop) => lengthOf(loop, tick.value) ?? 0));
  return (
    <nav class={`loop-list ${of}`} aria-label={name}>
      <h2 class="part">{name}</h2>
      {loops.length === 0 && <p class="quiet-text">{none}</p>}
      <ol>
        {loops.toReversed().map((loop) => {
          const outcome = displayedOutcome(loop);
          const length = lengthOf(loop, tick.value) ?? 0;
          return (
            <li key={loop.position}>
              <a
                href={to(pathWith({ at: loop.endPosition ?? loop.position, step: undefined }))}
                aria-current={loop === chosen ? "true" : undefined}
              >
                <Sign of={outcome} />
                <span class="number" title={loop.kind === "loop" ? undefined : loop.subject}>
                  <span class="hidden">{loop.kind} </span>
                  {loop.kind === "loop" ? loop.loop : loop.subject}
                </span>
                <span class={`small-bar ${outcome}`}>
                  <span style={{ width: `${(length / longest) * 100}%` }} />
                </span>
                <span class="took">{lengthText(loop, tick.value)}</span>
              </a>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

type StateAtProps = {
  readonly head: Session;
  readonly events: readonly TapedeckEvent[];
  readonly loops: readonly Loop[];
  /** Undefined while older events are read: the states of all of them would flash by. */
  readonly position: string | undefined;
};

/** The state of then, as the API gives it. A slider that moves asks for the position where it stops, and one on the way. */
function StateAt({ head, events, loops, position }: StateAtProps) {
  const [state, setState] = useState<State>();
  const [error, setError] = useState<string>();
  const pending = useRef({ isAsking: false, target: position });
  useEffect(() => {
    const turn = pending.current;
    turn.target = position;
    if (turn.isAsking || position === undefined) return;
    turn.isAsking = true;
    void (async () => {
      for (let read = ""; turn.target !== undefined && read !== turn.target; ) {
        read = turn.target;
        try {
          setState(await reader().state(head.source, { session: head.session, at: read }));
          setError(undefined);
        } catch (error) {
          setError(errorText(error));
        }
      }
      turn.isAsking = false;
    })();
  }, [head.session, position]);
  const current = position === undefined ? undefined : events[indexAt(events, state?.at ?? position)];
  return (
    <aside class="panel" aria-label="State at this moment" data-position={state?.at ?? ""}>
      <h2 class="part">
        State{" "}
        {current !== undefined && (
          <span class="quiet-text" title={fullTimeText(timeOf(current))}>
            at {stampText(timeOf(current), serverNow())}
          </span>
        )}
      </h2>
      {error !== undefined && <p class="notice">{error}</p>}
      {state === undefined && error === undefined && <p class="quiet-text">Reading the state …</p>}
      {state !== undefined && (
        <StateSections
          sections={withUnchanged(
            stateSections(state.upstream, state.state),
            loopsAt(loops, state.at ?? state.position),
          )}
        />
      )}
    </aside>
  );
}
