import type { HistoryItem } from "@tapedeck/client";
import { dateTimeText, durationText, fullTimeText, plainText, sourceText } from "@tapedeck/client/lanes/format";
import { nameOf } from "../../data/read-history-page.ts";
import { tick } from "../../data/tapedeck.ts";
import { byDay, dayText, type HistoryChoice, historyPath, itemName, itemPath } from "../../model/history.ts";
import { sourceDaysPath } from "../../model/route.ts";
import { type DisplayedOutcome, Sign } from "../../parts/small.tsx";

type HistoryRowsProps = { readonly items: readonly HistoryItem[]; readonly choice: HistoryChoice };

/** The items by day. */
export function HistoryRows({ items, choice }: HistoryRowsProps) {
  return (
    <>
      {byDay(items).map(([day, own]) => (
        <section key={day} class="day">
          <h2>{dayText(day, tick.peek())}</h2>
          <ol>
            {own.map((item) => (
              <HistoryRow key={nameOf(item)} item={item} choice={choice} />
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}

function HistoryRow({ item, choice }: { readonly item: HistoryItem; readonly choice: HistoryChoice }) {
  const { kind, source, startedAt, durationMs, labels, artifacts } = item;
  const at = startedAt === null ? undefined : Date.parse(startedAt);
  const branch = labels.branch ?? labels.ref;
  return (
    <li class={`of-${kind}`}>
      <Sign of={displayed(item)} />
      <span class="name">
        <a href={sourceDaysPath(source)} class="source">
          {sourceText(source)}
        </a>{" "}
        <a href={itemPath(item)}>{plainText(itemName(item))}</a>
      </span>
      <span class="what">
        <Line item={item} text={choice.text} />
      </span>
      <span class="marks">
        {branch !== undefined && (
          <a href={historyPath({ ...choice, labels: [`branch=${branch}`] })} title={`Only branch ${branch}`}>
            {branch}
          </a>
        )}
        {artifacts.length > 0 && <span title={artifacts.join(", ")}>{artifactsText(artifacts)}</span>}
      </span>
      <span class="took">{durationMs === null ? "" : durationText(durationMs)}</span>
      {at !== undefined && (
        <time dateTime={startedAt ?? ""} title={fullTimeText(at)}>
          {timeText(at)}
        </time>
      )}
    </li>
  );
}

function displayed({ outcome, endPosition, cause }: HistoryItem): DisplayedOutcome {
  if (endPosition === null || outcome === null) return "running";
  return outcome === "succeeded" && cause !== null ? "failed" : outcome;
}

/** The line that was found, with the text marked; else why it failed. */
function Line({ item: { hit, cause, outcome }, text }: { readonly item: HistoryItem; readonly text: string }) {
  if (hit === undefined) {
    if (cause === null) return null;
    return (
      <>
        {cause.reason !== "other" && <b>{cause.reason}</b>} {cause.text !== "" && <code>{plainText(cause.text)}</code>}
        {outcome === "succeeded" && <span class="quiet-text"> · it went on</span>}
      </>
    );
  }
  const line = plainText(hit.text.trim());
  const at = line.toLowerCase().indexOf(text.toLowerCase());
  const where = hit.place === "output" ? [hit.step, hit.subject].filter((part) => part !== "").join(" ") : hit.place;
  const before = line.slice(0, Math.max(0, at));
  return (
    <>
      {where !== "" && <span class="quiet-text">{where} </span>}
      <code>
        {before.length > longestBefore ? `…${before.slice(-longestBefore)}` : before}
        {at >= 0 && <mark>{line.slice(at, at + text.length)}</mark>}
        {line.slice(at < 0 ? 0 : at + text.length)}
      </code>
    </>
  );
}

/** How much text before a match leaves the match in sight. */
const longestBefore = 60;

function artifactsText([first = "", ...others]: readonly string[]): string {
  const name = first.split("/").at(-1)?.split(":", 1)[0] ?? first;
  return others.length === 0 ? name : `${name} +${others.length}`;
}

/** Its day stands above. */
function timeText(at: number): string {
  return dateTimeText(at, at).replace(/^today /, "");
}
