import type { ComparedFailure, ComparedSide, Comparison, SameFact, Source } from "@tapedeck/client";
import { dateTimeText, durationText, millis, plural, sourceText } from "@tapedeck/client/lanes/format";
import { causeText } from "@tapedeck/client/lanes/headline";
import { loopOfOperation } from "@tapedeck/client/lanes/step";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { readChoices, readSources, type SideChoices, sideNames } from "../data/read-sides.ts";
import { useReading } from "../data/reading.ts";
import { useTitle } from "../data/tab.ts";
import { about, lostSince, tapedeck, tick } from "../data/tapedeck.ts";
import "../look/compare.css";
import { nothingRecorded } from "../model/own.ts";
import { comparePath, exactSide, loopSide } from "../model/route.ts";
import { DifferenceList, sidePath, Unread } from "../parts/difference-list.tsx";
import { CopyButton, DateTime, displayedOutcome, outcomeWord, Sign } from "../parts/small.tsx";
import { addressHere, navigate } from "../router.ts";
import { WhoFails } from "./compare-start.tsx";

type Sides = { readonly left: string | undefined; readonly right: string | undefined };

/**
 * Why does it work for her and not for me? Two loops, sessions or sources, and what differs, the most informative
 * first.
 */
export function CompareView({ left, right }: Sides) {
  const [sources, setSources] = useState<readonly Source[]>();
  const [comparison, setComparison] = useState<Comparison>();
  const [error, setError] = useState<string>();
  useTitle("Compare");
  useReading([], async (signal) => setSources(await readSources(signal)), setError);
  useReading(
    [left, right],
    async (signal) => {
      setError(undefined);
      if (left === undefined) return setComparison(undefined);
      setComparison(await tapedeck().compare(left, { ...(right !== undefined && { right }), signal }));
      lostSince.value = undefined;
    },
    (text) => {
      setComparison(undefined);
      setError(text);
    },
  );
  const none = nothingRecorded(about.value?.token);
  const isOneSource = comparison?.right != null && comparison.left.source === comparison.right.source;
  return (
    <div class="compare">
      <Title left={left} right={right} />
      {left === undefined && <WhoFails />}
      <div class="sides">
        <Side
          which="left"
          named={left}
          sources={sources ?? []}
          side={comparison?.left}
          choose={(side) => navigate(comparePath(side, right))}
        />
        <Side
          which="right"
          named={right}
          sources={sources ?? []}
          side={comparison?.right ?? undefined}
          hasDefault={isOneSource}
          choose={(side) => navigate(comparePath(left, side))}
        />
      </div>
      {error !== undefined && (
        <p class="notice" role="alert">
          <Sign of="failed" label="problem" /> {error}
        </p>
      )}
      {left === undefined && sources?.length === 0 && (
        <p class="empty">
          {none.title}, so there is nothing to compare. {none.reason} <a href="/">How to record</a>
        </p>
      )}
      {left === undefined && sources?.length !== 0 && (
        <p class="empty">
          Choose a source on the left. Its newest loop is compared with the last good one before it, or with what you
          choose on the right.
        </p>
      )}
      {left !== undefined && comparison === undefined && error === undefined && (
        <p class="empty">Reading both sides …</p>
      )}
      {comparison !== undefined && <Differences comparison={comparison} />}
    </div>
  );
}

function Title({ left, right }: Sides) {
  return (
    <header class="title">
      <h1>Compare</h1>
      <span class="actions">
        {left !== undefined && right !== undefined && (
          <button type="button" class="quiet" onClick={() => navigate(comparePath(right, left))}>
            Swap sides
          </button>
        )}
        {left !== undefined && <CopyButton text={addressHere}>Copy link</CopyButton>}
      </span>
    </header>
  );
}

function Differences({ comparison }: { readonly comparison: Comparison }) {
  const { left, right, differences, equal, same, omitted } = comparison;
  if (right === null && differences.length === 0)
    return <p class="empty">No loop before it was good, so there is nothing to compare it with.</p>;
  return (
    <section class="differences" aria-label="What differs">
      <h2 class="part">
        What differs <span class="quiet-text">what explains most first</span>
      </h2>
      <DifferenceList differences={differences} names={[left.name, right?.name ?? "nothing"]} />
      {omitted > 0 && <p class="quiet-text">and {plural(omitted, "other")}, which explain the least</p>}
      <Unread sides={[left, right]} />
      {equal === 0 ? <p class="quiet-text">nothing is equal</p> : <Same count={equal} same={same} />}
    </section>
  );
}

