import type { ComparedSide, Comparison, Source } from "@tapedeck/client";
import { durationText, millis, momentText, sourceText } from "@tapedeck/client/lanes/format";
import { loopOfOperation } from "@tapedeck/client/lanes/step";
import { useEffect, useState } from "preact/hooks";
import { readChoices, readSources, type SideChoices, sideNames } from "../data/read-sides.ts";
import { useReading } from "../data/reading.ts";
import { lostSince, tapedeck, tick } from "../data/tapedeck.ts";
import "../look/compare.css";
import { comparePath, loopSide } from "../model/route.ts";
import { DifferenceList, sidePath } from "../parts/difference-list.tsx";
import { CopyButton, outcomeWord, Sign, shownOutcome } from "../parts/small.tsx";
import { navigate } from "../router.ts";

type Sides = { readonly left: string | undefined; readonly right: string | undefined };

/** Why does it work for her and not for me? Two loops, sessions or sources, and what differs, most telling first. */
export function CompareView({ left, right }: Sides) {
  const [sources, setSources] = useState<readonly Source[]>([]);
  const [comparison, setComparison] = useState<Comparison>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    document.title = "Compare · Tapedeck";
  }, []);
  useReading([], async (signal) => setSources(await readSources(signal)), setProblem);
  useReading(
    [left, right],
    async (signal) => {
      setProblem(undefined);
      if (left === undefined) return setComparison(undefined);
      setComparison(await tapedeck().compare(left, { ...(right !== undefined && { right }), signal }));
      lostSince.value = undefined;
    },
    (text) => {
      setComparison(undefined);
      setProblem(text);
    },
  );
  return (
    <div class="compare">
      <header class="title">
        <h1>Compare</h1>
        <span class="actions">
          {left !== undefined && right !== undefined && (
            <button type="button" class="quiet" onClick={() => navigate(comparePath(right, left))}>
              Swap sides
            </button>
          )}
          {left !== undefined && <CopyButton text={() => location.href}>Copy link</CopyButton>}
        </span>
      </header>
      <div class="sides">
        <Side
          which="left"
          named={left}
          sources={sources}
          side={comparison?.left}
          choose={(side) => navigate(comparePath(side, right))}
        />
        <Side
          which="right"
          named={right}
          sources={sources}
          side={comparison?.right ?? undefined}
          choose={(side) => navigate(comparePath(left, side))}
        />
      </div>
      {problem !== undefined && (
        <p class="notice" role="alert">
          {problem}
        </p>
      )}
      {left === undefined && (
        <p class="empty">Choose what to compare on the left. Without a right side it is the last good loop before.</p>
      )}
      {left !== undefined && comparison === undefined && problem === undefined && (
        <p class="empty">Reading both sides …</p>
      )}
      {comparison !== undefined && <Differences comparison={comparison} />}
    </div>
  );
}

function Differences({ comparison: { left, right, differences, equal } }: { readonly comparison: Comparison }) {
  if (right === null && differences.length === 0)
    return <p class="empty">No loop before it was good, so there is nothing to compare it with.</p>;
  return (
    <section class="differences" aria-label="What differs">
      <h2 class="part">
        What differs <span class="quiet-text">what explains most first</span>
      </h2>
      <DifferenceList differences={differences} names={[left.name, right?.name ?? "nothing"]} />
      <p class="quiet-text">{equal} equal</p>
    </section>
  );
}

type SideProps = {
  readonly which: "left" | "right";
  /** As the URL has it. */
  readonly named: string | undefined;
  readonly sources: readonly Source[];
  /** What it turned out to be. */
  readonly side: ComparedSide | undefined;
  readonly choose: (side: string | undefined) => void;
};

function Side({ which, named, sources, side, choose }: SideProps) {
  const names = sideNames(sources);
  const chosen = sources.findIndex(({ source }, at) => source === side?.source || names[at] === named);
  const source = sources[chosen]?.source;
  const [choices, setChoices] = useState<SideChoices>();
  useReading(
    [source],
    async (signal) => setChoices(source === undefined ? undefined : await readChoices(source, signal)),
    () => setChoices(undefined),
  );
  const isDefault = which === "right" && named === undefined;
  return (
    <section class="side" aria-label={which === "left" ? "Left side" : "Right side"}>
      <p class="choice">
        <select
          aria-label={`Source on the ${which}`}
          onChange={({ currentTarget: { value } }) => choose(value || undefined)}
        >
          <option value="" selected={isDefault || chosen < 0}>
            {which === "left" ? "a source …" : "the last good loop before"}
          </option>
          {names.map((name, at) => (
            <option key={name} value={name} selected={!isDefault && at === chosen}>
              {name}
            </option>
          ))}
        </select>{" "}
        {!isDefault && choices !== undefined && (
          <select aria-label={`Session on the ${which}`} onChange={({ currentTarget: { value } }) => choose(value)}>
            <option value={names[chosen]} selected={named === names[chosen]}>
              its newest loop
            </option>
            {choices.sessions.map(({ session, startedAt }) => (
              <option key={session} value={session} selected={named?.startsWith(session) === true}>
                session of {momentText(millis(startedAt) ?? 0, tick.value)}
              </option>
            ))}
          </select>
        )}
      </p>
      {!isDefault && choices !== undefined && <LoopStrip choices={choices} side={side} choose={choose} which={which} />}
      {side !== undefined && <SideHead side={side} />}
    </section>
  );
}

type StripProps = Pick<SideProps, "side" | "choose" | "which"> & { readonly choices: SideChoices };

function LoopStrip({ choices, side, choose, which }: StripProps) {
  return (
    <span class="loop-strip">
      {choices.loops.map(loopOfOperation).map((loop) => {
        const shown = shownOutcome(loop);
        const label = `loop ${loop.loop}: ${outcomeWord(shown)}, ${momentText(loop.startedAt, tick.value)}, on the ${which}`;
        const isChosen = side !== undefined && side.unit === "loop" && loopSide(side) === loopSide(loop);
        return (
          <button
            key={loop.position}
            type="button"
            class="quiet"
            aria-pressed={isChosen}
            title={label}
            onClick={() => choose(loopSide(loop))}
          >
            <Sign of={shown} label={label} />
          </button>
        );
      })}
    </span>
  );
}

function SideHead({ side }: { readonly side: ComparedSide }) {
  const { source, unit, loop, subject, session, outcome, startedAt, durationMs, failure } = side;
  const ended = millis(side.endedAt);
  const shown = shownOutcome({ outcome: outcome ?? undefined, endedAt: outcome === null ? undefined : (ended ?? 0) });
  const what = unit === "loop" ? `loop ${loop}` : unit === "command" ? subject : `session ${session}`;
  return (
    <>
      <h2>
        <Sign of={shown} label="" /> {sourceText(source)} <a href={sidePath(side)}>{what}</a>
      </h2>
      <p class="quiet-text">
        {outcomeWord(shown)}
        {durationMs !== null && ` after ${durationText(Number(durationMs))}`}
        {startedAt !== null && ` · ${momentText(millis(startedAt) ?? 0, tick.value)}`}
      </p>
      {failure !== null && (
        <p class="failed">
          {[failure.phase, failure.subject].filter((part) => part !== "").join(" ")}: {failure.error || "failed"}
          {failure.reason !== "" && <span class="quiet-text"> ({failure.reason})</span>}
        </p>
      )}
    </>
  );
}
