import { agoText, dateTimeText, fullTimeText, unknownTime } from "@tapedeck/client/lanes/format";
import { isPossible } from "@tapedeck/client/lanes/lasted";
import type { Step } from "@tapedeck/client/lanes/step";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { serverNow, tick } from "../data/tapedeck.ts";
import { to } from "../router.ts";

const signs = { succeeded: "✓", failed: "✕", canceled: "–", unknown: "?", running: "▶" } as const;
const outcomeWords = {
  succeeded: "good",
  failed: "failed",
  canceled: "canceled",
  unknown: "end unknown",
  running: "running",
};

export type DisplayedOutcome = keyof typeof signs;

export function displayedOutcome({ outcome, endedAt }: Pick<Step, "outcome" | "endedAt">): DisplayedOutcome {
  if (endedAt === undefined) return "running";
  return outcome ?? "unknown";
}

export function outcomeWord(outcome: DisplayedOutcome): string {
  return outcomeWords[outcome];
}

/** A sign with its word for those who see neither form nor colour. An empty label: the word stands beside it. */
export function Sign({ of, label = outcomeWords[of] }: { readonly of: DisplayedOutcome; readonly label?: string }) {
  if (label === "") {
    return (
      <span class={`sign ${of}`} aria-hidden="true">
        {signs[of]}
      </span>
    );
  }
  return (
    <span class={`sign ${of}`} role="img" aria-label={label}>
      {signs[of]}
    </span>
  );
}

/** "4 min ago", which stays true; the exact time on hover. */
export function Ago({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTimeText(at)}>
      {agoText(tick.value - at)}
    </time>
  );
}

/** "today 10:42:07", "21 Nov 10:42:07"; the exact time on hover. "unknown time" without one. */
export function DateTime({ at }: { readonly at: number }) {
  if (!isPossible(at)) return <span>{unknownTime}</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTimeText(at)}>
      {dateTimeText(at, serverNow())}
    </time>
  );
}

export function CopyButton({ text, children }: { readonly text: () => string; readonly children: ComponentChildren }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? "Copied" : children}</span>
    </button>
  );
}

/** Pages without TLS have no clipboard API. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="empty" role="status">
      Reading {what} …
    </p>
  );
}

/** `mayPass`: whether it helps to try again. */
export function ErrorNotice({ text, mayPass = true }: { readonly text: string; readonly mayPass?: boolean }) {
  return (
    <div class="empty" role="alert">
      <p>
        <Sign of="failed" label="problem" /> {text}
      </p>
      {to("/") !== undefined && (
        <p>
          {mayPass && (
            <>
              <button type="button" class="quiet" onClick={() => location.reload()}>
                Try again
              </button>{" "}
            </>
          )}
          <a href={to("/")}>Back to what happens now</a>
        </p>
      )}
    </div>
  );
}
