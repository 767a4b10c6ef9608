import { dateTimeText } from "@tapedeck/client/lanes/format";
import { barOf, failedLoop, headlineOf } from "@tapedeck/client/lanes/headline";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import { currentLoop, groupOf, type Lane, lastEnded } from "@tapedeck/client/lanes/now";
import { type Loop, lengthText, stepText } from "@tapedeck/client/lanes/step";
import { useMemo, useRef } from "preact/hooks";
import { tick } from "../data/tapedeck.ts";
import { comparePath, loopPath, sessionPath, sourcePath } from "../model/route.ts";
import { useIsSeen } from "../parts/seen.ts";
import { displayedOutcome, outcomeWord, Sign } from "../parts/small.tsx";
import { navigate } from "../router.ts";

export type NowRowProps = {
  readonly row: Lane;
  readonly isChosen: boolean;
  /** Called while the pointer is on the row. */
  readonly hold: (isHeld: boolean) => void;
};

const maxLoops = 10;

/** A row that is the same is not drawn again because another one changes. */
export function NowRow({ row, isChosen, hold }: NowRowProps) {
  const held = useRef(hold);
  held.current = hold;
  return useMemo(
    () => <Drawn row={row} isChosen={isChosen} hold={(isHeld) => held.current(isHeld)} />,
    [row, isChosen],
  );
}

function Drawn({ row, isChosen, hold }: NowRowProps) {
  const box = useRef<HTMLElement>(null);
  // A row that is not visible does not age.
  const time = useIsSeen(box) ? tick.value : tick.peek();
  const headline = headlineOf(row, time);
  const current = currentLoop(row);
  // Its colour is that of what it is, also while it waits to move to where it belongs.
  const group = groupOf(row, time);
  const failed = group === "failing" ? failedLoop(row) : undefined;
  const path = sourcePath(sourceName(row));
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the link inside takes the keyboard
    <article
      ref={box}
      class={`row in-${group} ${isChosen ? "chosen" : ""}`}
      onPointerEnter={() => hold(true)}
      onPointerLeave={() => hold(false)}
      onClick={(click) => {
        if (click.target instanceof Element && click.target.closest("a, button") === null) navigate(path);
      }}
    >
      <a class="source" href={path} aria-current={isChosen ? "true" : undefined}>
        {row.name}
      </a>
      <p class="says">
        <Sign of={headline.sign} /> {headline.step !== "" && <b>{headline.step}</b>}{" "}
        <span class="what" title={headline.text}>
          {headline.text}
        </span>
        {headline.note !== "" && <span class="note">{headline.note}</span>}
      </p>
      <Labels labels={row.labels} />
      {failed === undefined ? (
        <Ports row={row} />
      ) : (
        <a class="why" href={whyPath(failed)} title={`Why did ${row.name} fail?`}>
          Why? <span aria-hidden="true">→</span>
        </a>
      )}
      <LoopBar row={row} time={time} loop={current?.endedAt === undefined ? current : (failed ?? lastEnded(row))} />
      <Strip loops={row.loops} />
    </article>
  );
}

/** The name is enough unless two tools of one project have it. */
function sourceName({ name, upstream }: Lane): string {
  return `${name}/${upstream}`;
}

export function pathOf(loop: Loop): string {
  return loop.kind === "loop" ? loopPath(loop) : sessionPath(loop.session, loop.endPosition ?? loop.position);
}

/** Where it is explained: a loop's own view, a command beside its last good one, and a round where its failure is. */
function whyPath(failed: Loop): string {
  if (failed.kind === "loop") return loopPath(failed);
  if (failed.kind === "command") return comparePath(`${failed.session}@${failed.endPosition ?? failed.position}`);
  return sessionPath(failed.session, firstFailure(failed.steps)?.endPosition ?? failed.position);
}

function Labels({ labels }: Pick<Lane, "labels">) {
  const { branch, commit } = labels;
  if (branch === undefined) return <span class="labels" />;
  const text = commit === undefined ? branch : `${branch}@${commit.slice(0, 7)}`;
  return (
    <span class="labels" title={text}>
      {text}
    </span>
  );
}

function Ports({ row }: { readonly row: Lane }) {
  return (
    <span class="ports">
      {row.ports.slice(0, 1).map(({ local, resource }) => (
        <a key={local} href={`http://localhost:${local}`} target="_blank" rel="noreferrer" title={resource}>
          localhost:{local}
        </a>
      ))}
      {row.ports.length > 1 && <span class="quiet-text">+{row.ports.length - 1}</span>}
    </span>
  );
}

/** The mark of the usual time would stand in the text behind the bar. */
const isBeside = (end: number, usual: number) => usual >= end && usual - end < 12;

type LoopBarProps = { readonly row: Lane; readonly loop: Loop | undefined; readonly time: number };

function LoopBar({ row, loop, time }: LoopBarProps) {
  if (loop === undefined) return null;
  const { pieces, usual } = barOf(row, loop, time);
  const end = Math.max(0, ...pieces.map(({ left, width }) => left + width));
  return (
    <span class="bar" aria-hidden="true">
      {usual !== undefined && <span class="usual" title="the usual time" style={{ left: `${usual}%` }} />}
      {pieces.map(({ left, width, step, label }) => (
        <span
          key={step.position}
          class={`piece ${displayedOutcome(step)}`}
          title={`${stepText(step)} · ${lengthText(step, time)}`}
          style={{ left: `${left}%`, width: `max(${width}%, 3px)` }}
        >
          {label}
        </span>
      ))}
      {loop.endedAt !== undefined && (
        <span class="took" style={{ left: `${usual !== undefined && isBeside(end, usual) ? usual : end}%` }}>
          {lengthText(loop, time)}
        </span>
      )}
    </span>
  );
}

/** The last loops, newest right. */
function Strip({ loops }: { readonly loops: readonly Loop[] }) {
  // "today" in a label is right for long enough: it is made again with the next loop.
  const now = tick.peek();
  return useMemo(() => stripOf(loops.slice(-maxLoops), now), [loops]);
}

function stripOf(loops: readonly Loop[], now: number) {
  if (loops.length === 0) return null;
  return (
    <span class="strip">
      {loops.map((loop) => {
        const outcome = displayedOutcome(loop);
        const name = loop.kind === "loop" ? `loop ${loop.loop}` : stepText(loop);
        const took = lengthText(loop, now);
        const label = `${name}: ${outcomeWord(outcome)}, ${took}, ${dateTimeText(loop.startedAt, now)}`;
        return (
          <a key={loop.position} href={pathOf(loop)} title={label}>
            <Sign of={outcome} label={label} />
          </a>
        );
      })}
    </span>
  );
}
