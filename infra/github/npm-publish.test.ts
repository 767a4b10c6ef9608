import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";

const run = promisify(execFile);

/** What npm asks of a registry to publish. It refuses the packages in `refused`. */
async function registry() {
  const published = new Map<string, unknown>();
  const refused = new Set<string>();
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(request.url ?? "").slice(1);
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.method !== "PUT") return published.has(name) ? answer(200, published.get(name)) : answer(404, {});
    const document = await json(request);
    if (refused.has(name)) return answer(403, { error: "not now" });
    published.set(name, document);
    answer(201, {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, published, refused };
}

/** A folder in which npm uses this registry, and what packs and publishes there. */
async function place(port: number) {
  const folder = await temporaryFolder();
  const address = `//127.0.0.1:${port}/`;
  await writeFile(
    join(folder, ".npmrc"),
    `registry=http:${address}\n${address}:_authToken=t\nfetch-retries=0\nupdate-notifier=false\n`,
  );
  const env = { PATH: process.env.PATH, HOME: folder };
  return {
    pack: async (name: string, files: Readonly<Record<string, string>> = {}) => {
      const from = join(folder, name);
      await mkdir(from, { recursive: true });
      const manifest = JSON.stringify({ name: `@tape/${name}`, version: "1.2.3" });
      for (const [file, text] of Object.entries({ ...files, "package.json": manifest })) {
        await writeFile(join(from, file), text);
      }
      await run("npm", ["pack", from], { cwd: folder, env });
      return `tape-${name}-1.2.3.tgz`;
    },
    publish: (...archives: readonly string[]) =>
      run(process.execPath, [join(import.meta.dirname, "npm-publish.mjs"), ...archives], { cwd: folder, env }).then(
        ({ stdout }) => ({ code: 0, output: stdout }),
        ({ code, stderr }) => ({ code, output: stderr }),
      ),
  };
}

it("a release that failed half-way is completed by the next run, but never with other content", async () => {
  const { port, published, refused } = await registry();
  const { pack, publish } = await place(port);
  const archives = [await pack("cli"), await pack("server")];
  refused.add("@tape/server");
  expect(await publish(...archives)).toMatchObject({ code: 1, output: expect.stringContaining("E403") });
  expect([...published.keys()]).toEqual(["@tape/cli"]);

  refused.clear();
  const again = await publish(...archives);
  expect(again).toMatchObject({ code: 0, output: expect.stringContaining("@tape/cli@1.2.3 is published already") });
  expect([...published.keys()]).toEqual(["@tape/cli", "@tape/server"]);

  const other = await publish(await pack("cli", { "new.js": "" }));
  expect(other).toMatchObject({ code: 1, output: expect.stringContaining("is published with other content") });
});
