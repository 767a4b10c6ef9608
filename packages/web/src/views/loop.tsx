import type { Cause } from "@tapedeck/client";
import { elapsedText, sourceText, unknownTime } from "@tapedeck/client/lanes/format";
import { causeText, failedText, placeText } from "@tapedeck/client/lanes/headline";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import { repeatsOf } from "@tapedeck/client/lanes/repeats";
import { isSame, type Loop, lengthOf, lengthText, type Step } from "@tapedeck/client/lanes/step";
import { useLayoutEffect, useState } from "preact/hooks";
import { type LoopRecord, readLoop } from "../data/read-loop.ts";
import { readSinceGood, type SinceGood } from "../data/read-since-good.ts";
import { isFile, reader } from "../data/reader.ts";
import { useReading } from "../data/reading.ts";
import { useTitle } from "../data/tab.ts";
import { tick } from "../data/tapedeck.ts";
import type { ChangedFile } from "../model/changed-files.ts";
import { commitsPath } from "../model/forge.ts";
import {
  comparePath,
  type LoopName,
  loopPath,
  loopSide,
  type OutputChoices,
  sessionPath,
  sourceDaysPath,
  sourcePath,
} from "../model/route.ts";
import { DifferenceList, sidePath, Unread } from "../parts/difference-list.tsx";
import { isForView } from "../parts/keys.tsx";
import { allSteps, LogText } from "../parts/log-text.tsx";
import { CopyButton, DateTime, displayedOutcome, ErrorNotice, Loading, outcomeWord, Sign } from "../parts/small.tsx";
import { Waterfall } from "../parts/waterfall.tsx";
import { addressHere, choose, navigate, to } from "../router.ts";
import { LabelList } from "./source-panel.tsx";
import { StateChanges } from "./state-changes.tsx";

type LoopViewProps = { readonly name: LoopName; readonly output: OutputChoices };

/** One loop as a record that can be shared: what failed first, why, what was waited for, what it printed. */
export function LoopView({ name, output }: LoopViewProps) {
  const [record, setRecord] = useState<LoopRecord | "none">();
  const [error, setError] = useState<string>();
  useReading(
    [name],
    async (signal) => {
      const found = await readLoop(name, signal);
      setRecord(found ?? "none");
      if (found === undefined || found.loop.endedAt !== undefined) return;
      // It still runs: read again with everything that happens in it.
      const kinds = ["loop.*", "*.started", "*.succeeded", "*.failed", "session.ended", "session.lost"] as const;
      for await (const _ of reader().events({ sessions: [name.session], kinds, after: "now", signal })) {
        const newer = await readLoop(name, signal);
        if (newer === undefined) return;
        setRecord(newer);
        if (newer.loop.endedAt !== undefined) return;
      }
    },
    setError,
  );
  if (error !== undefined) return <ErrorNotice text={error} />;
  if (record === undefined) return <Loading what="the loop" />;
  if (record === "none")
    return (
      <ErrorNotice
        text={`There is no loop ${name.loop} in session ${name.session}, or it is no longer kept.`}
        mayPass={false}
      />
    );
  return <LoopRecordView record={record} output={output} />;
}

function LoopRecordView({ record, output }: Pick<LoopViewProps, "output"> & { readonly record: LoopRecord }) {
  const { loop, source, labels, log, before, after } = record;
  const failure = firstFailure(loop.steps);
  const outcome = displayedOutcome(loop);
  useTitle(`${sourceText(source)} loop ${loop.loop}: ${outcomeWord(outcome)}`);
  useLoopKeys(before, after);
  const chosen = loop.steps.find(({ position }) => position === output.step);
  const step = output.step === allSteps ? undefined : (chosen ?? failure);
  const cause = loop.cause ?? failure?.cause;
  const isFailed = outcome === "failed" || failure !== undefined;
  const end = loop.endedAt ?? tick.value;
  const elapsed = lengthOf(loop, tick.value);
  const printed = <LogText log={log} step={step} steps={loop.steps} cause={cause?.text ?? ""} choices={output} />;
  return (
    <div class="loop">
      <header class="title">
        <h1>
          <a href={to(sourcePath(sourceText(source)))}>{sourceText(source)}</a> <span>· loop {loop.loop}</span>
        </h1>
        <p>
          <Sign of={outcome} label="" />{" "}
          {outcome === "running"
            ? `runs for ${elapsed === undefined ? unknownTime : elapsedText(elapsed)}`
            : `${titleWords[outcome]} ${outcome === "unknown" ? "" : lengthText(loop, end)}`}
          <span class="quiet-text">
            {" · "}
            <DateTime at={loop.startedAt} />
          </span>
        </p>
        <Actions loop={loop} source={source} before={before} after={after} />
      </header>
      <LabelList labels={labels} />
      {isFailed && <Failure loop={loop} failure={failure} cause={cause} />}
      {isFailed && printed}
      {isFailed && <Differences loop={loop} labels={labels} />}
      <section aria-label="Waterfall">
        <h2 class="part">
          Waterfall <span class="quiet-text">underlined: what the loop waited for</span>
        </h2>
        {loop.steps.length === 0 ? (
          <p class="quiet-text">Nothing was built, tested or deployed in this loop.</p>
        ) : (
          <Waterfall
            steps={loop.steps}
            from={loop.startedAt}
            to={Math.max(end, loop.startedAt + 1)}
            now={tick.value}
            selected={step}
            select={({ position }) => choose({ step: position })}
          />
        )}
      </section>
      <StateChanges source={source} loop={loop} />
      {!isFailed && printed}
    </div>
  );
}

