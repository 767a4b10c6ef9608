import type { TapedeckEvent } from "@tapedeck/client";
import { fullTimeText, isSameDay, stampText } from "@tapedeck/client/lanes/format";
import { timeOf } from "@tapedeck/client/lanes/step";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { serverNow } from "../data/tapedeck.ts";
import type { EventLine } from "../model/event-rows.ts";
import { indexAt } from "../model/session.ts";

export type EventListProps = {
  readonly rows: readonly EventLine[];
  /** How many events they stand for. */
  readonly count: number;
  /** The time of the oldest event, also of those that are filtered out: where it is another day's, rows have room for dates. */
  readonly since: number;
  /** The position that the page shows. */
  readonly at: string;
  readonly choose: (event: TapedeckEvent) => void;
  /** Opens a row with folded output. */
  readonly unfold: (row: EventLine) => void;
};

const rowHeight = 24;
const extraRows = 10;

/** A list of any length: only the rows that are seen exist. */
export function EventList({ rows, count, since, at, choose, unfold }: EventListProps) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const current = indexAt(rows, at);
  const now = serverNow();
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measured = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const sized = new ResizeObserver(measured);
    sized.observe(element);
    element.addEventListener("scroll", measured, { passive: true });
    measured();
    return () => {
      sized.disconnect();
      element.removeEventListener("scroll", measured);
    };
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const top = current * rowHeight;
    const isSeen = top >= element.scrollTop && top + rowHeight <= element.scrollTop + element.clientHeight;
    const rowsAbove = Math.floor(element.clientHeight / 2 / rowHeight);
    if (!isSeen) element.scrollTop = top - rowsAbove * rowHeight;
  }, [current]);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - extraRows);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + extraRows);
  return (
    <section
      class={`event-list ${isSameDay(since, now) ? "" : "dated"}`}
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
      tabIndex={0}
      aria-label={`${count} events`}
    >
      <ol style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((row, offset) => (
          <Row
            key={row.position}
            row={row}
            now={now}
            index={first + offset}
            isCurrent={first + offset === current}
            choose={() => {
              if (row.folded !== undefined) unfold(row);
              choose(row.event);
            }}
          />
        ))}
      </ol>
    </section>
  );
}

type RowProps = {
  readonly row: EventLine;
  readonly now: number;
  readonly index: number;
  readonly isCurrent: boolean;
  readonly choose: () => void;
};

function Row({ row: { event, text, isBad, folded }, now, index, isCurrent, choose }: RowProps) {
  return (
    <li class={`${isBad ? "failed" : ""} ${isCurrent ? "current" : ""}`} style={{ top: `${index * rowHeight}px` }}>
      <button type="button" tabIndex={-1} title={event.error?.message ?? text} onClick={choose}>
        <span class="when" title={fullTimeText(timeOf(event))}>
          {stampText(timeOf(event), now)}
        </span>
        <span class="kind">{event.kind}</span>
        <span class="what">
          {folded !== undefined && <span class="folded">+ {folded} lines</span>}
          {text.trim() === "" ? <span class="quiet-text">(nothing visible)</span> : text}
        </span>
      </button>
    </li>
  );
}
