import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  canSeeSockets,
  heldBy,
  listeningSockets,
  readHead,
  readListening,
  restAfter,
  watchSockets,
} from "./sockets.ts";

const heads = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const row = (local: string, state: string, inode: number) =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 00000000 100 0 0 10 0\n`;

describe("sockets that listen", () => {
  it.each([
    ["0100007F:9C40", "127.0.0.1:40000"],
    ["0200007F:0050", "127.0.0.2:80"],
  ])("at %s are at %s", (local, address) => {
    expect(readListening(heads + row(local, "0A", 7))).toEqual([{ inode: "7", address }]);
  });

  it.each([
    ["a connection", "0100007F:9C40", "01"],
    ["all of this machine's addresses", "00000000:9C40", "0A"],
    ["another address", "0100A8C0:9C40", "0A"],
    ["an address of IPv6", "0000000000000000FFFF00000100007F:9C40", "0A"],
  ])("are not %s", (_, local, state) => {
    expect(readListening(heads + row(local, state, 7))).toEqual([]);
  });

  it("are distinguished from text that is no such list", () => {
    expect(readListening("")).toEqual([]);
    expect(readListening("a b:c d 0A\n:::\n")).toEqual([]);
  });

  it("are searched again within 20 ms, unless that would cost more than a twentieth of a processor", () => {
    expect(restAfter(0.5)).toBe(15);
    for (const took of [1, 5, 40]) expect(took / (took + restAfter(took))).toBeLessThanOrEqual(0.05 + 1e-9);
  });

  it.runIf(canSeeSockets())("are reported by the next search, which comes within 20 ms", async () => {
    const over = new AbortController();
    const server = createServer();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => {
      over.abort();
      server.close();
      vi.useRealTimers();
    });
    const reported: string[] = [];
    watchSockets()(process.pid)((address) => reported.push(address), over.signal);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    expect(reported).toEqual([]);
    await vi.advanceTimersByTimeAsync(20);
    expect(reported).toContain(`127.0.0.1:${port}`);
  });

  it("are read without those that do not listen, which may be very many", () => {
    const folder = mkdtempSync(join(tmpdir(), "tapedeck-sockets-"));
    const path = join(folder, "tcp");
    const some = [row("0100007F:9C40", "0A", 1), row("00000000:0050", "0A", 2)];
    const others = Array.from({ length: 1_000 }, (_, index) => row("0100007F:9C41", "01", 3 + index));
    try {
      writeFileSync(path, heads + some.join("") + others.join(""));
      const text = readHead(path);
      expect(text.length).toBeLessThan(1_000);
      expect(readListening(text)).toEqual([{ inode: "1", address: "127.0.0.1:40000" }]);
      writeFileSync(path, heads + some.join(""));
      expect(readListening(readHead(path))).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(readHead(path)).toBe("");
  });

  it.runIf(canSeeSockets())("are known with the process that holds them, however deep below another", async () => {
    const listen =
      'const s = require("net").createServer().listen(0, "127.0.0.1", () => console.log(s.address().port))';
    const shell = `sh -c '"${process.execPath}" -e "$LISTEN" & wait'; true`;
    const child = spawn("sh", ["-c", shell], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, LISTEN: listen },
      detached: true,
    });
    const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const other = spawn("sleep", ["60"]);
    try {
      const all = listeningSockets();
      expect(heldBy(child.pid ?? 0, all).map(({ address }) => address)).toEqual([`127.0.0.1:${port}`]);
      expect(heldBy(other.pid ?? 0, all)).toEqual([]);
    } finally {
      process.kill(-(child.pid ?? 0), "SIGKILL");
      other.kill("SIGKILL");
    }
  });
});
