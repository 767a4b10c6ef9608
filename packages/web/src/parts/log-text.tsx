import { firstFailure, lineOfCause, logOf, type LogText as Piece } from "@tapedeck/client/lanes/loop";
import { repeatsOf } from "@tapedeck/client/lanes/repeats";
import type { Step } from "@tapedeck/client/lanes/step";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { OutputChoices } from "../model/route.ts";
import { choose } from "../router.ts";
import { CopyButton } from "./small.tsx";

export type LogTextProps = {
  readonly log: readonly Piece[];
  /** The step whose output is shown; undefined: that of all steps. */
  readonly step: Step | undefined;
  readonly steps: readonly Step[];
  /** The line that says why it failed; empty: none does. */
  readonly cause: string;
  /** What the URL says of it. */
  readonly choices: OutputChoices;
  /** Stands behind the other buttons. */
  readonly children?: ComponentChildren;
};

/** The value of `step` that names no step. */
export const allSteps = "all";

const maxLines = 5_000;

function linesOf(text: string): readonly string[] {
  return text.replace(/\n$/, "").split("\n").slice(-maxLines);
}

/** The output of a step, scrolled to the cause of its failure. */
export function LogText({ log, step, steps, cause, choices, children }: LogTextProps) {
  const wraps = choices.wrap !== "off";
  const searched = (choices.find ?? "").toLowerCase();
  const marked = useRef<HTMLElement>(null);
  const text = logOf(log, step);
  const lines = linesOf(text);
  const failed = step === undefined ? firstFailure(steps) : step.outcome === "failed" ? step : undefined;
  // Other steps may print what looks like an error, so it is sought in what the failed one printed.
  const own = step === failed ? lines : linesOf(logOf(log, failed));
  const line = failed === undefined ? -1 : lineOfCause(own, failed.cause?.text || cause);
  const wanted = choices.line ?? "";
  const found = wanted === "" ? -1 : lines.findIndex((one) => one.includes(wanted));
  const at = found >= 0 ? found : line < 0 ? -1 : lines.indexOf(own[line] ?? "");
  useLayoutEffect(() => {
    const line = marked.current;
    // The log scrolls, the page does not.
    if (line?.parentElement) line.parentElement.scrollTop = line.offsetTop - 48;
  }, [step, text, wanted]);
  if (log.length === 0) return <p class="quiet-text">No output was recorded in this loop. {children}</p>;
  const visible = lines
    .map((line, index) => ({ line, index }))
    .filter(({ line }) => line.toLowerCase().includes(searched));
  return (
    <section class="log" aria-label="Output">
      <header>
        <h2 class="part">Output of</h2>
        <StepSelect step={step} steps={steps} />
        <input
          type="search"
          aria-label="Find in the output"
          placeholder="find"
          value={choices.find ?? ""}
          onInput={(event) => choose({ find: event.currentTarget.value })}
        />
        <label>
          <input
            type="checkbox"
            checked={wraps}
            onChange={(event) => choose({ wrap: event.currentTarget.checked ? undefined : "off" })}
          />{" "}
          wrap
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
        {children}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre class={wraps ? "wraps" : ""} tabIndex={0}>
        {visible.map(({ line, index }) => (
          <span
            key={index}
            ref={index === at ? marked : null}
            class={index !== at ? "" : at === found ? "error found" : "error"}
          >
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}

function StepSelect({ step, steps }: Pick<LogTextProps, "step" | "steps">) {
  return (
    <select aria-label="Step" onChange={(event) => choose({ step: event.currentTarget.value })}>
      <option value={allSteps} selected={step === undefined}>
        all steps
      </option>
      {repeatsOf(steps).map(({ steps: repeats, text }) => (
        // What it printed is that of all its tries.
        <option
          key={repeats[0]?.position}
          value={repeats.at(-1)?.position}
          selected={step !== undefined && repeats.includes(step)}
        >
          {text}
          {repeats.at(-1)?.outcome === "failed" ? " ✕" : ""}
        </option>
      ))}
    </select>
  );
}

function openText(text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  window.open(address, "_blank", "noopener");
}
