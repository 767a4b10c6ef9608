import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import { delay } from "@tapedeck/shared/sync/delay";

/** A TCP socket that waits for connections on this machine's loopback. */
export type ListeningSocket = {
  readonly inode: string;
  /** "127.0.0.1:40000" */
  readonly address: string;
};

const socketList = "/proc/net/tcp";

/** True where the system shows who listens where (Linux, with its /proc). */
export function canSeeSockets(): boolean {
  return readText(socketList) !== undefined && socketsOf(process.pid) !== undefined;
}

/** Reports once each address on which a process starts to listen, until the signal. */
export type AddressSource = (report: (address: string) => void, signal: AbortSignal) => void;

const restMs = 15;
/** A command is not to pay for being watched: no more than this part of a processor's time. */
const maxShare = 0.05;

/** The time between two searches, after one that took so long. */
export function restAfter(tookMs: number): number {
  return Math.max(restMs, tookMs * (1 / maxShare - 1));
}

/** Those at which a process, or one that it has started, comes to listen. To be called before there is that process. */
export function watchSockets(): (pid: number) => AddressSource {
  const known = new Set(listeningSockets().map(({ inode }) => inode));
  const isNew = ({ inode }: ListeningSocket) => !known.has(inode);
  return (pid) => async (report, signal) => {
    while (!signal.aborted) {
      const began = performance.now();
      // The processes are searched only when there is something new, as there are hundreds of them.
      const added = listeningSockets().filter(isNew);
      if (added.length > 0) for (const { address } of heldBy(pid, added)) report(address);
      for (const { inode } of added) known.add(inode);
      await delay(restAfter(performance.now() - began), signal);
    }
  };
}

/** Those of IPv4 in our network namespace; what listens in another can't be reached from here. */
export function listeningSockets(): readonly ListeningSocket[] {
  return readListening(readHead(socketList));
}

/** The size of the kernel's line for one socket. */
const rowBytes = 150;

/**
 * The beginning of a list of sockets, up to the first that does not listen: those that do stand before all others. Row by
 * row, because the kernel searches large tables for those others, which takes milliseconds. Empty where there is no list.
 */
export function readHead(path: string): string {
  const row = Buffer.alloc(rowBytes);
  let text = "";
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    for (let size = readSync(file, row); size > 0; size = readSync(file, row)) {
      text += row.toString("latin1", 0, size);
      const end = text.lastIndexOf("\n");
      if (end > 0 && !isListening(text.slice(text.lastIndexOf("\n", end - 1) + 1, end))) return text;
    }
    return text;
  } catch {
    return text;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The list's heading counts as such. */
function isListening(row: string): boolean {
  const state = row.trim().split(/\s+/)[3];
  return state === listening || state === "st";
}

const listening = "0A";

/** Those that a process holds, or one that it has started, or one that such a one has started … */
export function heldBy(pid: number, sockets: readonly ListeningSocket[]): readonly ListeningSocket[] {
  const held = new Set(processTree(pid).flatMap((member) => socketsOf(member) ?? []));
  return sockets.filter(({ inode }) => held.has(inode));
}

/** The lines of /proc/net/tcp that are in state LISTEN and on loopback. */
export function readListening(text: string): readonly ListeningSocket[] {
  return text.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const [ip = "", port = ""] = local.split(":");
    // A number in the machine's byte order, which is little-endian on all of ours.
    const bytes = Buffer.from(ip, "hex").reverse();
    if (state !== listening || inode === undefined || bytes.length !== 4 || bytes[0] !== 127) return [];
    return [{ inode, address: `${bytes.join(".")}:${Number.parseInt(port, 16)}` }];
  });
}

function processTree(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const name of listFolder("/proc") ?? []) {
    if (!/^\d+$/.test(name)) continue;
    // "17 (a name) S 12 …": the name may hold anything, brackets too.
    const stat = readText(`/proc/${name}/stat`) ?? "";
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [root];
  for (const member of tree) tree.push(...(children.get(member) ?? []));
  return tree;
}

/** Inodes of its sockets; undefined for a process that is gone, or another user's. */
function socketsOf(pid: number): readonly string[] | undefined {
  const folder = `/proc/${pid}/fd`;
  return listFolder(folder)?.flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? [];
    } catch {
      // Closed in the meantime.
      return [];
    }
  });
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function listFolder(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    return undefined;
  }
}
