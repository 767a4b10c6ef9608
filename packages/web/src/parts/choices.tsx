import { useId, useState } from "preact/hooks";
import { isLabel } from "../model/trends/choice.ts";

type NamesProps = {
  readonly label: string;
  readonly all: readonly string[];
  readonly chosen: readonly string[];
  readonly choose: (names: readonly string[]) => void;
};

/** One of them, or all; a URL may name several. */
export function Names({ label, all, chosen, choose }: NamesProps) {
  const several = "several";
  const value = chosen.length > 1 ? several : (chosen[0] ?? "");
  return (
    <select
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => choose(currentTarget.value === "" ? [] : [currentTarget.value])}
    >
      <option value="">every {label}</option>
      {chosen.length > 1 && (
        <option value={several} disabled>
          {chosen.join(", ")}
        </option>
      )}
      {[...new Set([...all, ...(chosen.length === 1 ? chosen : [])])].map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

type LabelsProps = Pick<NamesProps, "all" | "chosen" | "choose">;

/** Those that must match, each with a button that drops it, and a field for one more. */
export function Labels({ all, chosen, choose }: LabelsProps) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const add = (text: string) => {
    setTyped(text);
    const label = text.trim();
    if (!isLabel(label) || chosen.includes(label)) return;
    setTyped("");
    choose([...chosen, label]);
  };
  return (
    <span class="labels-chosen">
      {chosen.map((label) => (
        <button
          key={label}
          type="button"
          title={`Show loops with any ${label.split("=")[0]}`}
          aria-label={`Drop label ${label}`}
          onClick={() => choose(chosen.filter((one) => one !== label))}
        >
          {label} ×
        </button>
      ))}
      <input
        aria-label="Label"
        placeholder="label=value"
        list={id}
        value={typed}
        onInput={({ currentTarget: { value } }) => setTyped(value)}
        onChange={({ currentTarget: { value } }) => add(value)}
      />
      <datalist id={id}>
        {all
          .filter((label) => !chosen.includes(label))
          .map((label) => (
            <option key={label} value={label} />
          ))}
      </datalist>
    </span>
  );
}
