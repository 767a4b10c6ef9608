import { errorLine, logOf, type LogText as Piece } from "@tapedeck/client/lanes/loop";
import { type Step, stepText } from "@tapedeck/client/lanes/step";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CopyButton } from "./small.tsx";

export type LogTextProps = {
  readonly log: readonly Piece[];
  readonly step: Step | undefined;
  readonly steps: readonly Step[];
  readonly choose: (step: Step) => void;
  readonly error: string;
};

const mostLines = 5_000;

/** The output of a step, scrolled to its error. */
export function LogText({ log, step, steps, choose, error }: LogTextProps) {
  const [wraps, setWraps] = useState(true);
  const [wanted, setWanted] = useState("");
  const marked = useRef<HTMLElement>(null);
  const text = logOf(log, step);
  const lines = text.replace(/\n$/, "").split("\n").slice(-mostLines);
  const hasFailed = step?.outcome === "failed";
  const at = hasFailed ? errorLine(lines, error) : -1;
  useLayoutEffect(() => {
    const line = marked.current;
    // The log scrolls, the page does not.
    if (line?.parentElement) line.parentElement.scrollTop = line.offsetTop - 48;
  }, [step, text]);
  if (log.length === 0) return <p class="quiet-text">No output was recorded in this loop.</p>;
  const shown = lines.map((line, index) => ({ line, index })).filter(({ line }) => line.toLowerCase().includes(wanted));
  return (
    <section class="log" aria-label="Output">
      <header>
        <h2 class="part">Output of</h2>
        <StepSelect step={step} steps={steps} choose={choose} />
        <input
          type="search"
          aria-label="Find in the output"
          placeholder="find"
          onInput={(event) => setWanted(event.currentTarget.value.toLowerCase())}
        />
        <label>
          <input type="checkbox" checked={wraps} onChange={(event) => setWraps(event.currentTarget.checked)} /> wrap
        </label>
        <CopyButton text={() => text}>Copy</CopyButton>
        <button
          type="button"
          class="quiet"
          title="All of it as plain text, in a tab of its own"
          onClick={() => openText(text)}
        >
          Raw
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre class={wraps ? "wraps" : ""} tabIndex={0}>
        {shown.map(({ line, index }) => (
          <span key={index} ref={index === at ? marked : null} class={index === at ? "error" : ""}>
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}

function StepSelect({ step, steps, choose }: Pick<LogTextProps, "step" | "steps" | "choose">) {
  return (
    <select
      aria-label="Step"
      onChange={(event) => {
        const found = steps.find(({ position }) => position === event.currentTarget.value);
        if (found !== undefined) choose(found);
      }}
    >
      {steps.map((one) => (
        <option key={one.position} value={one.position} selected={one === step}>
          {stepText(one)}
          {one.outcome === "failed" ? " ✕" : ""}
        </option>
      ))}
    </select>
  );
}

function openText(text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  window.open(address, "_blank", "noopener");
}
