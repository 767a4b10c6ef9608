import type { TapedeckEvent } from "@tapedeck/client";
import { clockText } from "@tapedeck/client/lanes/format";
import { timeOf } from "@tapedeck/client/lanes/step";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { indexAt } from "../model/session.ts";

export type EventListProps = {
  readonly events: readonly TapedeckEvent[];
  /** The position that the page shows. */
  readonly at: string;
  readonly choose: (event: TapedeckEvent) => void;
};

const rowHeight = 24;
const extraRows = 10;

/** A list of any length: only the rows that are seen exist. */
export function EventList({ events, at, choose }: EventListProps) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const current = indexAt(events, at);
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
    if (!isSeen) element.scrollTop = top - element.clientHeight / 2;
  }, [current]);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - extraRows);
  const last = Math.min(events.length, Math.ceil((view.top + view.height) / rowHeight) + extraRows);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section class="event-list" ref={box} tabIndex={0} aria-label={`${events.length} events`}>
      <ol style={{ height: `${events.length * rowHeight}px` }}>
        {events.slice(first, last).map((event, offset) => (
          <li
            key={event.position}
            class={`${event.outcome ?? ""} ${first + offset === current ? "current" : ""}`}
            style={{ top: `${(first + offset) * rowHeight}px` }}
          >
            <button
              type="button"
              tabIndex={-1}
              title={event.error?.message ?? event.summary}
              onClick={() => choose(event)}
            >
              <span class="when">{clockText(timeOf(event))}</span>
              <span class="kind">{event.kind}</span>
              <span class="what">{event.summary}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
