import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectTo } from "@tapedeck/fakes/vagrant/client";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, describe, expect, it } from "vitest";
import { collect } from "../../../testing/cli.ts";
import { installProgram } from "../../../testing/program.ts";
import { canSeeSockets, watchSockets } from "../sockets.ts";
import { firstServer } from "./server.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-find-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("Vagrant's server", () => {
  it.runIf(canSeeSockets())("is found among all that a command's processes listen at", async () => {
    const env = { ...process.env, PATH: installProgram(root, "vagrant"), STAND_IN_RUN: "waiting" };
    const watch = watchSockets();
    await using stranger = await startFakeVagrant();
    await using command = collect(spawn("sh", ["-c", "(vagrant up; true); true"], { env, detached: true }));
    const { pid = 0 } = command.child;
    try {
      const { address } = await firstServer(watch(pid), new AbortController().signal);
      expect(stranger.calls("GetVersionInfo").made).toBe(0);
      using client = connectTo({ address: address ?? "" });
      expect(await client.jobs()).toEqual([]);
      const port = await until(() => /"port":(\d+)/.exec(command.stdout())?.[1], { message: "the server to be asked" });
      expect(address).toBe(`127.0.0.1:${port}`);
    } finally {
      process.kill(-pid, "SIGKILL");
    }
  });

  it("may answer some time after it has begun to listen", async () => {
    const late = createServer((socket) => socket.destroy()).listen(await ownPort(), "127.0.0.1");
    await once(late, "listening");
    const { port } = late.address() as { port: number };
    const tried = once(late, "connection");
    const found = firstServer((report) => report(`127.0.0.1:${port}`), new AbortController().signal);
    await tried;
    late.close();
    await once(late, "close");
    await using _ = await startFakeVagrant({ port });
    expect(await found).toEqual({ address: `127.0.0.1:${port}`, unreachable: [] });
  });

  it("is none once the command is over", async () => {
    const ended = new AbortController();
    const none = firstServer(() => {}, ended.signal);
    ended.abort();
    expect(await none).toEqual({ address: undefined, unreachable: [] });
  });

  it("may be gone before it could be reached, which is said of nobody who was there", async () => {
    const ended = new AbortController();
    // Plugins listen as well: some speak another protocol, some say nothing.
    const web = createHttpServer().listen(0, "127.0.0.1");
    const mute = createServer().listen(0, "127.0.0.1");
    await Promise.all([once(web, "listening"), once(mute, "listening")]);
    const addressOf = (server: Server) => `127.0.0.1:${(server.address() as { port: number }).port}`;
    const there = [addressOf(web), addressOf(mute)];
    let connections = 0;
    web.on("connection", () => {
      connections += 1;
    });
    const found = firstServer((report) => ["127.0.0.1:1", ...there].forEach(report), ended.signal);
    // Asked, found to be there all the same, and asked again.
    await until(() => connections >= 3, { message: "the web server to be asked again" });
    mute.close();
    web.close();
    ended.abort();
    const { unreachable } = await found;
    expect(unreachable).toContain("127.0.0.1:1");
    expect(unreachable).not.toContain(there[0]);
  });

  it("that was seen only before the command was over is gone", async () => {
    expect(await firstServer((report) => report("127.0.0.1:1"), AbortSignal.abort())).toEqual({
      address: undefined,
      unreachable: ["127.0.0.1:1"],
    });
  });
});