/** Equal values need no reading, but may be doubted. */
function Same({ count, same }: { readonly count: number; readonly same: readonly SameFact[] }) {
  return (
    <details class="same">
      <summary>{count} equal</summary>
      <ul>
        {same.map(({ kind, subject, value }) => (
          <li key={`${kind} ${subject} ${value}`}>
            <span class="quiet-text">{kind}</span> <span>{subject === kind ? "" : subject}</span> <span>{value}</span>
          </li>
        ))}
      </ul>
      {count > same.length && <p class="quiet-text">and {plural(count - same.length, "other")}</p>}
    </details>
  );
}

type SideProps = {
  readonly which: "left" | "right";
  /** The side as in the URL. */
  readonly named: string | undefined;
  readonly sources: readonly Source[];
  /** The side that the name resolved to. */
  readonly side: ComparedSide | undefined;
  /** Whether it may be left to what is on the other side. */
  readonly hasDefault?: boolean;
  readonly choose: (side: string | undefined) => void;
};

function Side({ which, named, sources, side, hasDefault = false, choose }: SideProps) {
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
                {dateTimeText(millis(startedAt) ?? 0, tick.value)}
              </option>
            ))}
          </select>
        )}
      </p>
      {!isDefault && choices !== undefined && <LoopStrip choices={choices} side={side} choose={choose} which={which} />}
      {side !== undefined && (
        <SideHead side={side}>
          <Pin
            which={which}
            isPinned={named === exactSide(side)}
            set={(isPinned) =>
              choose(isPinned ? exactSide(side) : hasDefault ? undefined : (names[chosen] ?? side.source))
            }
          />
        </SideHead>
      )}
    </section>
  );
}

type PinProps = {
  readonly which: string;
  readonly isPinned: boolean;
  readonly set: (isPinned: boolean) => void;
};

/** The URL names what is pinned by itself, so that nothing that is chosen or comes later replaces it. */
function Pin({ which, isPinned, set }: PinProps) {
  const title = isPinned
    ? "Follow what is newest again"
    : "Keep this one while another is chosen on the other side, and when newer ones come";
  const label = `${isPinned ? "Unpin" : "Pin"} the ${which} side`;
  return (
    <button type="button" class="quiet" title={title} aria-label={label} onClick={() => set(!isPinned)}>
      {isPinned ? "Unpin" : "Pin"}
    </button>
  );
}

type StripProps = Pick<SideProps, "side" | "choose" | "which"> & { readonly choices: SideChoices };

function LoopStrip({ choices, side, choose, which }: StripProps) {
  return (
    <span class="loop-strip">
      {choices.loops.map(loopOfOperation).map((loop) => {
        const displayed = displayedOutcome(loop);
        const label = `loop ${loop.loop}: ${outcomeWord(displayed)}, ${dateTimeText(loop.startedAt, tick.value)}, on the ${which}`;
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
            <Sign of={displayed} label={label} />
          </button>
        );
      })}
    </span>
  );
}

/** "sync web (4 tries)" */
function failedStep({ phase, subject, tries }: ComparedFailure): string {
  return [phase, subject, tries > 1 ? `(${tries} tries)` : ""].filter((part) => part !== "").join(" ");
}

type HeadProps = { readonly side: ComparedSide; readonly children: ComponentChildren };

function SideHead({ side, children }: HeadProps) {
  const { source, unit, loop, subject, session, outcome, startedAt, durationMs, failure } = side;
  const ended = millis(side.endedAt);
  const displayed = displayedOutcome({
    outcome: outcome ?? undefined,
    endedAt: outcome === null ? undefined : (ended ?? 0),
  });
  const what = unit === "loop" ? `loop ${loop}` : unit === "command" ? subject : `session ${session}`;
  return (
    <>
      <h2>
        <Sign of={displayed} label="" /> {sourceText(source)} <a href={sidePath(side)}>{what}</a>
      </h2>
      <p class="quiet-text">
        {outcomeWord(displayed)}
        {durationMs !== null && ` after ${durationText(durationMs)}`}
        {startedAt !== null && (
          <>
            {" · "}
            <DateTime at={millis(startedAt) ?? 0} />
          </>
        )}{" "}
        {children}
      </p>
      {failure !== null && (
        <p class="failed">
          <span class="cause" title={failure.error}>
            {failedStep(failure)}: {causeText(failure)}
          </span>
          {failure.cause !== null && <span class="quiet-text">({failure.cause.reason})</span>}
        </p>
      )}
    </>
  );
}
