import { spawn } from "node:child_process";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import { UntrustedCertificate } from "../../untrusted-certificate.ts";

export type OpenOptions = { readonly url?: string; readonly source?: string };

/** Prints the page's address, and opens it where there is a browser. */
export async function open({ url, source }: OpenOptions): Promise<void> {
  const api = apiAt(url);
  if (source === undefined) await requireServer(api);
  else await requireSource(source, api);
  const address = pageAddress(api.base, source);
  print(address);
  const program = browserProgram(process.platform, process.env);
  if (program !== undefined) start(program, address);
}

/**
 * A browser may trust a certificate that this program does not.
 * @throws CommandError if nobody answers, as a browser would only say that it can't connect
 */
async function requireServer(api: ApiClient): Promise<void> {
  await api.text("/about").catch((error: unknown) => {
    if (!(error instanceof UntrustedCertificate)) throw error;
  });
}

/** @throws CommandError */
async function requireSource(source: string, api: ApiClient): Promise<void> {
  const { items } = await api.get<Page<object>>("/api/v1/sources", { source, limit: 1 });
  if (items.length === 0)
    throw new CommandError(`nothing has been recorded for ${source}: \`tapedeck status\` lists all.`);
}

export function pageAddress(base: string, source: string | undefined): string {
  if (source === undefined) return `${base}/`;
  return `${base}/?source=${source.split("/").map(encodeURIComponent).join("/")}`;
}

/** The command that opens an address; undefined without a local display. */
export function browserProgram(
  platform: NodeJS.Platform,
  { BROWSER, DISPLAY, WAYLAND_DISPLAY }: NodeJS.ProcessEnv,
): readonly string[] | undefined {
  if (BROWSER !== undefined && BROWSER !== "") return [BROWSER];
  if (platform === "darwin") return ["open"];
  // `start` belongs to the shell, and takes the first quoted word for a title.
  if (platform === "win32") return ["cmd", "/c", "start", ""];
  return DISPLAY || WAYLAND_DISPLAY ? ["xdg-open"] : undefined;
}

function start([program = "", ...words]: readonly string[], address: string): void {
  const child = spawn(program, [...words, address], { stdio: "ignore", detached: true });
  // The address is printed; who has no such program opens it himself.
  child.once("error", () => {});
  child.unref();
}