type ActionsProps = Pick<LoopRecord, "loop" | "source" | "before" | "after">;

function Actions({ loop, source, before, after }: ActionsProps) {
  return (
    <span class="actions">
      {!isFile() && <a href={sourceDaysPath(source)}>All sessions</a>}
      {before && (
        <a href={to(loopPath(before))} title="previous loop ([)">
          ← loop {before.loop}
        </a>
      )}
      {after && (
        <a href={to(loopPath(after))} title="next loop (])">
          loop {after.loop} →
        </a>
      )}
      <a href={to(sessionPath(loop.session, loop.endPosition ?? loop.position))}>In its session</a>
      {!isFile() && <CopyButton text={addressHere}>Copy link</CopyButton>}
    </span>
  );
}

type FailureProps = {
  readonly loop: Loop;
  readonly failure: Step | undefined;
  readonly cause: Cause | null | undefined;
};

/** What failed first and why. The output around it stands below. */
function Failure({ loop, failure, cause }: FailureProps) {
  const code = failure?.errorCode || loop.errorCode;
  const place = placeText(cause);
  return (
    <section class="failure" aria-label="What failed first">
      <h2>
        <span aria-hidden="true">✕</span> {failure === undefined ? "loop" : failedText(loop.steps, failure)}:{" "}
        {causeText({ cause: cause ?? null })}
      </h2>
      <p>
        {cause != null && <b>{cause.reason}</b>}
        {place !== "" && (
          <>
            {" "}
            in <code>{place}</code>
          </>
        )}{" "}
        <code>{code}</code>
      </p>
      {cause?.advice != null && (
        <p>
          <b>Suggestion:</b> {cause.advice}
        </p>
      )}
      {loop.outcome === "succeeded" && <p class="quiet-text">The loop went on after it, and ended well.</p>}
      <Followed loop={loop} failure={failure} />
    </section>
  );
}

const titleWords = {
  succeeded: "ready after",
  failed: "failed after",
  canceled: "canceled after",
  unknown: "not seen to end",
  running: "",
};

/** Steps that failed after the first failure are named once and small: they are no cause. */
function Followed({ loop, failure }: { readonly loop: Loop; readonly failure: Step | undefined }) {
  const isOther = (step: Step) => failure === undefined || !isSame(step, failure);
  const later = loop.steps.filter((step) => step.outcome === "failed" && isOther(step));
  if (later.length === 0) return null;
  return (
    <p class="quiet-text">
      Then failed, too:{" "}
      {repeatsOf(later)
        .map(({ text }) => text)
        .join(", ")}
    </p>
  );
}

function useLoopKeys(before: LoopName | undefined, after: LoopName | undefined): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!isForView(event)) return;
      const to = event.key === "[" ? before : event.key === "]" ? after : undefined;
      if (to !== undefined) navigate(loopPath(to));
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [before, after]);
}

type DifferencesProps = Pick<LoopRecord, "loop" | "labels">;

/** What changed since the last good loop, which may be of an earlier session: possible explanations of the failure. */
function Differences({ loop, labels }: DifferencesProps) {
  const [read, setRead] = useState<SinceGood>();
  const [error, setError] = useState<string>();
  useReading([loop.position, loop.endPosition], async (signal) => setRead(await readSinceGood(loop, signal)), setError);
  if (error !== undefined) return <p class="notice">What differs could not be read. {error}</p>;
  if (read === undefined) return <p class="quiet-text">Reading what changed since the last good loop …</p>;
  const { comparison, files } = read;
  const { left, right } = comparison;
  if (right === null)
    return <p class="quiet-text">No loop before it was good, so there is nothing to compare it with.</p>;
  // That it failed, and how, stands above.
  const differences = comparison.differences.filter(({ kind }) => kind !== "failure" && kind !== "file");
  const commit = differences.find(({ kind, subject }) => kind === "label" && subject === "commit");
  const commits = commit && commitsPath(labels, commit.right ?? "", commit.left ?? "");
  return (
    <section class="differences" aria-label="What differs from the last good loop">
      <h2 class="part">
        What changed since <a href={to(sidePath(right))}>{right.name}</a>, the last good one{" "}
        {!isFile() && (
          <a class="more" href={comparePath(loopSide(left), loopSide(right))}>
            Compare them
          </a>
        )}
      </h2>
      <ChangedFiles files={files} />
      {commits !== undefined && (
        <p>
          <a href={commits} target="_blank" rel="noreferrer">
            The commits between them
          </a>
        </p>
      )}
      <DifferenceList
        differences={differences}
        max={maxDifferences}
        names={[left.name, right.name]}
        nothing={files.length > 0 ? "No label, version or setting changed." : "Nothing else that differs is recorded."}
      />
      <Unread sides={[left, right]} />
    </section>
  );
}

const maxDifferences = 5;
const maxFiles = 20;

function ChangedFiles({ files }: { readonly files: readonly ChangedFile[] }) {
  if (files.length === 0) return null;
  return (
    <p class="changed-files">
      {files.slice(0, maxFiles).map(({ path, change }) => (
        <span key={path}>
          <code>{path}</code> <span class="quiet-text">{change}</span>
        </span>
      ))}
      {files.length > maxFiles && <span class="quiet-text">and {files.length - maxFiles} more</span>}
    </p>
  );
}
