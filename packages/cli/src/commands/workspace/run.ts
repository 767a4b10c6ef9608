import { CommandError } from "../../command-error.ts";
import { confirm } from "../../confirm.ts";
import { agoText, bytesText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { type ListedWorkspace, type RemovingWorkspace, remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import type { ChangedRetention, WorkspaceAdmin } from "./admin.ts";

export type WorkspaceOptions = {
  readonly data: string;
  readonly url?: string;
  readonly here?: boolean;
  readonly json?: boolean;
};

export type RemoveOptions = WorkspaceOptions & { readonly yes?: boolean };
export type RetentionOptions = WorkspaceOptions & ChangedRetention;

export async function listWorkspaces(options: WorkspaceOptions): Promise<void> {
  await using admin = await adminOf("workspace list", options);
  const items = await admin.list();
  if (options.json) {
    printJson({ items });
    return;
  }
  if (items.length === 0) {
    print("Nothing is recorded yet.");
    return;
  }
  const titles = ["SOURCES", "EVENTS", "SIZE", "OLDEST", "NEWEST", "TABLES", "KEPT"];
  const columns = [{ title: "WORKSPACE", isName: true }, ...titles.map((title) => ({ title }))];
  print(table(columns, items.map(cellsOf)));
}

export async function showWorkspace(name: string, options: WorkspaceOptions): Promise<void> {
  await using admin = await adminOf("workspace show", options);
  const found = await admin.get(name);
  if (options.json) {
    printJson(found);
    return;
  }
  const titles = ["workspace", "sources", "events", "size", "oldest", "newest", "tables", "kept"];
  const cells = cellsOf(found);
  print(titles.map((title, at) => `${title.padEnd(10)} ${cells[at]}`).join("\n"));
}

export async function removeWorkspace(name: string, options: RemoveOptions): Promise<void> {
  const { yes, json } = options;
  await using admin = await adminOf("workspace remove", options);
  if (!yes) {
    const { messages, bytes } = await admin.get(name);
    const size = `${messages} messages, ${bytesText(bytes)}`;
    await confirm(
      `Remove the workspace ${name} with all that is recorded in it (${size})? This can't be undone. [y/N] `,
      "removed",
    );
  }
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  let last: RemovingWorkspace | undefined;
  for await (const now of admin.remove(name, stop.signal)) last = now;
  if (last?.state !== "done") {
    const why = stop.signal.aborted ? "stopped watching" : "the connection was lost";
    throw new CommandError(`${why}; the server continues to remove ${name}: the same command shows the progress.`);
  }
  if (json) printJson({ workspace: name, messages: last.messages });
  else print(`removed ${name}: ${last.messages} messages`);
}

export async function workspaceRetention(name: string, options: RetentionOptions): Promise<void> {
  const { facts, text, json } = options;
  await using admin = await adminOf("workspace retention", options);
  const isChange = facts !== undefined || text !== undefined;
  const retention = isChange ? await admin.setRetention(name, { facts, text }) : (await admin.get(name)).retention;
  if (json) printJson(retention);
  else print(`${name}: ${keptText(retention)}`);
}

async function adminOf(command: string, options: WorkspaceOptions): Promise<WorkspaceAdmin> {
  if (!announceTapedeck(command, options)) {
    // It needs the servers' code, which an installed CLI has in a package of its own.
    const { adminHere } = await import("./here.ts");
    return adminHere(options.data);
  }
  const server = remoteMaintenance(options.url);
  return {
    list: () => server.workspaces(),
    get: (name) => server.workspace(name),
    remove: (name, signal) => server.removeWorkspace(name, signal),
    setRetention: (name, retention) => server.setRetention(name, retention),
    [Symbol.asyncDispose]: async () => {},
  };
}

function cellsOf({
  workspace,
  state,
  messages,
  bytes,
  oldestAt,
  newestAt,
  tables,
  retention,
}: ListedWorkspace): string[] {
  return [
    workspace,
    tables === null ? "?" : String(tables.sources),
    tables === null ? `${messages} messages` : String(tables.events),
    bytesText(bytes),
    agoText(oldestAt),
    agoText(newestAt),
    tablesText(state, tables),
    keptText(retention),
  ];
}

function tablesText(state: ListedWorkspace["state"], tables: ListedWorkspace["tables"]): string {
  if (state === "removed") return "removed, rows are being deleted";
  if (state === "lost") return "their log is lost";
  if (tables === null) return "query does not answer";
  if (tables.waitsFor !== null) return tables.waitsFor;
  const at = tables.query === "" ? "" : ` at ${tables.query}`;
  return tables.behindMessages === 0 ? `up to date${at}` : `${tables.behindMessages} messages behind${at}`;
}

function keptText(retention: ListedWorkspace["retention"]): string {
  if (retention === null) return "?";
  const text = (seconds: number | null) => (seconds === null ? "for ever" : periodText(seconds));
  const { factsSeconds, textSeconds, isDefault } = retention;
  const kept =
    factsSeconds === textSeconds ? text(factsSeconds) : `facts ${text(factsSeconds)}, text ${text(textSeconds)}`;
  return isDefault ? kept : `${kept} (its own)`;
}

/** The form in which it is given: "90d". */
function periodText(seconds: number): string {
  for (const [name, unit] of [["d", 86_400] as const, ["h", 3_600] as const, ["m", 60] as const]) {
    if (seconds % unit === 0) return `${seconds / unit}${name}`;
  }
  return `${seconds}s`;
}
