import { sourceText } from "@tapedeck/client/lanes/format";
import { useState } from "preact/hooks";
import { now } from "../../data/shown.ts";
import { type HistoryChoice, historyKinds, historyPath, outcomes } from "../../model/history.ts";
import { Labels, Names } from "../../parts/choices.tsx";
import { navigate } from "../../router.ts";

/** Fields that change the URL. */
export function HistoryFilters({ choice }: { readonly choice: HistoryChoice }) {
  const change = (changed: Partial<HistoryChoice>) => navigate(historyPath({ ...choice, ...changed }));
  const sources = [...(now.value?.values() ?? [])].map(({ source }) => sourceText(source).split("/"));
  const unique = (names: readonly (string | undefined)[]) =>
    [...new Set(names.filter((name) => name !== undefined))].toSorted();
  const { text, ...filters } = choice;
  const isFiltered = historyPath(filters) !== historyPath({});
  const [isOpen, setOpen] = useState(isFiltered);
  return (
    <>
      {/* On a phone the fields would fill the screen. */}
      <button type="button" class="toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters
      </button>
      <search class={`choice ${isOpen ? "open" : ""}`} aria-label="Filters">
        <Names label="kind" all={historyKinds} chosen={choice.kinds} choose={(kinds) => change({ kinds })} />
        <Names
          label="outcome"
          all={outcomes}
          chosen={choice.outcomes}
          choose={(chosen) => change({ outcomes: chosen })}
        />
        <Names
          label="developer"
          all={unique(sources.map(([developer]) => developer))}
          chosen={choice.developers}
          choose={(developers) => change({ developers })}
        />
        <Names
          label="project"
          all={unique(sources.map(([, project]) => project))}
          chosen={choice.projects}
          choose={(projects) => change({ projects })}
        />
        <TextFilter label="reason" values={choice.reasons} choose={(reasons) => change({ reasons })} />
        <TextFilter label="artifact" values={choice.artifacts} choose={(artifacts) => change({ artifacts })} />
        <Labels all={[]} chosen={choice.labels} choose={(labels) => change({ labels })} />
        <span class="days">
          <input
            type="date"
            aria-label="From"
            value={choice.from}
            onChange={({ currentTarget: { value } }) => change({ from: value })}
          />
          –
          <input
            type="date"
            aria-label="To"
            value={choice.to}
            onChange={({ currentTarget: { value } }) => change({ to: value })}
          />
        </span>
        {isFiltered && (
          <a class="clear" href={historyPath({ text })}>
            Clear
          </a>
        )}
      </search>
    </>
  );
}

type TextFilterProps = {
  readonly label: string;
  readonly values: readonly string[];
  readonly choose: (values: readonly string[]) => void;
};

function TextFilter({ label, values, choose }: TextFilterProps) {
  return (
    <input
      class="filter"
      aria-label={label}
      placeholder={`any ${label}`}
      value={values.join(", ")}
      onChange={({ currentTarget: { value } }) =>
        choose(
          value
            .split(",")
            .map((one) => one.trim())
            .filter((one) => one !== ""),
        )
      }
    />
  );
}
