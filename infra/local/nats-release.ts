import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { extract } from "tar";

const version = "v2.15.1";
const releasesUrl = "https://github.com/nats-io/nats-server/releases/download";
const connectTimeoutMs = 5_000;
const downloadTimeoutMs = 120_000;

const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64", arm: "arm7", ia32: "386" };

/** Folder inside the archive, and the archive's name without its ending. */
export const releaseName = `nats-server-${version}-${process.platform}-${architectures[process.arch] ?? process.arch}`;

export type FetchNats = {
  /** An empty folder that belongs to the caller. */
  readonly folder: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Where the releases are; for tests. */
  readonly releases?: string;
};

/** Fetches the official release archive, checks it against the release's SHA256SUMS and unpacks it into the folder. */
export async function fetchNatsRelease({ folder, log, signal, releases = releasesUrl }: FetchNats): Promise<string> {
  const archive = `${releaseName}.tar.gz`;
  const base = `${releases}/${version}`;
  await assertReachable(new URL(base));
  log(`fetching ${base}/${archive}`);
  const [sums, bytes] = await Promise.all([
    download(`${base}/SHA256SUMS`, signal),
    download(`${base}/${archive}`, signal),
  ]);

  const expected = new RegExp(`^([0-9a-f]{64})[ *]+${archive.replaceAll(".", "\\.")}$`, "m").exec(sums.toString())?.[1];
  const actual = createHash("sha256").update(bytes).digest("hex");
  if (expected === undefined) throw new Error(`SHA256SUMS of ${version} does not name ${archive}`);
  if (expected !== actual) throw new Error(`${archive} is not what SHA256SUMS says`);

  const file = join(folder, archive);
  await writeFile(file, bytes);
  await extract({ file, cwd: folder, filter: (path) => path === `${releaseName}/nats-server` });
  return join(folder, releaseName, "nats-server");
}

async function download(url: string, signal?: AbortSignal): Promise<Buffer> {
  const timeout = AbortSignal.timeout(downloadTimeoutMs);
  const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** fetch() has no connect timeout of its own, and a network that swallows packets must not cost a minute. */
function assertReachable({ hostname, port, protocol }: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) || (protocol === "http:" ? 80 : 443) });
    const fail = () => {
      socket.destroy();
      reject(new Error(`${hostname} can't be reached`));
    };
    socket.setTimeout(connectTimeoutMs, fail);
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
  });
}
