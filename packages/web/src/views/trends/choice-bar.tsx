import { useState } from "preact/hooks";
import {
  type Choice,
  groupFor,
  groups,
  isDay,
  ranges,
  sides,
  type TrendsRange,
  trendsPath,
} from "../../model/trends/choice.ts";
import { ownZone } from "../../model/trends/zone.ts";
import { Labels, Names } from "../../parts/choices.tsx";
import { navigate } from "../../router.ts";

export type ChoiceBarProps = {
  readonly choice: Choice;
  /** The days that are shown. */
  readonly days: { readonly from: string; readonly to: string };
  readonly developers: readonly string[];
  readonly projects: readonly string[];
  /** These can be chosen, and others can be typed. */
  readonly labels: readonly string[];
};

/** The choice of what is shown: links and fields that change the URL. */
export function ChoiceBar({ choice, days, developers, projects, labels }: ChoiceBarProps) {
  const { range, group, zone } = choice;
  // The former selection belongs to the former numbers.
  const { pick: _, ...unpicked } = choice;
  const path = (change: Partial<Choice>) => trendsPath({ ...unpicked, ...change });
  // On a phone the charts come first. The button is shown there alone.
  const [isOpen, setOpen] = useState(false);
  const filters = choice.developers.length + choice.projects.length + choice.labels.length;
  return (
    <search class={isOpen ? "choice open" : "choice"} aria-label="What is shown">
      <button type="button" class="filter" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filter{filters > 0 && ` (${filters})`} <span class="quiet-text">{typeof range === "string" && range}</span>
      </button>
      <nav aria-label="Range">
        {(Object.keys(ranges) as TrendsRange[]).map((name) => (
          <a
            key={name}
            href={path({ range: name, group: groupFor(name) })}
            aria-current={range === name ? "true" : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      <DayInputs days={days} choose={(range) => navigate(path({ range, group: groupFor(range) }))} />
      <nav aria-label="By">
        {groups.map((name) => (
          <a key={name} href={path({ group: name })} aria-current={group === name ? "true" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <Names
        label="developer"
        all={developers}
        chosen={choice.developers}
        choose={(names) => navigate(path({ developers: names }))}
      />
      <Names
        label="project"
        all={projects}
        chosen={choice.projects}
        choose={(names) => navigate(path({ projects: names }))}
      />
      <Labels all={labels} chosen={choice.labels} choose={(names) => navigate(path({ labels: names }))} />
      <Sides choice={unpicked} />
      <select
        aria-label="Time zone"
        value={zone}
        onChange={(event) => navigate(path({ zone: event.currentTarget.value }))}
      >
        {[...new Set([zone, ownZone, "UTC"])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </search>
  );
}

/** All loops together, or a line for each side. */
function Sides({ choice }: Pick<ChoiceBarProps, "choice">) {
  const { by, ...together } = choice;
  return (
    <nav aria-label="Side by side">
      <a href={trendsPath(together)} aria-current={by === undefined ? "true" : undefined}>
        together
      </a>
      {sides.map((name) => (
        <a key={name} href={trendsPath({ ...together, by: name })} aria-current={by === name ? "true" : undefined}>
          by {name}
        </a>
      ))}
    </nav>
  );
}

type DayInputsProps = Pick<ChoiceBarProps, "days"> & { readonly choose: (days: ChoiceBarProps["days"]) => void };

/** The first and the last day, in either order. */
function DayInputs({ days, choose }: DayInputsProps) {
  const change = (changed: Partial<ChoiceBarProps["days"]>) => {
    const range = { ...days, ...changed };
    if (!isDay(range.from) || !isDay(range.to)) return;
    choose(range.from <= range.to ? range : { from: range.to, to: range.from });
  };
  return (
    <span class="days">
      <input
        type="date"
        aria-label="From"
        value={days.from}
        onChange={(event) => change({ from: event.currentTarget.value })}
      />
      –
      <input
        type="date"
        aria-label="To"
        value={days.to}
        onChange={(event) => change({ to: event.currentTarget.value })}
      />
    </span>
  );
}
