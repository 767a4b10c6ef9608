import { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { firstLine, name, summary, text as verbatim } from "../../facts.ts";
import type { PlacedOutput } from "./output-alignment.ts";

/** The fact of one terminal event. Total: an event that can't be read is recorded by its position alone. */
export function writtenFact(
  job: string,
  event: Uint8Array,
  { index, stream, offset }: Omit<PlacedOutput, "piece">,
): Fact {
  const { text, level, occurredAt } = read(event);
  const output = { job, index: BigInt(index), stream, offset: BigInt(offset) };
  const printed = verbatim(text);
  return {
    kind: "terminal.written",
    subject: job,
    summary: summary(firstLine(text)),
    ...(occurredAt && { occurredAt }),
    detail: {
      $case: "text",
      value: {
        text: printed,
        level: name(level),
        task: "",
        subtask: "",
        pod: "",
        container: "",
        noise: printed === "",
        output,
      },
    },
  };
}

type TerminalLine = Pick<Fact, "occurredAt"> & { readonly text: string; readonly level: string };

function read(bytes: Uint8Array): TerminalLine {
  try {
    const event = TerminalEvent.decode(bytes);
    const occurredAt = validTimestamp(event.timestamp);
    return { ...textOf(event), ...(occurredAt && { occurredAt }) };
  } catch {
    return { text: "", level: "" };
  }
}

/** The printed text, with line ends. Bytes that are not UTF-8 become U+FFFD here; the frame has them as they are. */
function textOf({ event }: TerminalEvent): Pick<TerminalLine, "text" | "level"> {
  switch (event?.$case) {
    case "line": {
      const { msg, style, disable_new_line } = event.value;
      return { text: disable_new_line ? msg : `${msg}\n`, level: style };
    }
    case "status":
      return { text: line(event.value.msg), level: event.value.status };
    case "named_values":
      return { text: event.value.values.map(({ name, value }) => `${name}: ${value}\n`).join(""), level: "" };
    case "raw":
      return { text: event.value.data.toString("utf8"), level: event.value.stderr ? "stderr" : "" };
    case "table": {
      const { headers, rows } = event.value;
      const cells = [headers, ...rows.map(({ entries }) => entries.map(({ value }) => value))];
      return { text: cells.map((row) => line(row.join("\t"))).join(""), level: "" };
    }
    case "step":
      return { text: line(event.value.msg) + event.value.output.toString("utf8"), level: event.value.status };
    default:
      return { text: "", level: "" };
  }
}

function line(msg: string): string {
  return msg === "" ? "" : `${msg}\n`;
}
