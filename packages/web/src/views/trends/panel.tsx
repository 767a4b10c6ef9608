import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { CopyButton, Sign } from "../../parts/small.tsx";

export type PanelProps = {
  readonly name: string;
  readonly title: string;
  /** The definition of the count, in a sentence. */
  readonly definition: string;
  readonly sql: string;
  /** Why its numbers could not be read; they are not shown then. */
  readonly problem: string | undefined;
  readonly children: ComponentChildren;
};

/** One of the small multiples: what it shows, what that means, and the query that gives the same. */
export function Panel({ name, title, definition, sql, problem, children }: PanelProps) {
  const [showsSql, setShowsSql] = useState(false);
  const id = useId();
  return (
    <section class="trend" aria-label={title} data-chart={name}>
      <header>
        <h2>{title}</h2>
        <button
          type="button"
          class="quiet"
          aria-expanded={showsSql}
          aria-controls={id}
          aria-label={`SQL of ${title}`}
          onClick={() => setShowsSql(!showsSql)}
        >
          SQL
        </button>
      </header>
      <p class="definition">{definition}</p>
      <div class="body">
        {problem === undefined ? (
          children
        ) : (
          <p class="nothing" role="alert">
            <Sign of="failed" label="" /> Its numbers could not be read. {problem}
          </p>
        )}
        <div id={id} class="sql" hidden={!showsSql}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
          <pre tabIndex={0}>{sql}</pre>
          <CopyButton text={() => sql}>Copy SQL</CopyButton>
        </div>
      </div>
    </section>
  );
}
