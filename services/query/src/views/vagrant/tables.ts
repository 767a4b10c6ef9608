import type { VagrantResourceRow } from "../../db/schema.ts";
import { type Table, table } from "../../db/table.ts";
import { key } from "../../db/text.ts";
import { fromBase64 } from "../states/base64.ts";
import { historyTable } from "../states/history-table.ts";
import type { OfSession, StateStep, StateTable } from "../states/state-table.ts";
import { rowChanges, validityFrom } from "../states/validity.ts";
import { resourceMessages } from "./resource-messages.ts";
import { changesBetween, type FoldedResource, type ResourceKind } from "./resources.ts";
import { basisRow, boxRow, projectRow, runnerRow, targetRow } from "./rows.ts";
import type { VagrantState } from "./state.ts";

const targets = table("vagrant_targets", ["session", "id"]);
const projects = table("vagrant_projects", ["session", "id"]);
const bases = table("vagrant_bases", ["session", "id"]);
const boxes = table("vagrant_boxes", ["session", "id"]);
const runners = table("vagrant_runners", ["session", "id"]);

export const tables: readonly StateTable<VagrantState>[] = [
  resourceTable("target", targets, resourceMessages.target.message, targetRow),
  resourceTable("project", projects, resourceMessages.project.message, projectRow),
  resourceTable("basis", bases, resourceMessages.basis.message, basisRow),
  resourceTable("box", boxes, resourceMessages.box.message, boxRow),
  resourceTable("runner", runners, resourceMessages.runner.message, runnerRow),
];

/** The resources of a kind, including those that are gone. */
function resourceTable<Message, Row extends VagrantResourceRow>(
  kind: ResourceKind,
  table: Table<Row>,
  message: { readonly decode: (bytes: Uint8Array) => Message },
  rowOf: (of: VagrantResourceRow, message: Message) => Row,
): StateTable<VagrantState> {
  return historyTable<VagrantState, Row>(table, (step, of) =>
    changesBetween(kind, step.before.resources, step.after.resources).flatMap(({ before, after }) => {
      const rowsOf = (resource: FoldedResource | undefined) => {
        if (resource === undefined) return [];
        const bytes = fromBase64(resource.bytes);
        return [rowOf(resourceRow(step, of, resource.id, bytes), message.decode(bytes))];
      };
      return rowChanges(step, { before: rowsOf(before), after: rowsOf(after), keyOf: ({ id }) => id });
    }),
  );
}

function resourceRow(step: StateStep<VagrantState>, of: OfSession, id: string, bytes: Uint8Array): VagrantResourceRow {
  return { ...of, id: key(id), ...validityFrom(step), message: Buffer.from(bytes) };
}
