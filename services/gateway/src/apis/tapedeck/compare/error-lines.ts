import type { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import type { EventJson } from "@tapedeck/shared/events/json";
import { ownValue } from "@tapedeck/shared/own-value";
import { reasonOf } from "./reasons.ts";
import type { Found } from "./side-summary.ts";

/** The names by which Skaffold's output refers to its phases. */
const tasks: Readonly<Record<string, RegExp>> = {
  init: /^DevLoop/,
  build: /^Build/,
  test: /^Test/,
  render: /^(?:Render|Deploy)/,
  deploy: /^(?:Deploy|DevLoop)/,
  verify: /^Verify/,
  exec: /^Exec/,
  check: /^(?:StatusCheck|Deploy)/,
};

const looksBad = /\b(?:\w*error|\w*exception|fatal|panic|failed|cannot|denied|refused|emerg)\b/i;
const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, "g");
/** rkt's prefix of a line: the time as Go prints it, and the journal's field. */
const journal = /^\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4} \S+ MESSAGE=/;
const longestLine = 300;

/**
 * Lines of a step's output that report an error, in their order. Applications of Skaffold log errors of their own,
 * which are left out; the output of an app of a rkt host is its own.
 */
export function errorLines(
  written: readonly EventJson[],
  step: Pick<Operation, "kind" | "subject" | "instance" | "runner" | "loop">,
): readonly Found[] {
  const lines = written
    .filter((event) => isOf(event, step))
    .flatMap(({ detail, position }) =>
      plainText(String(detail?.text ?? ""))
        .split("\n")
        .map((line): Found => ({ value: line.replace(journal, "").trim().slice(0, longestLine), position })),
    );
  const seen = new Set<string>();
  return lines.filter(({ value }) => {
    const isNew = !seen.has(value);
    seen.add(value);
    return isNew && (looksBad.test(value) || reasonOf(value) !== undefined);
  });
}

function isOf(
  { channel, detail, operation, ...event }: EventJson,
  { kind, subject, instance, runner, loop }: Pick<Operation, "kind" | "subject" | "instance" | "runner" | "loop">,
): boolean {
  // A Vagrant server runs many jobs at once, and the output of each names its job.
  if (event.kind === "terminal.written" && instance !== "") return event.subject === instance;
  if (kind === "app") return detail?.container !== "" && `${detail?.pod}/${detail?.container}` === subject;
  if (kind === "pod") return detail?.pod === subject;
  if (channel === "logs" || detail?.noise === true) return false;
  if (operation !== undefined && loop > 0 && (operation.loop !== loop || operation.runner !== runner)) return false;
  const task = String(detail?.task ?? "");
  if (task === "") return true;
  const isOfTask = ownValue(tasks, kind)?.test(task) ?? true;
  return isOfTask && (kind !== "build" || ["", subject].includes(String(detail?.subtask ?? "")));
}

function plainText(text: string): string {
  return text.replace(colours, "").replace(/\r\n?/g, "\n");
}
