import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { expect, it } from "vitest";
import { testAuthority } from "./certificates.ts";
import { temporaryFolder } from "./temporary-folder.ts";

it("a process may trust two authorities of the same name", async () => {
  await using one = await temporaryFolder();
  await using other = await temporaryFolder();
  const first = await testAuthority(one.folder, "authority");
  const second = await testAuthority(other.folder, "authority");
  const ca = await Promise.all([first, second].map(({ certFile }) => readFile(certFile)));
  for (const authority of [first, second]) {
    const { cert, key } = await authority.issue(one.folder, "server");
    await using server = createServer({ cert, key }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, ca });
    await once(client, "secureConnect");
    expect(client.authorized).toBe(true);
    client.destroy();
  }
});
