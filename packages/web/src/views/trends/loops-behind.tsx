import { dateTimeText, durationText, plural, sourceText } from "@tapedeck/client/lanes/format";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Behind, readBehind } from "../../data/read-trends.ts";
import { useReading } from "../../data/reading.ts";
import { tick } from "../../data/tapedeck.ts";
import { sessionPath } from "../../model/route.ts";
import { type Bin, binsBetween, binText } from "../../model/trends/bins.ts";
import { type Choice, type Pick, trendsPath } from "../../model/trends/choice.ts";
import { type Causes, causeText, commandText, restKey } from "../../model/trends/figures.ts";
import { Sign } from "../../parts/small.tsx";

export type LoopsBehindProps = {
  readonly choice: Choice;
  readonly pick: Pick;
  readonly bins: readonly Bin[];
  readonly causes: Causes;
};

const max = 100;

const whats: Readonly<Record<Pick["chart"], { readonly title: string; readonly took: string }>> = {
  sides: { title: "Loops of", took: "wait" },
  wait: { title: "Loops that became ready", took: "wait" },
  waits: { title: "Loops that waited for", took: "waited" },
  green: { title: "Loops that turned a source red", took: "until green" },
  overtaken: { title: "Overtaken loops", took: "wait" },
  failures: { title: "Failures", took: "" },
  slow: { title: "Loops that built", took: "build" },
  flaky: { title: "Loops in which it flaked", took: "" },
  commands: { title: "Runs of", took: "took" },
};

/** The loops or commands behind what is selected in a chart, each a link. */
export function LoopsBehind({ choice, pick, bins, causes }: LoopsBehindProps) {
  const [found, setFound] = useState<readonly Behind[]>();
  const [error, setError] = useState<string>();
  const section = useRef<HTMLElement>(null);
  useReading(
    [JSON.stringify(pick), bins, causes],
    async (signal) => {
      setError(undefined);
      setFound(undefined);
      setFound(await readBehind(choice, bins, pick, causes, signal));
    },
    setError,
  );
  useEffect(() => {
    // Beside the charts it is seen already, and what was clicked must not move away.
    const top = section.current?.getBoundingClientRect().top ?? 0;
    if (top < 0 || top > innerHeight / 2) section.current?.scrollIntoView({ block: "nearest" });
  }, [found, error]);
  const { title, took } = whats[pick.chart];
  const { pick: _, ...unpicked } = choice;
  return (
    <section class="behind" ref={section} aria-label="Loops behind it" aria-live="polite">
      <header>
        <h2>
          {[title, ofText(pick, causes)].filter((part) => part !== "").join(" ")}{" "}
          <span class="quiet-text">
            {timeText(pick, bins, choice)}
            {found !== undefined && found.length > max && `, ${max} of ${found.length}`}
          </span>
        </h2>
        <a class="close" href={trendsPath(unpicked)} aria-label="Close the list">
          ×
        </a>
      </header>
      {error !== undefined && <p class="notice">{error}</p>}
      {error === undefined && found === undefined && <p class="quiet-text">Reading …</p>}
      {error === undefined && found?.length === 0 && <p class="quiet-text">None in this time.</p>}
      {found !== undefined && found.length > 0 && <BehindTable found={found} took={took} chart={pick.chart} />}
    </section>
  );
}

type BehindTableProps = {
  readonly found: readonly Behind[];
  /** Title of the column of durations; empty without one. */
  readonly took: string;
  readonly chart: Pick["chart"];
};

function BehindTable({ found, took, chart }: BehindTableProps) {
  return (
    <div class="scrolls">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">{chart === "commands" ? "command" : "loop"}</th>
            <th scope="col">when</th>
            {took !== "" && (
              <th scope="col" class="number">
                {took}
              </th>
            )}
            <th scope="col">
              <span class="hidden">what happened</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {found.slice(0, max).map((one) => (
            <BehindLine key={`${one.loop} ${one.at} ${one.text}`} one={one} hasTook={took !== ""} chart={chart} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function BehindLine({
  one,
  hasTook,
  chart,
}: {
  readonly one: Behind;
  readonly hasTook: boolean;
  readonly chart: string;
}) {
  const { loop, position, source, at, ms, isFailed, isOvertaken, isStillRed, text } = one;
  const [session = "", runner, number = "0"] = loop.split(".");
  const isLoop = runner !== "0" || number !== "0";
  return (
    <tr>
      <th scope="row">
        <Sign of={isFailed ? "failed" : "succeeded"} />{" "}
        <a href={isLoop ? `/loops/${loop}` : sessionPath(session, position)}>
          {sourceText(source)} · {isLoop ? `loop ${number}` : "its session"}
        </a>
      </th>
      <td>{dateTimeText(at, tick.peek())}</td>
      {hasTook && <td class="number">{ms === null ? (isStillRed ? "still red" : "–") : durationText(ms)}</td>}
      <td class="what" title={text}>
        {text === "" && isOvertaken && (chart === "wait" || chart === "sides") ? "overtaken" : text}
      </td>
    </tr>
  );
}

function ofText({ chart, of }: Pick, { top, rest }: Causes): string {
  if (of === undefined) return "";
  if (chart === "sides" || chart === "waits") return of;
  if (chart === "commands") return commandText(of);
  if (chart !== "failures") return `${of.slice(of.indexOf("/") + 1)} of ${of.slice(0, of.indexOf("/"))}`;
  const cause = [...top, ...(rest === undefined ? [] : [rest])].find(({ key }) => key === of);
  return cause === undefined ? "" : of === restKey ? "of all other causes" : `· ${causeText(cause)}`;
}

function timeText({ since, until }: Pick, all: readonly Bin[], { group, zone }: Choice): string {
  const bins = binsBetween(all, since, until);
  const [first, last] = [bins.at(0), bins.at(-1)];
  if (first === undefined || last === undefined) return "outside of this time";
  const [from, to] = [first, last].map((bin) => binText(bin, group, zone));
  if (since === undefined) return `in ${plural(bins.length, group)}`;
  return from === to ? `${from}` : `${from} – ${to}`;
}
