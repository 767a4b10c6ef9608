import { useRef } from "preact/hooks";
import type { StateRow, StateSection } from "../model/state-sections.ts";
import { to } from "../router.ts";

export const stateSigns = { good: "✓", bad: "✕", running: "▶", warning: "!", quiet: "·" } as const;

export function StateSections({ sections }: { readonly sections: readonly StateSection[] }) {
  // What was there when the panel opened is no change.
  const first = useRef<ReadonlySet<string> | null>(null);
  if (sections.length > 0) first.current ??= new Set(sections.flatMap(({ rows }) => rows.map(keyOf)));
  if (sections.length === 0) return <p class="quiet-text">Nothing is known yet.</p>;
  return (
    <>
      {sections.map(({ title, rows }) => (
        <section class="state" key={title}>
          <h3>{title}</h3>
          <dl>
            {rows.map((row) => (
              // The key contains the value: a value that changes is a new element, which flashes once.
              <div key={keyOf(row)} class={first.current?.has(keyOf(row)) ? "" : "changes"}>
                <dt title={row.name}>{row.name}</dt>
                <dd class={row.tone}>
                  <span aria-hidden="true">{stateSigns[row.tone]}</span> <StateValue row={row} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}

export function StateValue({ row: { value, link, path } }: { readonly row: StateRow }) {
  if (path !== undefined) return <a href={to(path)}>{value}</a>;
  if (link === undefined) return <>{value}</>;
  return (
    <a href={link} target="_blank" rel="noreferrer">
      {value}
    </a>
  );
}

function keyOf({ name, value }: StateRow): string {
  return `${name} ${value}`;
}
