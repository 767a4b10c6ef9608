import { type ComponentChildren, createContext } from "preact";
import { useContext, useId } from "preact/hooks";
import { about } from "../../data/tapedeck.ts";
import type { ChartName } from "../../model/trends/choice.ts";
import { type Filters, type Whose, whoseFigures } from "../../model/trends/whose.ts";
import { CopyButton, Sign } from "../../parts/small.tsx";

/** The query that gives a panel's numbers. */
export type PanelSql = { readonly text: string; readonly isOpen: boolean; readonly toggle: () => void };

/** The filters of the view that a panel stands in. */
export const PanelFilters = createContext<Filters>({ developers: [], labels: [] });

export type PanelProps = {
  readonly name: ChartName;
  readonly title: string;
  /** The definition of the count, in a sentence. */
  readonly definition: string;
  readonly sql: PanelSql;
  /** Why its numbers could not be read; they are not shown then. */
  readonly error: string | undefined;
  readonly children: ComponentChildren;
};

/** One of the small multiples: what it shows, what that means, and the query that gives the same. */
export function Panel({ name, title, definition, sql, error, children }: PanelProps) {
  const id = useId();
  const whose = whoseFigures(name, useContext(PanelFilters), about.value?.token);
  return (
    <section class="trend" aria-label={title} data-chart={name}>
      <header>
        <h2>{title}</h2>
        <WhoseTag whose={whose} />
        <button
          type="button"
          class="quiet"
          aria-expanded={sql.isOpen}
          aria-controls={id}
          aria-label={`SQL of ${title}`}
          onClick={sql.toggle}
        >
          SQL
        </button>
      </header>
      <p class="definition">{definition}</p>
      <div class="body">
        {error === undefined ? (
          children
        ) : (
          <p class="nothing" role="alert">
            <Sign of="failed" label="" /> Its numbers could not be read. {error}
          </p>
        )}
        <div id={id} class="sql" hidden={!sql.isOpen}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
          <pre tabIndex={0}>{sql.text}</pre>
          {whose === "team" && (
            <p class="quiet-text">
              It counts your own rows. The schema <code>tapedeck_team</code> has the team's sums.
            </p>
          )}
          <CopyButton text={() => sql.text}>Copy SQL</CopyButton>
        </div>
      </div>
    </section>
  );
}

const tags: Readonly<Record<Whose, string>> = { team: "the team's", own: "only yours" };

/** Says whose figures a panel has; nothing where all developers are shown. */
export function WhoseTag({ whose }: { readonly whose: Whose | undefined }) {
  return whose === undefined ? null : <span class="whose quiet-text">{tags[whose]}</span>;
}
