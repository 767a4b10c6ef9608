import type { VagrantResourceRow } from "../../db/schema.ts";
import { type Table, table } from "../../db/table.ts";
import { key } from "../../db/text.ts";
import { fromBase64 } from "../states/base64.ts";
import { historyTable } from "../states/history-table.ts";
import type { OfSession, StateTable, Step } from "../states/state-table.ts";
import { there, touches } from "../states/validity.ts";
import { messages } from "./messages.ts";
import { basisRow, boxRow, projectRow, runnerRow, targetRow } from "./rows.ts";
import type { VagrantState } from "./state.ts";
import { changesBetween, type Thing, type ThingKind } from "./things.ts";

const targets = table("vagrant_targets", ["session", "id"]);

const projects = table("vagrant_projects", ["session", "id"]);

const bases = table("vagrant_bases", ["session", "id"]);

const boxes = table("vagrant_boxes", ["session", "id"]);

const runners = table("vagrant_runners", ["session", "id"]);

export const tables: readonly StateTable<VagrantState>[] = [
  thingTable("target", targets, messages.target.message, targetRow),
  thingTable("project", projects, messages.project.message, projectRow),
  thingTable("basis", bases, messages.basis.message, basisRow),
  thingTable("box", boxes, messages.box.message, boxRow),
  thingTable("runner", runners, messages.runner.message, runnerRow),
];

/** Things of a kind, also those that are gone. */
function thingTable<Message, Row extends VagrantResourceRow>(
  kind: ThingKind,
  table: Table<Row>,
  message: { readonly decode: (bytes: Uint8Array) => Message },
  rowOf: (of: VagrantResourceRow, message: Message) => Row,
): StateTable<VagrantState> {
  return historyTable<VagrantState, Row>(table, (step, of) =>
    changesBetween(kind, step.before.things, step.after.things).flatMap(({ before, after }) => {
      const rows = (thing: Thing | undefined) => {
        if (thing === undefined) return [];
        const bytes = fromBase64(thing.bytes);
        return [rowOf(thingRow(step, of, thing.id, bytes), message.decode(bytes))];
      };
      return touches(step, { was: rows(before), now: rows(after), keyOf: ({ id }) => id });
    }),
  );
}

function thingRow(step: Step<VagrantState>, of: OfSession, id: string, bytes: Uint8Array): VagrantResourceRow {
  return { ...of, id: key(id), ...there(step), message: Buffer.from(bytes) };
}
