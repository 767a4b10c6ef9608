import type { Processes } from "../processes.ts";

/** `events`: absent until they are counted. */
export type EraseAnswer = { readonly state: string; readonly events?: number; readonly removed: number };

/** Asks to erase, and leaves after the first answer. */
export async function eraseAnswer({ http }: Pick<Processes, "http">, session: string): Promise<EraseAnswer> {
  const leave = new AbortController();
  const response = await fetch(`http://${http}/api/v1/sessions/${session}`, { method: "DELETE", signal: leave.signal });
  const { value } = (await response.body?.getReader().read()) ?? {};
  leave.abort();
  const line = new TextDecoder().decode(value).split("\n")[0] ?? "";
  if (response.status !== 200) throw new Error(line);
  return JSON.parse(line);
}

/** Asks to erase, and stays until nothing is left. */
export async function eraseWhole({ http }: Pick<Processes, "http">, session: string): Promise<void> {
  const response = await fetch(`http://${http}/api/v1/sessions/${session}`, { method: "DELETE" });
  const answer = await response.text();
  if (!answer.trimEnd().endsWith('{"type":"complete"}')) throw new Error(answer);
}
