import { bytesText, millis, plural } from "@tapedeck/client/lanes/format";
import { Ago } from "./small.tsx";

/** See Workspace of the API. */
export type Workspace = {
  readonly workspace: string;
  readonly state: "recorded" | "removed" | "lost";
  readonly messages: number;
  readonly bytes: number;
  readonly oldestAt: string | null;
  readonly newestAt: string | null;
  readonly tables: {
    readonly sources: number;
    readonly events: number;
    readonly behindMessages: number;
    readonly query: string;
    readonly waitsFor: string | null;
  } | null;
  readonly retention: { readonly factsSeconds: number | null; readonly textSeconds: number | null } | null;
};

/** More are no list that anybody reads. */
const maxShown = 100;
/** A few messages are always on their way. */
const fewMessages = 1_000;

/** For admins: the workspaces that they see, the largest ones first. */
export function Workspaces({ workspaces }: { readonly workspaces: readonly Workspace[] }) {
  const bySize = workspaces.toSorted((a, b) => b.bytes - a.bytes);
  const hidden = Math.max(0, bySize.length - maxShown);
  return (
    <>
      <h2 class="part">Workspaces</h2>
      <div class="scrolls">
        <table class="list stacks">
          <thead>
            <tr>
              <th scope="col">workspace</th>
              <th scope="col" class="number">
                sources
              </th>
              <th scope="col" class="number">
                events
              </th>
              <th scope="col" class="number">
                log size
              </th>
              <th scope="col">oldest</th>
              <th scope="col">newest</th>
              <th scope="col">tables</th>
              <th scope="col">kept</th>
            </tr>
          </thead>
          <tbody>
            {bySize.slice(0, maxShown).map((workspace) => (
              <WorkspaceLine key={workspace.workspace} {...workspace} />
            ))}
          </tbody>
        </table>
      </div>
      {hidden > 0 && (
        <p class="quiet-text">
          {hidden} more: <code>tapedeck workspace list</code>
        </p>
      )}
    </>
  );
}

function WorkspaceLine({ workspace, state, bytes, oldestAt, newestAt, tables, retention }: Workspace) {
  const [oldest, newest] = [millis(oldestAt), millis(newestAt)];
  const isWrong = state === "lost" || tables === null || tables.waitsFor !== null;
  const isBehind = isWrong || tables.behindMessages > fewMessages;
  return (
    <tr>
      <th scope="row">{workspace}</th>
      <td data-name="sources" class="number">
        {tables?.sources ?? "–"}
      </td>
      <td data-name="events" class="number">
        {tables?.events ?? "–"}
      </td>
      <td data-name="log size" class="number">
        {bytesText(bytes)}
      </td>
      <td data-name="oldest">{oldest === undefined ? "–" : <Ago at={oldest} />}</td>
      <td data-name="newest">{newest === undefined ? "–" : <Ago at={newest} />}</td>
      <td data-name="tables" class={isBehind && state !== "removed" ? "warning" : ""}>
        {tablesText(state, tables)}
        {isBehind && state !== "removed" && " !"}
      </td>
      <td data-name="kept">{retention === null ? "–" : keptText(retention)}</td>
    </tr>
  );
}

function tablesText(state: Workspace["state"], tables: Workspace["tables"]): string {
  if (state === "removed") return "removed, rows are being deleted";
  if (state === "lost") return "their log is lost";
  if (tables === null) return "not known";
  if (tables.waitsFor !== null) return tables.waitsFor;
  const at = tables.query === "" ? "" : ` at ${tables.query}`;
  return tables.behindMessages === 0 ? `up to date${at}` : `${plural(tables.behindMessages, "message")} behind${at}`;
}

function keptText({ factsSeconds, textSeconds }: NonNullable<Workspace["retention"]>): string {
  const facts = periodText(factsSeconds);
  const text = periodText(textSeconds);
  return facts === text ? facts : `${facts}, text ${text}`;
}

function periodText(seconds: number | null): string {
  if (seconds === null) return "for ever";
  const days = seconds / 86_400;
  return days >= 1 ? plural(Math.round(days), "day") : plural(Math.max(1, Math.round(seconds / 3_600)), "hour");
}
