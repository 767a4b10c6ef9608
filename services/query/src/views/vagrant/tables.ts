import type {
  VagrantBasisRow,
  VagrantBoxRow,
  VagrantProjectRow,
  VagrantRunnerRow,
  VagrantTargetRow,
  VagrantThingRow,
} from "../../db/schema.ts";
import type { Table } from "../../db/table.ts";
import { key } from "../../db/text.ts";
import { fromBase64 } from "../states/base64.ts";
import { historyTable } from "../states/history-table.ts";
import type { OfSession, StateTable, Step } from "../states/state-table.ts";
import { there, touches } from "../states/validity.ts";
import { messages } from "./messages.ts";
import { basisRow, boxRow, projectRow, runnerRow, targetRow } from "./rows.ts";
import type { VagrantState } from "./state.ts";
import { changesBetween, type Thing, type ThingKind } from "./things.ts";

const ofThing = {
  session: "text",
  source: "text",
  id: "text",
  gone: "boolean",
  gone_at: "timestamptz",
  first_position: "bigint",
  last_position: "bigint",
  message: "bytea",
} as const;

const targets: Table<VagrantTargetRow> = {
  name: "vagrant_targets",
  key: ["session", "id"],
  columns: {
    ...ofThing,
    name: "text",
    project_id: "text",
    project_name: "text",
    state: "text",
    provider: "text",
    uuid: "text",
    machine_id: "text",
    machine_state: "text",
    box_name: "text",
    box_version: "text",
  },
};

const projects: Table<VagrantProjectRow> = {
  name: "vagrant_projects",
  key: ["session", "id"],
  columns: {
    ...ofThing,
    name: "text",
    path: "text",
    basis_id: "text",
    basis_name: "text",
    remote_enabled: "boolean",
  },
};

const bases: Table<VagrantBasisRow> = {
  name: "vagrant_bases",
  key: ["session", "id"],
  columns: { ...ofThing, name: "text", path: "text", remote_enabled: "boolean" },
};

const boxes: Table<VagrantBoxRow> = {
  name: "vagrant_boxes",
  key: ["session", "id"],
  columns: {
    ...ofThing,
    name: "text",
    provider: "text",
    version: "text",
    directory: "text",
    metadata_url: "text",
  },
};

const runners: Table<VagrantRunnerRow> = {
  name: "vagrant_runners",
  key: ["session", "id"],
  columns: { ...ofThing, by_id_only: "boolean", components: "jsonb" },
};

export const tables: readonly StateTable<VagrantState>[] = [
  thingTable("target", targets, messages.target.message, targetRow),
  thingTable("project", projects, messages.project.message, projectRow),
  thingTable("basis", bases, messages.basis.message, basisRow),
  thingTable("box", boxes, messages.box.message, boxRow),
  thingTable("runner", runners, messages.runner.message, runnerRow),
];

/** Things of a kind, also those that are gone. */
function thingTable<Message, Row extends VagrantThingRow>(
  kind: ThingKind,
  table: Table<Row>,
  message: { readonly decode: (bytes: Uint8Array) => Message },
  rowOf: (of: VagrantThingRow, message: Message) => Row,
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

function thingRow(step: Step<VagrantState>, of: OfSession, id: string, bytes: Uint8Array): VagrantThingRow {
  return { ...of, id: key(id), ...there(step), message: Buffer.from(bytes) };
}
