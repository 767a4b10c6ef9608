import { spawn } from "node:child_process";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import { spokenSource } from "../../display/source-name.ts";
import { type NamedSide, namedSide } from "../../sources/named-side.ts";
import { UntrustedCertificate } from "../../untrusted-certificate.ts";

export type OpenOptions = { readonly url?: string; readonly source?: string };

/** Prints the page's address, and opens it where there is a browser. */
export async function open(what: string | undefined, { url, source }: OpenOptions): Promise<void> {
  const api = apiAt(url);
  await requireServer(api);
  const side = await namedSide(api, what, source).catch(untrusted);
  if (side?.type === "source" && side.name !== undefined) await requireSource(side.name, api);
  const address = `${api.base}${pathOf(side)}`;
  print(address);
  const program = browserProgram(process.platform, process.env);
  if (program !== undefined) start(program, address);
}

/**
 * A browser may trust a certificate that this program does not.
 * @throws CommandError if nobody answers, as a browser would only say that it can't connect
 */
async function requireServer(api: ApiClient): Promise<void> {
  await api.text("/about").catch(untrusted);
}

function untrusted(error: unknown): undefined {
  if (!(error instanceof UntrustedCertificate)) throw error;
}

/** @throws CommandError */
async function requireSource(source: string, api: ApiClient): Promise<void> {
  const { items } = await api.get<Page<object>>("/api/v1/sources", { source: source.split("@")[0], limit: 1 });
  if (items.length === 0)
    throw new CommandError(`nothing has been recorded for ${source}: \`tapedeck status\` lists all.`);
}

/** Without a side, the page of all. */
export function pathOf(side: NamedSide | undefined): string {
  const { type = "source", name } = side ?? {};
  if (name === undefined) return "/";
  if (type === "loop") return `/loops/${name}`;
  const [of = "", at] = name.split("@");
  if (type === "session") return `/sessions/${of}${at === undefined ? "" : `?at=${encodeURIComponent(at)}`}`;
  return `/?source=${spokenSource(of).split("/").map(encodeURIComponent).join("/")}`;
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
