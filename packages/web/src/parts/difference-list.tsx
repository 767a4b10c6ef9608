import type { ComparedSide, Difference } from "@tapedeck/client";
import "../look/compare.css";
import { foldedDifferences } from "../model/differences.ts";
import { loopPath, sessionPath } from "../model/route.ts";
import { to } from "../router.ts";

/** Where a side is shown by itself. */
export function sidePath(side: ComparedSide): string {
  return side.unit === "loop" ? loopPath(side) : sessionPath(side.session, side.position);
}

/** What a comparison did not read of its sides. */
export function Unread({ sides }: { readonly sides: readonly (ComparedSide | null)[] }) {
  return sides.map((side) =>
    side?.unread.map((sentence) => (
      <p key={`${side.name} ${sentence}`} class="quiet-text">
        Of {side.name}: {sentence}
      </p>
    )),
  );
}

type Props = {
  readonly differences: readonly Difference[];
  /** These stand beside the values of the sides. */
  readonly names: readonly [left: string, right: string];
  /** The text shown when there are none. */
  readonly nothing?: string;
  /** In short: so many are shown with their values, and settings of one side are a line. */
  readonly max?: number;
};

/** Differences in their rank, the values of both sides beside each other, each with where it was recorded. */
export function DifferenceList(props: Props) {
  const { differences, names, nothing = "Nothing that differs is recorded.", max } = props;
  if (differences.length === 0) return <p class="quiet-text">{nothing}</p>;
  const { valued, oneSided } =
    max === undefined ? { valued: differences, oneSided: [] } : foldedDifferences(differences);
  const shown = valued.slice(0, max);
  return (
    <>
      {shown.length > 0 && (
        <ol class="difference-list">
          {shown.map((difference) => (
            <li key={`${difference.kind} ${difference.subject}`}>
              <p class="what">
                <b>{titleOf(difference)}</b>{" "}
                {titleOf(difference) !== difference.kind && <span class="quiet-text">{difference.kind}</span>}
              </p>
              <Value difference={difference} side="left" name={names[0]} />
              <Value difference={difference} side="right" name={names[1]} />
            </li>
          ))}
        </ol>
      )}
      {oneSided.map(({ side, kind, names: settings }) => (
        <p key={`${side} ${kind}`} class="one-sided quiet-text">
          {settings.length} {oneSidedWords.get(kind) ?? kind} recorded for {side === "left" ? names[0] : names[1]}{" "}
          alone: {settings.join(", ")}
        </p>
      ))}
    </>
  );
}

const oneSidedWords: ReadonlyMap<string, string> = new Map([
  ["configuration", "settings"],
  ["label", "labels"],
  ["version", "versions"],
]);

function titleOf({ kind, subject, text, left, right }: Difference): string {
  // The sentence has the texts of the failures, which stand below as values.
  if (kind === "failure")
    return left === null || right === null ? `${subject} failed` : "Both failed, in different ways";
  return isNamed.has(kind) ? subject : text;
}

/** The values of all these kinds are complete, and they stand below. */
const isNamed: ReadonlySet<string> = new Set([
  "label",
  "configuration",
  "version",
  "command",
  "port",
  "debugger",
  "resource",
]);

type ValueProps = { readonly difference: Difference; readonly side: "left" | "right"; readonly name: string };

function Value({ difference, side, name }: ValueProps) {
  const value = difference[side];
  const own = difference.evidence.filter((one) => one.side === side);
  const [first, ...others] = own;
  const evidence = first && to(sessionPath(first.session, first.position));
  return (
    <p class={`value ${side}`}>
      <span class="name quiet-text">{name}</span>{" "}
      <span class={value === null ? "is quiet-text" : "is"}>
        {value ?? (difference.kind === "failure" ? "did not fail" : "absent")}
      </span>{" "}
      {evidence !== undefined && (
        <a href={evidence} aria-label={`Evidence in ${name}: ${difference.subject}`}>
          evidence
        </a>
      )}
      {others.slice(0, maxLines).map(({ session, position, text }) => (
        <a key={`${position} ${text}`} class="line" href={to(sessionPath(session, position))}>
          {text}
        </a>
      ))}
    </p>
  );
}

const maxLines = 5;
