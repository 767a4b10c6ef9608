import { isTextKind } from "@tapedeck/shared/events/kinds";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { ownValue } from "@tapedeck/shared/own-value";
import type { OperationRow } from "../../db/schema.ts";

/** What prints: an operation, or with kind "session" all of its session outside of applications. */
export type Printer = Pick<OperationRow, "kind" | "subject" | "instance" | "runner" | "loop">;

/** The names by which Skaffold's output refers to its phases. */
const tasks: Readonly<Record<string, RegExp>> = {
  init: /^DevLoop/,
  sync: /^(?:DevLoop|Sync)/,
  build: /^Build/,
  test: /^Test/,
  render: /^(?:Render|Deploy)/,
  deploy: /^(?:Deploy|DevLoop)/,
  verify: /^Verify/,
  exec: /^Exec/,
  check: /^(?:StatusCheck|Deploy)/,
};

/** rkt's prefix of a line: the time as Go prints it, and the journal's field. */
const journal = /^\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4} \S+ MESSAGE=/gm;

/** Whether the event is output of the operation. Applications of Skaffold print for themselves; an app of a rkt host is the operation. */
export function isPrintedBy({ event }: RecordedEvent, { kind, subject, instance, runner, loop }: Printer): boolean {
  if (!isTextKind(event.kind) || event.detail?.$case !== "text") return false;
  const { task, subtask, pod, container, noise } = event.detail.value;
  // A Vagrant server runs many jobs at once, and the output of each names its job.
  if (event.kind === "terminal.written" && kind !== "session") return event.subject === (instance || subject);
  if (kind === "app") return container !== "" && `${pod}/${container}` === subject;
  if (kind === "pod") return pod === subject;
  if (event.channel === "logs" || noise) return false;
  const { operation } = event;
  if (operation !== undefined && loop > 0 && (operation.loop !== loop || operation.runner !== runner)) return false;
  if (task === "") return true;
  // Skaffold prints what a test's container wrote after the task Verify has ended.
  if (kind === "verify" && task.startsWith("DevLoop")) return event.detail.value.text.startsWith(`[${subject}] `);
  const isOfTask = ownValue(tasks, kind)?.test(task) ?? true;
  return isOfTask && (kind !== "build" || subject === "" || subtask === "" || subtask === subject);
}

/** How much of what a step printed is read, in characters: from its beginning, and up to its end. */
const [headLength, tailLength] = [16_384, 49_152];

/** The text of the events, as the terminal had it. What is too long lacks its middle. */
export function textOf(printed: readonly RecordedEvent[]): string {
  const pieces = printed.map(pieceOf);
  let from = pieces.length;
  for (let length = 0; from > 0 && length < tailLength; from -= 1) length += pieces[from - 1]?.length ?? 0;
  const tail = pieces.slice(from).join("").slice(-tailLength);
  if (from === 0) return tail;
  let head = "";
  for (const piece of pieces.slice(0, from)) {
    head += piece;
    if (head.length >= headLength) break;
  }
  return `${head.slice(0, headLength)}\n${tail}`;
}

function pieceOf({ event }: RecordedEvent): string {
  if (event.detail?.$case !== "text") return "";
  const { text, level } = event.detail.value;
  if (event.kind === "terminal.written") return text;
  // Skaffold hands on what a tool writes as it comes; its own messages have a level, and no line ends.
  const isWhole = text.endsWith("\n") || ["", "standard"].includes(level.toLowerCase());
  return `${text.replace(journal, "")}${isWhole ? "" : "\n"}`;
}
