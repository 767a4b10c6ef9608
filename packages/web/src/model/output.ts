import type { TapedeckEvent } from "@tapedeck/client";
import { plainText } from "@tapedeck/client/lanes/format";
import type { LogText } from "@tapedeck/client/lanes/loop";
import type { Loop } from "@tapedeck/client/lanes/step";

/** What a loop, or a command of Vagrant, printed, in order; empty pieces are left out. */
export function outputOf(events: readonly TapedeckEvent[], of: Pick<Loop, "kind" | "runner" | "loop" | "instance">) {
  return events.flatMap((event): LogText[] => {
    if (!isOutput(event)) return [];
    const { detail } = event;
    if (detail === undefined || detail.noise || !isPrintedBy(event, of)) return [];
    return [{ text: plainText(detail.text), task: detail.task, subtask: detail.subtask }];
  });
}

export type Output = TapedeckEvent<"log.written" | "terminal.written">;

export function isOutput(event: TapedeckEvent): event is Output {
  return event.kind === "log.written" || event.kind === "terminal.written";
}

function isPrintedBy({ operation, detail }: Output, of: Parameters<typeof outputOf>[1]): boolean {
  if (of.kind === "command") return detail?.output?.job === of.instance;
  return operation?.runner === of.runner && operation.loop === of.loop;
}
